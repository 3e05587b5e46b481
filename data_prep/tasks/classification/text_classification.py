"""Users' own texts: one or two text columns of a TSV, CSV or JSONL file, and a label column.

The label is a class, several classes (`problem="multi_label"`) or a number
(`problem="regression"`).
"""

import collections
import dataclasses
import re
from collections.abc import Sequence

from data_prep.tasks.classification.sequence_classification import (
    METRICS,
    SequenceClassification,
    TextExample,
)
from data_prep.tasks.files import formats
from data_prep.tasks.files.table import Table
from data_prep.tasks.split_files import SplitTask
from data_prep.tasks.task import label_list
from official_bert.common.errors import UserError, check_choice, check_once, first_of
from official_bert.common.json_files import shorten
from official_bert.tokenization import sequences

# Usual names of text columns, tried in this order.
_USUAL_COLUMNS = (
    ("text",),
    ("premise", "hypothesis"),
    ("sentence1", "sentence2"),
    ("question1", "question2"),
    ("question", "sentence"),
    ("text_a", "text_b"),
    ("sentence",),
)


_NO_LABELS = (list, dict, bytes)
_SEPARATORS = re.compile(r"[,;|\s]+")  # between the places of a vector in one cell
_UNKNOWN = "-1"  # the mark of Hugging Face's `datasets` for rows without a label
# Values with which a vector says of each label whether the row has it.
_BITS = {"0": 0, "0.": 0, "0.0": 0, "false": 0, "1": 1, "1.": 1, "1.0": 1, "true": 1}
_HINT = (
    ". --task_options.text_column= names another (and text_b_column, label_column: several with "
    "commas between, a column of 0 and 1 a label); where the first line is not a header, "
    "--task_options.columns=label,text names all columns"
)


