"""Sorting by random 64-bit keys of what does not fit in memory, with reads of a megabyte.

Sorted files are cut into ranges of keys, and a task collects a range from all files. With thousands
of files its slices would be some kilobytes, each a round trip on remote storage. So many files are
first joined to larger sorted ones, one group a task. A task then takes as many ranges at once as
make its slice of each file READ_BYTES long.
"""

import math

import numpy as np

from data_prep.jobs import checked_json, workers

READ_BYTES = 1 << 20  # bytes of each file that a task holds
MOST_FILES = 64  # most files that a task reads from


def groups(files: int) -> list[tuple[int, int]]:
    """Return (first, last + 1) of each group of files to join; [] where there are few files.

    There are as many groups as files in a group.
    """
    if files <= MOST_FILES:
        return []
    number = math.ceil(math.sqrt(files))
    edges = [files * group // number for group in range(number + 1)]
    return list(zip(edges[:-1], edges[1:], strict=True))


def join_tasks(files: list, listed: str, joined: str, **more) -> list[dict]:
    """Return a task for each group of files to join; [] where there are few files.

    Args:
      files: a description of each file.
      listed: path of a JSON file to write, with the descriptions under "files".
      joined: prefix of the paths of the larger files.
      **more: further fields of a task, beside "files" (the path `listed`) and "group".
    """
    cut = groups(len(files))
    if cut:
        checked_json.write(listed, {"files": files})
    return [
        workers.task(f"{joined}-{index:05d}", files=listed, group=group, **more)
        for index, group in enumerate(cut)
    ]


def tasks(ranges: int, files: int, range_bytes: float) -> list[tuple[int, int]]:
    """Return (first, last + 1) of the ranges of each task that collects from `files` files.

    Args:
      range_bytes: bytes of one range in all files together.
    """
    size = max(1, math.ceil(files * READ_BYTES / max(range_bytes, 1)))
    return [(first, min(first + size, ranges)) for first in range(0, ranges, size)]


def edges(ranges: int) -> np.ndarray:
    """Return where ranges of equal width begin, uint64 [ranges].

    Their end, 2**64, does not fit a uint64.
    """
    return np.array([(index << 64) // ranges for index in range(ranges)], np.uint64)
