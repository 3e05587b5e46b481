"""The schema of records, and whether they keep to it: checked on the way to the model.

An id of -1 would read the last row of a table, 2**32 + 5 would become 5, and a third segment would
train an embedding that nobody asked for, all with a finite loss. Every window of records is
therefore compared with the bounds of its features. Where that fails, `find_fault` reads the files
once more, slowly, and says where the fault is.
"""

import contextlib
import os
import sys
from collections.abc import Iterator

import numpy as np

from data_prep.jobs import storage
from data_prep.pretraining.record_files import parse_example, read_records
from official_bert.common.errors import UserError
from official_bert.common.json_files import field, list_of
from official_bert.common.paths import inside

# Feature names and types of the original. Lists have max_seq_length values, those of the masked LM
# max_predictions_per_seq, the label one. Records for dynamic masking have no masked-LM features.
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
CHANGED = "has changed"  # said of a file


def limits(records) -> dict[str, int]:
    """What every integer feature must stay below; none may be negative."""
    ids = records.vocab_size or _LARGEST
    return {
        "input_ids": ids,
        "input_mask": 2,
        "segment_ids": 2,
        "masked_lm_positions": records.max_seq_length,
        "masked_lm_ids": ids,
        "next_sentence_labels": 2,
    }


def within(values: np.ndarray, limit: int | None) -> bool:
    """Whether all 64-bit integers are from 0 to below the limit; or all floats from 0 to 1."""
    if values.dtype.kind == "f":
        return bool(((values >= 0) & (values <= 1)).all())
    # Read as a number without sign, a negative one is far beyond any limit.
    return int(values.view(np.uint64).max(initial=0)) < limit


@contextlib.contextmanager
def explained(records) -> Iterator[None]:
    """Around the reading of batches: turns TensorFlow's error into one line.

    Raises:
      UserError: a record is damaged or not what the model can read; names file, record and field.
    """
    if sys.modules.get("tensorflow") is None:  # `numpy_batches` says it itself
        yield
        return
    import tensorflow as tf

    try:
        yield
    except tf.errors.OpError as error:
        # The reader's own error, on its way through a thread of TensorFlow's.
        _, said, message = str(error).partition(f"{UserError.__name__}: ")
        if not said:
            raise
        raise UserError(message.partition("\n")[0]) from None


def find_fault(records) -> str | None:
    """Describes the first record that cannot be trained on; None where all can."""
    for file, examples in zip(records.files, records.counts, strict=True):
        number = -1
        try:
            for number, record in enumerate(read_records(file, records.compression)):
                fault = _fault(parse_example(record, f"{file} record {number}"), records)
                if fault:
                    return f"{file} record {number}: {fault}"
            records.check_file(file)
        except UserError as error:
            return str(error)
        if number + 1 != examples:
            return f"{file} holds {number + 1} records, not {examples} as before"
    return None


def _fault(example: dict[str, np.ndarray], records) -> str | None:
    bounds = limits(records)
    for name, kind in SCHEMA.items():
        if records.dynamic_masking and name.startswith("masked_lm_"):
            continue
        values, length = example.get(name), records.feature_length(name)
        if values is None:
            return f"{name} is missing"
        if values.dtype != kind:
            return f"{name} has type {values.dtype}, not {kind}"
        if len(values) != length:
            return f"{name} has {len(values)} values, not {length}"
        if name in bounds:
            wrong, allowed = (values < 0) | (values >= bounds[name]), f"0 to {bounds[name] - 1}"
        else:
            wrong, allowed = ~((values >= 0) & (values <= 1)), "0 to 1"
        if wrong.any():
            place = int(np.argmax(wrong))
            return f"{name}[{place}] is {values[place]}, it must be {allowed}"
    return None


def shard_names(manifest: dict, path: str) -> list[str]:
    """The files that a manifest lists, checked: every entry whole, every file beside it.

    Raises:
      UserError: a field of the manifest is wrong; names it.
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
