"""NLI data where MNLI's training set is not at hand.

MNLI's matched dev set is cut in two by premise. One half is the dev set; the other half trains,
with any number of other NLI files. Scores on half of MNLI dev after training on other text are not
scores on MNLI, and every table that uses this says so.
"""

import functools
import os
from pathlib import Path

from data_prep.tasks.files.formats import detect_format
from data_prep.tasks.files.reading import is_held_out
from official_bert.common.checksums import state
from official_bert.common.errors import UserError
from official_bert.common.files import atomic_folder, write_text

_LABELS = ("entailment", "neutral", "contradiction")
Pairs = list[tuple[str, str, str]]  # (premise, hypothesis, label)


def mix(mnli_dev: str, others: list[str], output: str | Path, own: bool = False) -> dict[str, int]:
    """Write train.tsv and dev.tsv (premise, hypothesis, label) into the folder `output`.

    Args:
      mnli_dev, others: see `divided`.
      own: replace the folder, which an earlier try of the same cell left.

    Returns: {"train", "dev"} counts of pairs.
    """
    train, dev = divided(mnli_dev, others)
    with atomic_folder(output, own=own) as folder:
        for name, pairs in (("train", train), ("dev", dev)):
            rows = "".join("\t".join(pair) + "\n" for pair in pairs)
            write_text(folder / f"{name}.tsv", "premise\thypothesis\tlabel\n" + rows)
    return {"train": len(train), "dev": len(dev)}


def counts(mnli_dev: str, *others: str) -> tuple[int, int]:
    """Return the numbers of training and dev pairs that `mix` will write."""
    paths = mnli_dev, *others
    return _counts(paths, tuple(state(path) for path in paths if os.path.exists(path)))


@functools.lru_cache(maxsize=8)
def _counts(paths: tuple[str, ...], _states: tuple) -> tuple[int, int]:
    train, dev = divided(paths[0], paths[1:])
    return len(train), len(dev)


def divided(mnli_dev: str, others) -> tuple[Pairs, Pairs]:
    """Return the pairs for training and those of the dev set.

    Args:
      mnli_dev: MNLI's dev_matched.tsv.
      others: TSV files with the columns premise, hypothesis and label, for training.

    Raises:
      UserError: a file is missing or has other columns or labels.
    """
    train, dev = [], []
    for line, row in detect_format(mnli_dev, (("sentence1", "sentence2", "gold_label"),)).rows():
        pair = row["sentence1"], row["sentence2"], _label(row["gold_label"], mnli_dev, line)
        # All pairs of one premise stay on one side.
        (dev if is_held_out(row["sentence1"], 0.5) else train).append(pair)
    for path in others:
        for line, row in detect_format(path, (("premise", "hypothesis", "label"),)).rows():
            train.append((row["premise"], row["hypothesis"], _label(row["label"], path, line)))
    return train, dev


def _label(text: str, path: str, line: int) -> str:
    if text not in _LABELS:
        raise UserError(f"{path} line {line}: label {text!r}, expected {', '.join(_LABELS)}")
    return text
