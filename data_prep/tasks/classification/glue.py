"""GLUE (section 4.1): nine tasks and the diagnostic set, from official TSV folders or TFDS.

All sources give identical examples: texts as in the files, indices counted in file order, label
words as the submission files need them. MRPC may be read from Microsoft's own files too
(msr_paraphrase_train.txt, msr_paraphrase_test.txt) with GLUE's list of its dev pairs, dev_ids.tsv;
GLUE's terms do not let others pass its own files on.
"""

import dataclasses
import itertools
import os
from collections.abc import Iterator

import numpy as np

from data_prep.tasks import split_files
from data_prep.tasks.classification.sequence_classification import (
    SequenceClassification,
    TextExample,
)
from data_prep.tasks.files import formats, reading
from data_prep.tasks.files.table import Table
from data_prep.tasks.task import TfdsTask, find_file
from official_bert.common.errors import UserError, check_choice
from official_bert.common.files import atomic_write

_MICROSOFTS_FILES = {
    "train": "msr_paraphrase_train.txt",
    "dev": "msr_paraphrase_train.txt",
    "test": "msr_paraphrase_test.txt",
}
_DEV_IDS = "dev_ids.tsv"
_IDS = ("#1 ID", "#2 ID")
_NLI = ("entailment", "neutral", "contradiction")
_TWO_WAY = ("entailment", "not_entailment")
_ZERO_ONE = ("0", "1")


@dataclasses.dataclass(frozen=True)
class GlueTask:
    """A row of the table below.

    `columns`: names in the TSV; `fields`: names in TFDS, in the same order. `labels`: in TFDS's
    order, which is the order of the model's outputs; empty for regression. `metrics`: the paper's
    first.
    """

    folder: str
    columns: tuple[str, ...]
    fields: tuple[str, ...]
    label_column: str
    labels: tuple[str, ...]
    metrics: tuple[str, ...]


_SENTENCES = ("sentence1", "sentence2")
GLUE = {
    "cola": GlueTask(
        "CoLA", ("sentence",), ("sentence",), "label", _ZERO_ONE, ("matthews", "accuracy")
    ),
    "sst2": GlueTask("SST-2", ("sentence",), ("sentence",), "label", _ZERO_ONE, ("accuracy",)),
    "mrpc": GlueTask(
        "MRPC", ("#1 String", "#2 String"), _SENTENCES, "Quality", _ZERO_ONE, ("f1", "accuracy")
    ),
    "stsb": GlueTask("STS-B", _SENTENCES, _SENTENCES, "score", (), ("spearman", "pearson")),
    "qqp": GlueTask(
        "QQP",
        ("question1", "question2"),
        ("question1", "question2"),
        "is_duplicate",
        _ZERO_ONE,
        ("f1", "accuracy"),
    ),
    "mnli": GlueTask(
        "MNLI", _SENTENCES, ("premise", "hypothesis"), "gold_label", _NLI, ("accuracy",)
    ),
    "qnli": GlueTask(
        "QNLI", ("question", "sentence"), ("question", "sentence"), "label", _TWO_WAY, ("accuracy",)
    ),
    "rte": GlueTask("RTE", _SENTENCES, _SENTENCES, "label", _TWO_WAY, ("accuracy",)),
    "wnli": GlueTask("WNLI", _SENTENCES, _SENTENCES, "label", _ZERO_ONE, ("accuracy",)),
}
_MNLI_FILES = {
    "dev": "dev_matched",
    "dev_mismatched": "dev_mismatched",
    "test": "test_matched",
    "test_mismatched": "test_mismatched",
}
_MNLI_TFDS_SPLITS = {
    "dev": "validation_matched",
    "dev_mismatched": "validation_mismatched",
    "test": "test_matched",
}


_COLA_COLUMNS = ("source", "label", "mark", "sentence")  # its train and dev files have no header
_OTHER_COLUMNS = (
    "; files with columns of other names are for --config.task=text_classification (fine-tuning)"
)


