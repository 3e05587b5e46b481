"""Losses of the pre-training objectives on records that were not trained on."""

import math

import numpy as np

from data_prep.records import explained, open_records, pretraining_dataset


def measure(evaluate, source, batch_size, max_examples=0, **expected):
    """Masked-LM and next-sentence metrics on records.

    Args:
      evaluate: function of an iterable of batches -> {name: mean}, such as `Trainer.evaluate`.
      source: folder or glob of records.
      batch_size: examples of a batch.
      max_examples: how many to use, rounded up to whole batches; 0: all.
      **expected: max_seq_length or vocab_size to check the records against.

    Returns:
      {"masked_lm_loss", "masked_lm_perplexity", "masked_lm_accuracy"} and, for models that have
      the objective, {"next_sentence_loss", "next_sentence_accuracy", "next_sentence_majority"},
      the last being the accuracy of always giving the more frequent answer.
    """
    records = open_records(source, **expected)
    dataset = pretraining_dataset(records, batch_size, shuffle=False, drop_remainder=False)
    if max_examples:
        dataset = dataset.take(math.ceil(max_examples / batch_size))
    labels = []

    def batches():
        for batch in dataset:
            labels.append(batch["next_sentence_labels"].numpy())
            yield batch

    with explained(records):
        metrics = evaluate(batches())
    metrics["masked_lm_perplexity"] = math.exp(min(metrics["masked_lm_loss"], 700))
    if "next_sentence_loss" in metrics:
        random_share = float(np.mean(np.concatenate(labels)))
        metrics["next_sentence_majority"] = max(random_share, 1 - random_share)
    return {name: metrics[name] for name in _NAMES if name in metrics}


_NAMES = (
    "masked_lm_loss",
    "masked_lm_perplexity",
    "masked_lm_accuracy",
    "next_sentence_loss",
    "next_sentence_accuracy",
    "next_sentence_majority",
)
