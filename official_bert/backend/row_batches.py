"""Rows of any length through a compiled function, in batches of like length."""

from collections.abc import Callable

import numpy as np

from official_bert.backend.compiled import few_sizes
from official_bert.common.errors import UserError

MASKS = "masked_lm_positions"
_MULTIPLE = 8  # lengths of batches


def of_rows(
    call: Callable, rows: list[dict], batch_size: int, pad: Callable, most: int
) -> list[dict]:
    """Return the outputs of each row, {name: array}; the longest rows are asked first.

    Args:
      call: function of a batch -> {name: tensor [B, ...]}.
      rows: {"input_ids", ...}, and `MASKS`, a list of positions, in all of them or in none.
      batch_size: rows of a batch.
      pad: function of rows and a length -> batch (`tokenizer.pad`).
      most: tokens of a row.

    Raises:
      UserError: `batch_size` is not positive.
    """
    if batch_size < 1:
        raise UserError(f"batch_size must be positive, not {batch_size}")
    order = sorted(range(len(rows)), key=lambda i: -len(rows[i]["input_ids"]))
    found: list[dict] = [{}] * len(rows)
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        rest = _few(len(chosen), batch_size) - len(chosen)
        batch = _batch([rows[i] for i in [*chosen, *chosen[-1:] * rest]], pad, most)
        outputs = {name: np.asarray(value) for name, value in call(batch).items()}
        for place, i in enumerate(chosen):
            found[i] = {name: values[place] for name, values in outputs.items()}
    return found


def _batch(rows, pad, most):
    longest = max(len(row["input_ids"]) for row in rows)
    longest = -(-longest // _MULTIPLE) * _MULTIPLE
    batch = pad(rows, _few(longest, most))
    if MASKS in rows[0]:
        count = _few(max(len(row[MASKS]) for row in rows), most)
        batch[MASKS] = np.array(
            [row[MASKS] + [0] * (count - len(row[MASKS])) for row in rows], np.int32
        )
    return batch


def _few(size: int, most: int) -> int:
    """Return a size for a batch, at most `most`; on JAX rounded up to one of few sizes."""
    import keras

    return min(few_sizes(size) if keras.backend.backend() == "jax" else size, most)
