"""Training and dev data for NLI where MNLI's training set is not at hand.

MNLI's matched dev set is cut in two by premise: one half is the dev set, the other goes into
training together with any number of other NLI files. Scores on half of MNLI dev after training on
other text are not scores on MNLI: every table that uses this says so.
"""

from pathlib import Path

from data_prep.tasks.look import look
from data_prep.tasks.reading import is_held_out
from official_bert.common.errors import UserError
from official_bert.common.files import write_text

LABELS = ("entailment", "neutral", "contradiction")


def mix(mnli_dev: str, others: list[str], output: str | Path) -> dict[str, int]:
    """Writes train.tsv and dev.tsv (premise, hypothesis, label) into the folder `output`.

    Args:
      mnli_dev: MNLI's dev_matched.tsv.
      others: TSV files with the columns premise, hypothesis and label, for training.

    Returns: {"train", "dev"} counts of pairs.
    Raises:
      UserError: a file is missing or has other columns or labels.
    """
    train, dev = [], []
    for line, row in look(mnli_dev, (("sentence1", "sentence2", "gold_label"),)).rows():
        pair = (row["sentence1"], row["sentence2"], _label(row["gold_label"], mnli_dev, line))
        # All pairs of one premise stay on one side.
        (dev if is_held_out(row["sentence1"], 0.5) else train).append(pair)
    for path in others:
        for line, row in look(path, (("premise", "hypothesis", "label"),)).rows():
            train.append((row["premise"], row["hypothesis"], _label(row["label"], path, line)))
    for name, pairs in (("train", train), ("dev", dev)):
        rows = "".join("\t".join(pair) + "\n" for pair in pairs)
        write_text(Path(output) / f"{name}.tsv", "premise\thypothesis\tlabel\n" + rows)
    return {"train": len(train), "dev": len(dev)}


def _label(text: str, path: str, line: int) -> str:
    if text not in LABELS:
        raise UserError(f"{path} line {line}: label {text!r}, expected {', '.join(LABELS)}")
    return text