class Glue(TfdsTask, SequenceClassification):
    """One of the nine tasks; MNLI also has the mismatched sets and the diagnostic set ("ax")."""

    hint = _OTHER_COLUMNS

    def __init__(
        self,
        data_dir: str = "",
        *,
        task: str = "mrpc",
        **options,
    ):
        """
        Args:
          data_dir: the folder of all GLUE folders, or the task's own; empty: TFDS.
        """
        super().__init__(data_dir, **options)
        check_choice("task", task, GLUE)
        self.task, self.spec = task, GLUE[task]
        self.metrics = self.spec.metrics
        self.short_rows = "none" if task == "qqp" else "error"
        self.problem = "single_label" if self.spec.labels else "regression"
        self.input_fields = self.spec.fields
        self.prediction_file = f"{self.spec.folder}.tsv"
        if task == "mnli":
            self.splits = ("train", *_MNLI_FILES, "ax")
            self.prediction_file = "MNLI-m.tsv"

    @property
    def wanted(self) -> tuple[tuple[str, ...], ...]:
        return (self.spec.columns, self.input_fields)

    @property
    def header(self) -> tuple[str, ...]:
        return _COLA_COLUMNS if self.task == "cola" else ()

    @property
    def labels(self) -> list[str]:
        return list(self.spec.labels)

    def _read_split(self, split: str) -> list[TextExample]:
        """Read a split; `id` is "split/index", with the index in file order from 0."""
        rows = self._tfds_rows(split) if self.reads_tfds else self._tsv_rows(split)
        return [
            TextExample(f"{split}/{index}", *texts, label=label) for index, texts, label in rows
        ]

    def write(self, path, predictions) -> list[str]:
        """Write the leaderboard's format: a TSV with the columns index and prediction.

        In a folder, files get the leaderboard's names, MNLI's by split (see `submission.py`).
        """
        groups = itertools.groupby(predictions, key=lambda p: p["id"].rpartition("/")[0])
        groups = [(split, list(group)) for split, group in groups]
        if not os.path.isdir(path) and len(groups) > 1:
            raise UserError(f"{path}: predictions of several splits need a folder")
        paths = []
        for split, group in groups:
            name = submission_name(self.task, split)
            paths.append(os.path.join(path, name) if os.path.isdir(path) else os.fspath(path))
            with atomic_write(paths[-1]) as file:
                file.write("index\tprediction\n")
                for prediction in group:
                    file.write(f"{prediction['id'].rpartition('/')[2]}\t{_answer(prediction)}\n")
        return paths

    def _tsv_rows(self, split: str):
        path, ax = self._path(split), split == "ax"
        label_column = "" if ax or split.startswith("test") else self.spec.label_column
        columns = self.spec.columns
        for index, line, row in self._read(path, split, (*columns, label_column)):
            label = None
            reading.check_texts(row, columns, f"{path} line {line}")
            if label_column:
                label = self._label(str(row[label_column]), path, line)
            yield index, [row[column] for column in columns], label

    def _read(self, path: str, split: str, columns: tuple[str, ...]):
        columns = tuple(column for column in columns if column)
        if os.path.basename(path) in _MICROSOFTS_FILES.values():
            rows = _microsofts_rows(path, split, columns)
        else:
            header = self.header if split != "test" else ()
            table = formats.detect_format(
                path, (columns,), optional=(), names=header, hint=self.hint
            )
            rows = self._complete_rows(table, split) if self.task == "qqp" else table.rows()
        for index, entry in enumerate(rows):
            if entry[1] is not None:
                yield index, *entry

    def _complete_rows(self, table: Table, split: str):
        # The official QQP files hold a few broken lines; TFDS skips them too, but counts them.
        skipped = 0
        for entry in table.rows(self.short_rows):
            skipped += entry[1] is None
            yield entry
        self.notes[split] = {"incomplete_rows_skipped": skipped}

    def _label(self, text: str, path: str, line: int):
        if not self.spec.labels:
            where = f"{path} line {line}: {self.spec.label_column}"
            # TFDS keeps scores in float32: the same value from both sources.
            return float(np.float32(self._number(text, where)))
        if text not in self.spec.labels:
            raise UserError(
                f"{path} line {line}: label {text!r}, expected {', '.join(self.spec.labels)}"
            )
        return text

    def _path(self, split: str) -> str:
        if split == "ax":
            names = ["diagnostic/diagnostic.tsv", "AX/diagnostic.tsv", "diagnostic.tsv"]
            names += ["../diagnostic/diagnostic.tsv"]
            return find_file(self.data_dir, names, "the diagnostic set")
        stem = _MNLI_FILES.get(split, split) if self.task == "mnli" else split
        name = self.files.get(split) or f"{stem}.tsv"
        names = [name]
        if self.task == "mrpc" and not self.files.get(split):
            names.append(_MICROSOFTS_FILES[split])
        names = [f"{folder}{name}" for name in names for folder in (f"{self.spec.folder}/", "")]
        return find_file(self.data_dir, names, f"{self.spec.folder} {split}")

    def _tfds_rows(self, split: str):
        config = "ax" if split == "ax" else self.task
        names = _MNLI_TFDS_SPLITS if self.task == "mnli" else {}
        tfds_split = "test" if split == "ax" else names.get(split, split)
        rows, _ = split_files.read_tfds(
            f"glue/{config}", tfds_split, self.tfds_dir, "the folder of the official GLUE files"
        )
        found = []
        for row in rows:
            label = row["label"]
            if self.spec.labels:
                label = self.spec.labels[label] if label >= 0 else None
            else:
                label = float(label) if label >= 0 else None
            texts = [row[field].decode("utf-8") for field in self.spec.fields]
            found.append((int(row["idx"]), texts, label))
        found.sort(key=lambda entry: entry[0])
        if self.task == "mrpc":
            # Its train and dev rows have numbers of the one file that both were cut from.
            found = [(index, *entry[1:]) for index, entry in enumerate(found)]
        return found


def submission_name(task: str, split: str) -> str:
    """Return the leaderboard's file name for a task's split."""
    if task == "mnli":
        return {"ax": "AX.tsv"}.get(split, "MNLI-mm.tsv" if "mismatched" in split else "MNLI-m.tsv")
    return f"{GLUE[task].folder}.tsv"


def _answer(prediction: dict) -> str:
    if "value" in prediction:
        # Similarity is from 0 to 5; a regression may leave that range.
        return f"{min(max(prediction['value'], 0.0), 5.0):.3f}"
    return prediction["label"]


def _microsofts_rows(path: str, split: str, columns: tuple[str, ...]) -> Iterator[tuple[int, dict]]:
    """Yield the rows of a split in the order of the file, as `table.Table.rows`.

    Raises:
      UserError: dev_ids.tsv is not beside the training file, or names a pair that is not there.
    """
    table = formats.detect_format(path, ((*columns, *_IDS),)).rows()
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
