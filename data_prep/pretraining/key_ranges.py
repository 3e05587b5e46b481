"""Sorting what does not fit in memory, by random 64-bit keys, with reads of a megabyte.

Sorted files are cut into ranges of keys, and a task collects a range from all of them. From
thousands of files these would be slices of some kilobytes, a round trip each on remote storage. So
where there are many, groups of them are first joined to larger sorted files, one group a task, and
a task takes as many ranges at once as make a slice of each file READ_BYTES long.
"""

import math

import numpy as np

from data_prep.jobs import storage, workers

READ_BYTES = 1 << 20  # a task holds so much of each file
MOST_FILES = 64  # that a task reads from


def groups(files: int) -> list[tuple[int, int]]:
    """Return (first, last + 1) of the files to join, as many groups as files in each; [] for few
    files."""
    if files <= MOST_FILES:
        return []
    number = math.ceil(math.sqrt(files))
    edges = [files * group // number for group in range(number + 1)]
    return list(zip(edges[:-1], edges[1:], strict=True))


def join_tasks(files: list, listed: str, joined: str, **more) -> list[dict]:
    """Return one task for each group of files that are joined; none where they are few.

    Args:
      files: what is known of each.
      listed: the path of a JSON file that will hold it, under "files".
      joined: how the paths of the larger files begin.
      **more: what a task has beside "files", that path, and "group".
    """
    cut = groups(len(files))
    if cut:
        storage.write_json(listed, {"files": files})
    return [
        workers.task(f"{joined}-{index:05d}", files=listed, group=group, **more)
        for index, group in enumerate(cut)
    ]


def tasks(ranges: int, files: int, range_bytes: float) -> list[tuple[int, int]]:
    """Return (first, last + 1) of the ranges that a task collects from `files` files.

    Args:
      range_bytes: of one range in all files together.
    """
    size = max(1, math.ceil(files * READ_BYTES / max(range_bytes, 1)))
    return [(first, min(first + size, ranges)) for first in range(0, ranges, size)]


def edges(ranges: int) -> np.ndarray:
    """Return uint64 [ranges]: where ranges of equal width begin; 2**64, where they end, is no
    uint64."""
    return np.array([(index << 64) // ranges for index in range(ranges)], np.uint64)