class TextClassification(SplitTask, SequenceClassification):
    """Classification of texts in named columns."""

    hint = _HINT
    reading_options = (
        "text_column", "text_b_column", "label_column", "columns", "label_names", "label_separator"
    )  # fmt: skip

    def __init__(
        self,
        data_dir: str = "",
        *,
        text_column: str = "",
        text_b_column: str = "",
        label_column: str = "label",
        columns: str | list[str] | tuple[str, ...] = (),
        labels: str | list[str] | tuple[str, ...] = (),
        label_names: str | list[str] | tuple[str, ...] = "labels",
        problem: str = "single_label",
        label_separator: str = ",",
        truncation: str = "head",
        stratify: bool = False,
        **options,
    ):
        """Options of a task on own data.

        Args:
          text_column, text_b_column: names of the text columns; by default the usual names ("text",
            "premise" and "hypothesis", "sentence1" and "sentence2", ...) are looked for.
          label_column: name of the label column, or names of several with commas between, which say
            with 1 and 0 whether a row has each label (multi-label). The test file may lack it.
          columns: the names of all columns, a list or with commas between, if the files have no
            header.
          labels: the classes, in order, a list or names with commas between; empty: those found in
            the training file, sorted. For rows that are vectors of 0 and 1, the labels of their
            places.
          label_names: names of the numbers, from 0, that stand in place of labels (`ClassLabel` of
            Hugging Face's `datasets`); "labels": `labels`, if they are given.
          problem: "single_label", "multi_label" or "regression".
          label_separator: text between the labels of a row (multi-label; JSONL may hold a list).
          truncation: part of a too long text that is kept: "head", "tail" or "head+tail".
          stratify: hold out dev_fraction of each class (single_label), one row of a class of two;
            false: of all rows together, which may leave a rare class out of dev.
        """
        super().__init__(data_dir, **options)
        if self.dev_fraction and self.dev_from_train:
            raise UserError("dev_fraction and dev_from_train are both set; choose one")
        if self.folds:
            self.dev_fraction = 0.0  # folds divide all examples
        check_choice("problem", problem, METRICS)
        check_choice("truncation", truncation, sequences.TRUNCATIONS)
        if text_b_column and not text_column:
            raise UserError("text_b_column is set but text_column is not")
        if problem == "multi_label" and not label_separator:
            raise UserError("label_separator is empty; it stands between the labels of a row")
        labels = label_list(labels)
        self._label_names = labels if label_names == "labels" else label_list(label_names)
        self.header = tuple(label_list(columns))
        self.text_columns = tuple(name for name in (text_column, text_b_column) if name)
        self.label_column, self.label_separator = label_column, label_separator
        columns = label_list(label_column) if "," in label_column else [label_column]
        if len(columns) > 1 and (problem != "multi_label" or labels not in ([], columns)):
            raise UserError(
                f"label_column={label_column}: a column a label is problem=multi_label, and the "
                "labels are the columns"
            )
        labels = columns if len(columns) > 1 else labels
        self.needed = tuple(columns)
        self._vectors: dict[str, bool] = {}  # {file: whether its labels are vectors}
        self.problem, self.truncation = problem, truncation
        self.metrics = METRICS[problem]
        self._class_column = label_column if stratify and problem == "single_label" else ""
        self._labels = labels
        self._labels_were_listed = bool(labels)

    @property
    def labels(self) -> list[str]:
        if not self._labels and self.problem != "regression":
            self._labels = self._find_labels()
        return self._labels

    @property
    def input_fields(self) -> tuple[str, ...]:
        return self.text_columns or self.table("train").found

    @property
    def wanted(self) -> tuple[tuple[str, ...], ...]:
        return (self.text_columns,) if self.text_columns else _USUAL_COLUMNS

    def settings(self) -> dict:
        columns = (*self.input_fields, "")
        return {
            "text_column": columns[0],
            "text_b_column": columns[1],
            "label_column": self.label_column,
            "columns": list(self.header),
            "labels": list(self.labels),
            # Labels that were found are sorted, so their order tells nothing about numbers.
            "label_names": list(self._label_names),
            "problem": self.problem,
            "label_separator": self.label_separator,
            "truncation": self.truncation,
            **super().settings(),
        }

    def _read_split(self, split: str) -> list[TextExample]:
        """Return the examples of a split: the rows of a file, or a part of them.

        Raises:
          UserError: no file, a missing column, a wrong number of columns, a row without text or
            label, or a label that training lacks; the message has file and line.
        """
        known = None if self.problem == "regression" else set(self.labels)
        table, examples = self.table(split), []
        has_labels = set(self.needed) <= set(table.columns)
        for index, row, where in self.rows(split, table, self._class_column):
            for column in table.found:
                if not row[column].strip():
                    raise UserError(f"{where}: {column} is empty; fill it or leave the row out")
            label = self._label(row, table, where, split != "test") if has_labels else None
            if known is not None and label is not None:
                self._check_label(label, known, where)
            texts = [row[column] for column in table.found]
            examples.append(TextExample(str(row.get("id", index)), *texts, label=label))
        if split == "test" and self.problem == "multi_label" and not any(e.label for e in examples):
            examples = [dataclasses.replace(each, label=None) for each in examples]
        self._tell(split, examples)
        return examples

    def _tell(self, split: str, examples: list[TextExample]) -> None:
        """Print what the first rows do not show: the number held out, and rows of each label."""
        path, held_out = self.source(split)
        if held_out is not None:
            part = "held out as dev" if held_out else "left to train on"
            formats.announce(f"{path}: {len(examples):,} rows {part}")
        if split != "test" and self.problem == "single_label":
            counts = collections.Counter(example.label for example in examples)
            rows = [f"{label} {count:,}" for label, count in counts.most_common()]
            if missing := [label for label in self.labels if label not in counts]:
                rows.append(f"none of {first_of(missing, 6)}")
            listed = rows if len(rows) <= 12 else [*rows[:6], "...", *rows[-5:]]
            formats.announce(f"{path}: {split}: {len(counts)} labels: {', '.join(listed)}")
            alike = collections.defaultdict(list)
            for label, count in counts.items():
                alike[_meant(label)].append(f"{label!r} ({count:,})")
            for same in alike.values():
                if len(same) > 1:
                    formats.announce(f"{path}: {' and '.join(same)} are classes of their own")

    def table(self, split: str) -> Table:
        table = super().table(split)
        there = [each for each in self.wanted if set(each) <= set(table.columns)]
        if others := [each for each in there if not set(each) <= set(table.found)]:
            choices = " or ".join(" and ".join(each) for each in (table.found, *others))
            raise UserError(f"{table.path}: which column is the text, {choices}?{self.hint[1:]}")
        return table

    def _find_labels(self) -> list[str]:
        table, found = self.table("train"), set()
        path = table.path
        for _, row, where in self.rows("train", table, self._class_column):
            label = self._label(row, table, where)
            found.update(label if isinstance(label, tuple) else (label,))
        if self.problem == "single_label":
            self._check_single(found, path)
        needed, words = (2, "two") if self.problem == "single_label" else (1, "one")
        if len(found) < needed:
            raise UserError(
                f"{path}: the column {self.label_column} holds {len(found)} different labels; "
                f"classification needs {words} or more"
            )
        return sorted(found)

    def _check_single(self, found: set[str], path: str) -> None:
        # "food,news" beside "food" is two labels of a row, not one class.
        for label in sorted(found):
            parts = [part.strip() for part in label.split(self.label_separator or ",")]
            if len(parts) > 1 and not found.isdisjoint(parts):
                raise UserError(
                    f"{path}: {label!r} in the column {self.label_column} looks like several "
                    "labels; set --task_options.problem=multi_label, or, if it is one, list the "
                    "classes as --task_options.labels="
                )
        vectors = [_bits(_SEPARATORS.split(label.strip())) for label in found]
        if all(bits and len(bits) > 1 for bits in vectors):
            raise UserError(f"{path}: {self._vector(vectors[0], ())}")

    def _label(self, row: dict, table: Table, where: str, needed: bool = True):
        """Return the label of a row; None where it has none, as in test files."""
        if missing := [name for name in self.needed if name not in row]:
            raise UserError(f"{where}: no {first_of(missing, 6)}; it has {first_of(row, 20)}")
        if "_task_hash" in row and row.get("answer", "accept") != "accept":  # of Prodigy
            raise UserError(
                f"{where}: its annotator's answer is {shorten(row['answer'])}; leave out the rows "
                "that were not accepted"
            )
        several, values = self.problem == "multi_label", [row[name] for name in self.needed]
        empty = ("", _UNKNOWN) if len(values) > 1 else ("",)
        # An empty text in a cell of several labels may be none of them (`_read_split`).
        may_be_none = several and len(values) == 1 and isinstance(values[0], str)
        if not needed and not may_be_none and all(_is(value, empty) for value in values):
            return None
        if self.problem == "regression":
            return self._number(values[0], f"{where}: {self.label_column}")
        parts = self._parts(row, where)
        names = table.class_names.get(self.label_column) or self._label_names
        if len(values) > 1:
            names = self.needed
        if several and (len(values) > 1 or self._are_vectors(table)):
            return self._marked(parts, names, where)
        texts = [text for part in parts if (text := str(part).strip())]
        labels = tuple(_named(text, names) for text in texts)
        if _UNKNOWN in labels and _UNKNOWN not in names and (names or not needed):
            if not needed:
                return None
            raise UserError(
                f"{where}: {self.label_column} is {_UNKNOWN}, which stands for no label; leave the "
                "row out"
            )
        if several:
            if any(map(str.isdecimal, texts)):
                wanted_form = (
                    "numbers of labels (vectors are 0 and 1, as long as the labels in every row)"
                )
                check_once(
                    labels, f"{where}: {self.label_column} is {shorten(parts)}, {wanted_form}"
                )
            return labels
        if not labels:
            raise UserError(f"{where}: {self.label_column} is empty; fill it or leave the row out")
        return labels[0]

    def _marked(self, parts: list, names, where: str) -> tuple[str, ...]:
        """Return the names of the labels that a vector of 0 and 1 marks."""
        bits = _bits(parts)
        if bits is None:
            raise UserError(f"{where}: {self.label_column} is {shorten(parts)}, expected 0 or 1")
        if len(bits) != len(names):
            raise UserError(f"{where}: {self._vector(bits, names)}")
        return tuple(name for name, bit in zip(names, bits, strict=True) if bit)

    def _parts(self, row: dict, where: str) -> list:
        """Return a row's entries in place of labels, one by one."""
        if len(self.needed) > 1:
            return [row[name] for name in self.needed]
        value, several = row[self.label_column], self.problem == "multi_label"
        if isinstance(value, dict) and (bits := _bits(list(value.values()))):  # spaCy's `cats`
            value = [name for name, bit in zip(value, bits, strict=True) if bit]
        is_list = isinstance(value, list) and (several or len(value) == 1)
        parts = value if is_list else [value]
        if any(part is None or part != part or isinstance(part, _NO_LABELS) for part in parts):
            raise UserError(
                f"{where}: {self.label_column} is {shorten(value)}, expected "
                + ("a list of labels" if several else "one label (several: problem=multi_label)")
            )
        if several and not isinstance(value, list):
            text = str(value).strip()
            if text.startswith("[") and text.endswith("]"):
                raise UserError(
                    f"{where}: {self.label_column} is a list written as text: {shorten(text)}; "
                    f"write labels with {self.label_separator!r} between, JSON Lines or Parquet"
                )
            parts = text.split(self.label_separator)
        return parts

    def _are_vectors(self, table: Table) -> bool:
        """Return whether all rows of a file are vectors of 0 and 1, of one length.

        Rows of indices differ in length, and hold no number twice.
        """
        if table.path not in self._vectors:
            lengths = set()
            for number, row in table.rows():
                parts = self._parts(row, table.where(number)) if self.label_column in row else ()
                lengths.add(len(parts) if _bits(parts) else 0)
                if lengths & {0, 1} or len(lengths) > 1:
                    break
            self._vectors[table.path] = len(lengths) == 1 and not lengths & {0, 1}
        return self._vectors[table.path]

    def _vector(self, bits: list[int], names: Sequence[str]) -> str:
        vector = (
            f"{self.label_column} is {shorten(bits)}, a vector that says of each label whether "
        )
        if names:
            return f"{vector}the row has it; the labels are {len(names)}: {first_of(names, 20)}"
        return (
            f"{vector}the row has it: --task_options.labels= names all {len(bits)} in their order, "
            "with --task_options.problem=multi_label (and label_separator=, if it is no comma)"
        )

    def _check_label(self, label, known: set[str], where: str) -> None:
        for name in label if isinstance(label, tuple) else (label,):
            if name not in known:
                whose = "the listed labels" if self._labels_were_listed else "the training labels"
                raise UserError(
                    f"{where}: label {name!r} is not among {whose} "
                    f"({', '.join(map(str, self.labels[:20]))}); leave it out, or train on it"
                    + f" (labels are cut at {self.label_separator!r}; "
                    "--task_options.label_separator= says another)" * isinstance(label, tuple)
                )


def _bits(parts: Sequence) -> list[int] | None:
    """Return the numbers of a vector of 0 and 1; None for anything else."""
    found = [_BITS.get(str(part).strip().lower()) for part in parts]
    return None if None in found else found


def _is(value, texts: tuple[str, ...]) -> bool:
    """Return whether a cell is one of the texts, or empty as None and NaN of pandas are."""
    return value is None or value != value or str(value).strip() in texts


def _meant(label: str) -> float | str:
    try:
        return float(label)
    except ValueError:
        return label.casefold()


def _named(label: str, names) -> str:
    """Return the name of a label that is a number, unless a name is itself that number."""
    number = label.removesuffix(".0")  # pandas makes numbers so, where one is missing
    is_number = number.isdecimal() and label not in names and int(number) < len(names)
    return names[int(number)] if is_number else label
