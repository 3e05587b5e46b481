"""The schema of records, and checks that records keep to it before the model reads them.

An id of -1 would read the last row of a table, 2**32 + 5 would become 5, and a third segment would
train an unwanted embedding, all with a finite loss. So every window of records is compared with the
bounds of its features.
"""

import contextlib
import os
import sys
from collections.abc import Iterator

import numpy as np

from data_prep.jobs import storage
from official_bert.common.errors import UserError
from official_bert.common.json_files import field, list_of
from official_bert.common.paths import inside

# Feature names and types of the original. The masked LM's lists have max_predictions_per_seq
# values, the label one, others max_seq_length. Records for dynamic masking have no masked-LM
# features.
SCHEMA = {
    "input_ids": "int64",
    "input_mask": "int64",
    "segment_ids": "int64",
    "masked_lm_positions": "int64",
    "masked_lm_ids": "int64",
    "masked_lm_weights": "float32",
    "next_sentence_labels": "int64",
}

_LARGEST = (1 << 31) - 1  # ids become int32
CHANGED = "has changed"  # in messages about files


def limits(records) -> dict[str, int]:
    """Return the exclusive upper limit of every integer feature; none may be negative."""
    ids = records.vocab_size or _LARGEST
    return {
        "input_ids": ids,
        "input_mask": 2,
        "segment_ids": 2,
        "masked_lm_positions": records.max_seq_length,
        "masked_lm_ids": ids,
        "next_sentence_labels": 2,
    }


def check_values(name: str, values: np.ndarray, limit: int | None) -> None:
    """Check the values of a feature.

    Raises:
      ValueError: one of the integers, 64-bit [rows, values], is not from 0 to below the limit, or
        one of the floats is not from 0 to 1.
    """
    if values.dtype.kind == "f":
        wrong, most = ~((values >= 0) & (values <= 1)), 1
    else:
        # A negative number, read as unsigned, is far above any limit.
        largest = int(values.view(np.uint64).max(initial=0))
        wrong, most = largest >= limit and values.view(np.uint64) >= limit, limit - 1
        values = values.view(np.int64)
    if np.any(wrong):
        row, place = np.unravel_index(wrong.argmax(), wrong.shape)
        found = values[row, place]
        raise ValueError(f"{name}[{place}] is {found}, it must be 0 to {most}")


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Turn TensorFlow's error in a block that reads batches into a UserError of one line.

    Raises:
      UserError: a record is damaged or not what the model can read; names file, record and field.
    """
    if sys.modules.get("tensorflow") is None:  # `numpy_batches` raises UserErrors itself
        yield
        return
    import tensorflow as tf

    try:
        yield
    except tf.errors.OpError as error:
        # The reader's own error, on its way through a thread of TensorFlow's.
        _, marker, message = str(error).partition(f"{UserError.__name__}: ")
        if not marker:
            raise
        raise UserError(message.partition("\n")[0]) from None


def shard_names(manifest: dict, path: str) -> list[str]:
    """Return the files that a manifest lists, after a check of every entry.

    Raises:
      UserError: a field of the manifest is wrong; the message names it.
    """
    for name in ("max_seq_length", "max_predictions_per_seq", "vocab_size"):
        if not 0 < field(manifest, name, int, path) < _LARGEST:
            raise UserError(f"{path}: {name} must be positive, not {manifest[name]}")
    field(manifest, "dynamic_masking", bool, path)
    if field(manifest, "compression", str, path) not in ("", "GZIP"):
        raise UserError(f"{path}: compression must be '' or 'GZIP'")
    names = []
    for index, shard in enumerate(list_of(manifest, "shards", dict, path)):
        where = f"{path}: shards[{index}]"
        names.append(field(shard, "file", str, where))
        for count in ("examples", "bytes"):
            if field(shard, count, int, where) < 0:
                raise UserError(f"{where}: {count} must not be negative")
        _check_inside(os.path.dirname(path), names[-1], path)
    if len(set(names)) != len(names):
        raise UserError(f"{path}: a file is listed twice")
    return names


def _check_inside(folder: str, name: str, path: str) -> None:
    if not storage.is_remote(folder):
        inside(folder or ".", name, path)
    elif set(name) & {"/", "\\"} or name in ("", ".", ".."):
        raise UserError(f"{path}: it names the file {name!r}, which is outside of {folder}")
