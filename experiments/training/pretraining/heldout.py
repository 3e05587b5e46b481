"""Held-out losses of the pre-training objectives, and of the trivial language model beside them.

The trivial model knows only how frequent each piece is: it counts the predicted pieces of the
training records, one added to each count.
"""

import itertools
import json
import math
from pathlib import Path

import numpy as np

from data_prep.records import numpy_batches, open_records


def measure(evaluate, objectives, records, batch_size, max_examples=0):
    """Return losses and metrics of a model's objectives on records.

    Args:
      evaluate: function of an iterable of batches -> {name: mean}, such as `Trainer.evaluate`.
      objectives: of the `BertPretrainer`.
      records: of `open_records`.
      batch_size: examples of a batch.
      max_examples: how many to use, rounded up to whole batches; 0: all.

    Returns:
      {name: value}, `main_loss` first. For BERT "masked_lm_loss", "masked_lm_perplexity",
      "masked_lm_accuracy", "next_sentence_loss", "next_sentence_accuracy" and
      "next_sentence_majority", the last being the accuracy of always giving the more frequent
      answer.
    """
    labels = {field: [] for one in objectives for field in one.majorities.values()}

    def batches():
        for batch in in_order(records, batch_size, max_examples):
            for field, seen in labels.items():
                seen.append(batch[field])
            yield batch

    means = evaluate(batches())
    found = {}
    for one in objectives:
        found |= {name: means[name] for name in one.losses}
        found |= {name: math.exp(min(means[loss], 700)) for name, loss in one.perplexities.items()}
        found |= {name: means[name] for name in one.metrics}
        for name, field in one.majorities.items():
            share = float(np.mean(np.concatenate(labels[field])))
            found[name] = max(share, 1 - share)
    return found


def in_order(records, batch_size, max_examples=0):
    """Return an iterator over batches of records in their order; see `measure`."""
    read = numpy_batches(records, batch_size, shuffle=False, drop_remainder=False)
    last = math.ceil(max_examples / batch_size) if max_examples else None
    return itertools.islice(read, last)


def main_loss(metrics):
    """Return the name of the loss in curves and tables: the first objective's, first in
    `measure`."""
    return next(iter(metrics))


def learning_curve(path: Path, points: int = 200) -> list[dict]:
    """Return losses and held-out metrics by step, with about `points` points of training loss."""
    if not path.exists():
        return []
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    kept = []
    stride = max(1, len(lines) // points)
    for index, line in enumerate(lines):
        evaluation = any(key.startswith("dev/") for key in line)
        if evaluation or index % stride == 0 or index == len(lines) - 1:
            values = {
                key.removeprefix("dev/"): round(value, 5)
                for key, value in line.items()
                if "second" not in key and key != "time"  # all but what depends on the machine
            }
            kept.append({"heldout": evaluation, **values})
    return kept


def unigram_baseline(
    objective, records: str, heldout: str, vocab_size: int, every_token: bool
) -> dict:
    """Return the trivial model's scores {name: value} on held-out records; {} without records.

    Args:
      objective: gives the names of the scores; {} for one that predicts no pieces.
      every_token: score all tokens (left-to-right models, and half of a shallow concatenation)
        rather than the masked ones.
    """
    if not objective.perplexities or not heldout:
        return {}
    known, seen = (
        piece_counts(in_order(open_records(source), 256), vocab_size, every_token)
        for source in (records, heldout)
    )
    loss, accuracy = frequency_scores(1 + known, seen)
    [(perplexity, name)] = objective.perplexities.items()
    scored = name.removesuffix("_loss") + "_accuracy"
    return {name: loss, perplexity: float(np.exp(loss)), scored: accuracy}


def frequency_scores(known: np.ndarray, seen: np.ndarray) -> tuple[float, float]:
    """Return (loss in nats, accuracy) of predicting pieces by their frequency.

    Args:
      known: float [vocab_size], counts that the prediction knows.
      seen: float [vocab_size], counts of the pieces to predict."""
    loss = -float(seen @ np.log(known / known.sum()) / max(1.0, seen.sum()))
    return loss, float(seen[np.argmax(known)] / max(1.0, seen.sum()))


def piece_counts(batches, vocab_size: int, every_token: bool = False, limit: int = 400_000):
    """Return float [vocab_size], the counts of the predicted pieces in the first batches."""
    counts = np.zeros(vocab_size)
    for batch in batches:
        counts += _pieces_of(batch, vocab_size, every_token)
        if counts.sum() >= limit:
            break
    return counts


def _pieces_of(batch: dict, vocab_size: int, every_token: bool) -> np.ndarray:
    real = batch["masked_lm_weights"] > 0
    predicted = batch["masked_lm_ids"][real]
    if every_token:
        ids, rows = batch["input_ids"].copy(), np.nonzero(real)[0]
        ids[rows, batch["masked_lm_positions"][real]] = predicted
        predicted = ids[:, 1:][batch["input_mask"][:, 1:] > 0]
    return np.bincount(predicted, minlength=vocab_size)
