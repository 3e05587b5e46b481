"""The trivial language model, beside which held-out scores stand: it knows only how frequent each
piece is, as counted among the predicted pieces of the training records, one added to each.
"""

import numpy as np

from data_prep.records import numpy_batches, open_records


def baseline(objective, records: str, heldout: str, vocab_size: int, every_token: bool) -> dict:
    """The scores {name: value} on held-out records; none without such records.

    Args:
      objective: whose names the scores get; one that predicts no pieces has no such baseline.
      every_token: of all tokens (left-to-right models, and half of a shallow concatenation) rather
        than of the masked ones.
    """
    if not objective.perplexities or not heldout:
        return {}
    counts = np.ones(vocab_size) + piece_counts(records, vocab_size, every_token)
    loss, accuracy = frequency_scores(counts, piece_counts(heldout, vocab_size, every_token))
    [(perplexity, name)] = objective.perplexities.items()
    scored = name.removesuffix("_loss") + "_accuracy"
    return {name: loss, perplexity: float(np.exp(loss)), scored: accuracy}


def frequency_scores(known: np.ndarray, seen: np.ndarray) -> tuple[float, float]:
    """(loss in nats, accuracy) of predicting the pieces counted in `seen` by how often they are
    in `known`, both float [vocab_size]."""
    loss = -float(seen @ np.log(known / known.sum()) / max(1.0, seen.sum()))
    return loss, float(seen[np.argmax(known)] / max(1.0, seen.sum()))


def piece_counts(records: str, vocab_size: int, every_token: bool, limit: int = 400_000):
    counts = np.zeros(vocab_size)
    for batch in numpy_batches(open_records(records), 256, shuffle=False, drop_remainder=False):
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
