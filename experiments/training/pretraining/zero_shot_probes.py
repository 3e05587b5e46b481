"""The cloze test: a pre-trained model fills in hidden pieces, without fine-tuning.

It is one measure for masked and left-to-right models. Their held-out losses do not compare: a
masked model predicts the hidden 15 % of the pieces, a left-to-right model all of them. Here both
predict the same pieces: those that the held-out records show as [MASK]. (The tenth that stays as it
is and the tenth that becomes another piece are left out: the masked model would see these pieces,
the left-to-right one would not.) The masked model
reads the record as it is, with the text on both sides and every other mask; the left-to-right model
reads the text as it was, to the left.
"""

import numpy as np

from data_prep.records import open_records
from experiments.training.pretraining import heldout
from experiments.training.start.preflight import check_fit
from official_bert.checkpoints import model_folder
from official_bert.common.errors import UserError


def cloze(model, records, max_examples=0, batch_size=64):
    """Score a pre-trained model on the masked pieces of records.

    Args:
      model: model folder of a pre-training; its attention's direction says how it is asked.
      records: folder or glob of held-out records, made with the model's vocabulary.
      max_examples: how many to use, rounded up to whole batches; 0: all.
      batch_size: examples of a batch; does not change the result.

    Returns: arrays with one entry a masked piece, in the order of the records: "example" (index of
      its record) and "piece" (the hidden one) int64, "loss" (nats) float64, "correct" bool; and
      "examples", the number of records.
    Raises:
      UserError: the model has no pre-training head, or the records do not fit it.
    """
    from official_bert.backend.compiled import compiled

    loaded, batches = opened(model, records, max_examples, batch_size)
    ask = compiled(loaded.model, lambda batch: answers(loaded.model, batch))
    found = {"example": [], "piece": [], "loss": [], "correct": []}
    examples = 0
    for batch in batches:
        loss, correct = ask(batch)
        shown = np.take_along_axis(batch["input_ids"], batch["masked_lm_positions"], axis=1)
        hidden = (batch["masked_lm_weights"] > 0) & (shown == loaded.tokenizer.mask_id)
        found["example"].append(examples + np.nonzero(hidden)[0])
        found["piece"].append(batch["masked_lm_ids"][hidden].astype(np.int64))
        found["loss"].append(loss[hidden].astype(np.float64))
        found["correct"].append(correct[hidden] > 0)
        examples += len(hidden)
    return {name: np.concatenate(parts) for name, parts in found.items()} | {"examples": examples}


def opened(model, records, max_examples, batch_size):
    """Return (pre-trained model, batches of records for it); arguments as for `cloze`.

    Raises:
      UserError: the model has no pre-training head, or the records do not fit it.
    """
    loaded = model_folder.load(model)
    if loaded.head != "pretraining":
        raise UserError(f'{model} has the head "{loaded.head}"; this test needs "pretraining"')
    source = open_records(records, vocab_size=len(loaded.tokenizer.vocab))
    check_fit(source, records, loaded.config, loaded.tokenizer)
    return loaded, heldout.in_order(source, batch_size, max_examples)


def answers(model, batch):
    """Ask a model for the pieces at `masked_lm_positions`.

    Args:
      model: BertPretrainer.
      batch: of pre-training records.

    Returns: (loss in nats, 1.0 where the likeliest piece is the right one), float32 [B, P] each;
      meaningless where `masked_lm_weights` is 0.
    """
    from official_bert.layers import gather_positions
    from official_bert.losses import correct, cross_entropy

    asked, positions = model.objectives[0].cloze(batch)
    sequence = model.encoder(asked, training=False)["sequence_output"]
    vectors = gather_positions(sequence, positions)
    logits = model.masked_lm(vectors, model.encoder.embeddings.word_embeddings)
    ids = batch["masked_lm_ids"]
    return cross_entropy(logits, ids), correct(logits, ids)


def cloze_statistics(found):
    """Return {metric: (measure, [examples, 2])}, the sums of each record for `example_scores`.

    Args:
      found: of `cloze`.
    """
    count, examples = found["examples"], found["example"]

    def sums(values=None):
        return np.bincount(examples, values, count).astype(np.float64)

    pieces = sums()
    return {
        "cloze_loss": ("nats", np.stack([sums(found["loss"]), pieces], axis=1)),
        "cloze_accuracy": ("mean", np.stack([sums(found["correct"]), pieces], axis=1)),
    }
