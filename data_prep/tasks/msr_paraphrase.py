"""MRPC from Microsoft's own files, as GLUE cuts it: what GLUE's terms keep from being passed on.

A folder holds msr_paraphrase_train.txt and msr_paraphrase_test.txt, and GLUE's list of the pairs
that are its dev set, dev_ids.tsv: two sentence numbers a line.
"""

import os
from collections.abc import Iterator

from data_prep.tasks import look, reading
from data_prep.tasks.task import find_file
from official_bert.common.errors import UserError

FILES = {
    "train": "msr_paraphrase_train.txt",
    "dev": "msr_paraphrase_train.txt",
    "test": "msr_paraphrase_test.txt",
}
_DEV_IDS = "dev_ids.tsv"
_IDS = ("#1 ID", "#2 ID")


def is_raw(path: str) -> bool:
    return os.path.basename(path) in FILES.values()


def rows(path: str, split: str, columns: tuple[str, ...]) -> Iterator[tuple[int, dict]]:
    """The rows of a split in the order of the file, as `look.Table.rows`.

    Raises:
      UserError: dev_ids.tsv is not beside the training file, or names a pair that is not in it.
    """
    table = look.look(path, ((*columns, *_IDS),)).rows()
    if split == "test":
        yield from table
        return
    wanted = _dev_pairs(path)
    missing = dict.fromkeys(wanted)
    for number, row in table:
        pair = tuple(row[name].strip() for name in _IDS)
        missing.pop(pair, None)
        if (pair in wanted) == (split == "dev"):
            yield number, row
    if missing:
        pair = " and ".join(next(iter(missing)))
        raise UserError(f"{path}: no row of the pair {pair}, which {_DEV_IDS} names")


def _dev_pairs(path):
    ids = find_file(
        os.path.dirname(path), [_DEV_IDS], f"MRPC's dev set: GLUE's list of pairs of {path}"
    )
    pairs = set()
    for number, line in reading.read_lines(ids):
        pair = tuple(line.split())
        if len(pair) != 2:
            raise UserError(f"{ids} line {number}: {line[:80]!r}, expected two sentence numbers")
        pairs.add(pair)
    return pairs
