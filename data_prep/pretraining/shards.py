"""Shards of records from files of rows: a shuffle that never holds all examples.

A shard is a range of keys. It takes its slice of every file of rows and sorts it by key. Since the
keys are random, this is a uniform shuffle of all examples of the corpus. The files of many blocks
are joined to fewer first (`key_ranges`); the shards are the same ones.
"""

import contextlib
import itertools
import os

import google_crc32c
import numpy as np

from data_prep.jobs import array_files, checked_json, storage
from data_prep.pretraining import key_ranges
from data_prep.pretraining.rows import features, options_of_rows, row_checks, row_dtype
from data_prep.pretraining.tf_example import framed_records

_PACKED_AT_ONCE = 2048  # keeps numpy's temporary arrays below the size that malloc gives back


def row_files(tasks: list[dict], results: list[dict]) -> list[list]:
    """Return [path without ending, rows, CRC-32 of the keys] of each result of `make_rows` or
    `join`."""
    return [
        [task["output"], result["rows"], result["keys_crc32"]]
        for task, result in zip(tasks, results, strict=True)
    ]


def join_tasks(files: list[list], split: str, options: dict, vocab_size: int, work: str):
    """Return a task of `join` for each group of `row_files`; [] where there are few files."""
    at = (os.path.join(work, name) for name in (f"blocks-{split}.json", f"joined-{split}"))
    return key_ranges.join_tasks(
        files, *at, options=options_of_rows(options), vocab_size=vocab_size
    )


def join(task: dict) -> dict:
    """Join files of rows to a larger one, sorted alike.

    Returns:
      {"rows", "keys_crc32"} of the larger file, and the smaller files as "used_up".

    Raises:
      UserError: a file is damaged.
    """
    files = checked_json.read(task["files"])["files"][slice(*task["group"])]
    dtype = row_dtype(task["options"], task["vocab_size"])
    keys = [array_files.read_array(path + ".keys", "<u8", crc32) for path, _, crc32 in files]
    pieces = max(1, max(map(len, keys)) * dtype.itemsize // key_ranges.READ_BYTES)
    table = _table(keys, key_ranges.edges(pieces))
    with storage.writing(task["output"] + ".rows") as file:
        for starts, stops in itertools.pairwise(table):
            rows, order = _read_rows([path for path, *_ in files], dtype, starts, stops)
            file.write(rows[order].view(np.uint8).data)
    keys = np.sort(np.concatenate(keys))
    return {
        "rows": len(keys),
        "keys_crc32": array_files.write_array(task["output"] + ".keys", keys),
        "used_up": [path + end for path, *_ in files for end in (".rows", ".keys")],
    }


def shard_tasks(files: list[list], split: str, options: dict, vocab_size: int, folder: str):
    """Return tasks of `write_shards` that together hold every shard of a split.

    A table on disk, int64 [tasks + 1, files + 1], says where the shards of each task begin in all
    files. Its last column is the checksum of each row.

    Args:
      files: the result of `row_files`.
      folder: the folder for the shards.
    """
    examples = sum(rows for _, rows, _ in files)
    shards = options["num_shards"] or max(1, -(-examples // options["examples_per_shard"]))
    shard_bytes = examples * row_dtype(options, vocab_size).itemsize / shards
    groups = key_ranges.tasks(shards, len(files), shard_bytes)
    keys = (array_files.read_array(path + ".keys", "<u8", crc32) for path, _, crc32 in files)
    table = np.empty((len(groups) + 1, len(files) + 1), np.int64)
    table[:, :-1] = _table(keys, key_ranges.edges(shards)[[first for first, _ in groups]])
    table[:, -1] = [_table_check(row) for row in table]
    work = os.path.dirname(files[0][0])
    path = os.path.join(work, f"slices-{split}")
    array_files.write_array(path, table)
    checked_json.write(path + ".json", {"files": [path for path, *_ in files]})
    return [
        {
            "slices": path,
            "row": row,
            "shards": group,
            "of": shards,
            "options": options_of_rows(options),
            "vocab_size": vocab_size,
            "folder": folder,
            "summary": os.path.join(work, f"shards-{split}-{row:05d}.summary"),
        }
        for row, group in enumerate(groups)
    ]


def write_shards(task: dict) -> dict:
    """Write some shards, each a TFRecord file.

    Returns:
      {"shards": [{"file", "examples", "bytes", "crc32c"}]}, their entries in the manifest.

    Raises:
      UserError: a file of rows is damaged.
    """
    paths = checked_json.read(task["slices"] + ".json")["files"]
    width, row = len(paths) + 1, task["row"]
    both = array_files.read_slice(task["slices"], "<i8", row * width, (row + 2) * width)
    both = both.reshape(2, width)
    if any(_table_check(row) != row[-1] for row in both):
        raise storage.damaged(task["slices"])
    dtype = row_dtype(task["options"], task["vocab_size"])
    rows, order = _read_rows(paths, dtype, *both[:, :-1])
    first, last = task["shards"]
    edges = key_ranges.edges(task["of"])[first + 1 : last]
    parts = np.split(order, np.searchsorted(rows["key"], edges, sorter=order))
    return {
        "shards": [
            _write_shard(task, f"examples-{shard:05d}-of-{task['of']:05d}.tfrecord", rows[part])
            for shard, part in zip(range(first, last), parts, strict=True)
        ]
    }


def _write_shard(task, name, rows):
    with storage.writing(os.path.join(task["folder"], name)) as raw:
        hashing = _HashingFile(raw)
        compressed = task["options"]["compression"] == "GZIP"
        with storage.gzipped(hashing) if compressed else contextlib.nullcontext(hashing) as file:
            for at in range(0, len(rows), _PACKED_AT_ONCE):
                some = rows[at : at + _PACKED_AT_ONCE]
                file.write(framed_records(features(some, task["options"])))
    return {
        "file": name,
        "examples": len(rows),
        "bytes": hashing.size,
        "crc32c": f"{hashing.crc32c:08x}",
    }


def _table(keys, edges):
    """Return where the ranges begin in each file, and where the last ends: int64 [edges + 1,
    files].

    Args:
      keys: sorted keys of each file.
    """
    return np.stack([np.append(np.searchsorted(k, edges), len(k)) for k in keys], axis=1)


def _table_check(row):
    return google_crc32c.value(np.ascontiguousarray(row[:-1], "<i8").tobytes())


def _read_rows(paths, dtype, starts, stops):
    """Return rows `start` to `stop` - 1 of each file, checked, and their order by key."""
    sizes = stops - starts
    rows = np.empty(sizes.sum(), dtype)
    at = np.cumsum(sizes) - sizes
    for path, place, start, stop in zip(paths, at, starts.tolist(), stops.tolist(), strict=True):
        some = rows[place : place + stop - start]
        some[:] = array_files.read_slice(path + ".rows", dtype, start, stop)
        if not np.array_equal(row_checks(some), some["check"]):
            raise storage.damaged(path + ".rows")
    return rows, np.argsort(rows["key"], kind="stable")


class _HashingFile:
    """Passes bytes on to a file, and keeps their number and CRC-32C."""

    def __init__(self, file):
        self._file = file
        self.crc32c = 0
        self.size = 0

    def write(self, data):
        self._file.write(data)
        self.crc32c = google_crc32c.extend(self.crc32c, data)
        self.size += len(data)
        return len(data)

    def flush(self):
        self._file.flush()
