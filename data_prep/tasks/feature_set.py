"""Features of examples as columns, in memory and in a file: about 10 bytes a token."""

import dataclasses
import sys

import numpy as np

from data_prep.jobs import array_files
from official_bert.common.errors import UserError


@dataclasses.dataclass
class Column:
    """One field of all features: numbers, or lists of different lengths one after another.

    `values`: flat. `offsets`: int64, list i is values[offsets[i]:offsets[i + 1]]; None for numbers.
    `choices`: number of lists in a feature, if it holds several (multiple choice), else 0.
    """

    values: np.ndarray
    offsets: np.ndarray | None = None
    choices: int = 0

    @classmethod
    def of(cls, values: list) -> "Column":
        """Make a column of one value a feature: an int, a float, a list, or a list of lists."""
        first = values[0]
        choices = 0
        if isinstance(first, list) and first and isinstance(first[0], list):
            choices = len(first)
            values = [inner for lists in values for inner in lists]
        if not isinstance(first, list):
            return cls(_narrow(np.array(values)))
        offsets = np.cumsum([0, *map(len, values)], dtype=np.int64)
        flat = np.array([item for inner in values for item in inner])
        return cls(_narrow(flat), offsets, choices)

    @classmethod
    def concatenate(cls, columns: list["Column"]) -> "Column":
        values = np.concatenate([column.values for column in columns])
        if columns[0].offsets is None:
            return cls(values)
        lengths = np.concatenate([np.diff(column.offsets) for column in columns])
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return cls(values, offsets.astype(np.int64), columns[0].choices)

    def __getitem__(self, row: int):
        if self.offsets is None:
            return self.values[row].item()
        if self.choices:
            first = row * self.choices
            return [self._list(first + choice) for choice in range(self.choices)]
        return self._list(row)

    @property
    def lengths(self) -> np.ndarray:
        """Length of each feature's list; of its longest, if it has several."""
        lengths = np.diff(self.offsets)
        return lengths.reshape(-1, self.choices).max(axis=1) if self.choices else lengths

    def padded(self, rows: np.ndarray, batch_size: int, length: int, fill: int) -> np.ndarray:
        """Return int32 (or float32) [batch_size], or [batch_size, length], padded with `fill`.

        For multiple choice it is [batch_size, choices, length].

        Lists of floats are label vectors of one length, and are not padded.
        """
        is_float = self.values.dtype.kind == "f"
        dtype = np.float32 if is_float else np.int32
        if self.offsets is None:
            padded = np.full(batch_size, fill, dtype)
            padded[: len(rows)] = self.values[rows]
            return padded
        if is_float:
            length, fill = int(self.lengths[0]), 0
        padded = np.full((batch_size * max(self.choices, 1), length), fill, dtype)
        for index, row in enumerate(self._list_rows(rows)):
            values = self._list(row)
            padded[index, : len(values)] = values
        return padded.reshape(batch_size, self.choices, length) if self.choices else padded

    def mask(self, rows: np.ndarray, batch_size: int, length: int) -> np.ndarray:
        """Return int32, 1 where `padded` holds a value of a list."""
        lists = self._list_rows(rows)
        lengths = np.zeros(batch_size * max(self.choices, 1), np.int64)
        lengths[: len(lists)] = self.offsets[lists + 1] - self.offsets[lists]
        mask = (np.arange(length) < lengths[:, None]).astype(np.int32)
        return mask.reshape(batch_size, self.choices, length) if self.choices else mask

    def _list(self, index: int) -> np.ndarray:
        return self.values[self.offsets[index] : self.offsets[index + 1]]

    def _list_rows(self, rows: np.ndarray) -> np.ndarray:
        rows = np.asarray(rows)
        if not self.choices:
            return rows
        return (rows[:, None] * self.choices + np.arange(self.choices)).reshape(-1)


class FeatureSet:
    """Features in columns: about 10 bytes a token instead of the 100 of Python lists.

    `features[i]` is a dict like the task's own, with arrays for lists.

    Attributes:
      columns: {field: Column}.
      num_examples, max_seq_length: the number of examples, and the length they were made for.
      lengths: number of tokens of each feature, int64 [number of features]: of the input, or of a
        text to write, whichever is more.
    """

    def __init__(self, columns: dict[str, Column], num_examples: int, max_seq_length: int):
        self.columns, self.num_examples = columns, num_examples
        self.max_seq_length = max_seq_length
        self.lengths = columns["input_ids"].lengths
        labels = columns.get("label_ids")
        if labels and labels.offsets is not None and labels.values.dtype.kind != "f":
            self.lengths = np.maximum(self.lengths, labels.lengths)

    @classmethod
    def of(cls, features: list[dict], num_examples: int, max_seq_length: int) -> "FeatureSet":
        """Make a set of dicts; a field that some lack (labels of unlabelled examples) is
        dropped."""
        fields = [name for name in features[0] if all(name in feature for feature in features)]
        columns = {name: Column.of([feature[name] for feature in features]) for name in fields}
        return cls(columns, num_examples, max_seq_length)

    @classmethod
    def concatenate(cls, sets: list["FeatureSet"], num_examples, max_seq_length) -> "FeatureSet":
        fields = [name for name in sets[0].columns if all(name in s.columns for s in sets)]
        columns = {name: Column.concatenate([s.columns[name] for s in sets]) for name in fields}
        return cls(columns, num_examples, max_seq_length)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row: int) -> dict:
        if not -len(self) <= row < len(self):
            raise IndexError(row)
        return {name: column[row % len(self)] for name, column in self.columns.items()}

    def __iter__(self):
        return (self[row] for row in range(len(self)))

    @property
    def notes(self) -> dict[str, int]:
        """Counts for the report: examples, features, tokens, the longest one, examples cut.

        Where paragraphs are cut to the answer's sentence, it has the answers that were cut, too.
        """
        truncated = self.columns["truncated"].values
        cut = np.unique(self.columns["example_index"].values[truncated != 0])
        tokens = self.columns["input_ids"].offsets[-1]
        answers = self.columns.get("answer_cut")
        return {
            **({} if answers is None else {"answers_cut": int(answers.values.sum())}),
            "examples": self.num_examples,
            "features": len(self),
            "tokens": int(tokens),
            "longest": int(self.lengths.max()),
            "truncated_examples": len(cut),
        }

    def save(self, path) -> None:
        """Write one .npz file, whole or not at all."""
        arrays = {"num_examples": self.num_examples, "max_seq_length": self.max_seq_length}
        for name, column in self.columns.items():
            arrays[f"{name}/values"] = column.values
            if column.offsets is not None:
                arrays[f"{name}/offsets"] = column.offsets
                arrays[f"{name}/choices"] = column.choices
        array_files.write(path, arrays, own=False)

    @classmethod
    def load(cls, path) -> "FeatureSet | None":
        """Return the set that `save` wrote; None, with a message, where the file is damaged."""
        try:
            arrays = array_files.read(path)
        except UserError as error:
            print(f"{error}; making it again", file=sys.stderr)
            return None
        columns = {}
        for name in (key.removesuffix("/values") for key in arrays if key.endswith("/values")):
            choices = int(arrays.get(f"{name}/choices", 0))
            columns[name] = Column(arrays[f"{name}/values"], arrays.get(f"{name}/offsets"), choices)
        return cls(columns, int(arrays["num_examples"]), int(arrays["max_seq_length"]))


def _narrow(values: np.ndarray) -> np.ndarray:
    """Return the values as the smallest of int8, int16, int32 that holds them; floats as
    float32."""
    if values.dtype.kind == "f":
        return values.astype(np.float32)
    low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
    for dtype in (np.int8, np.int16, np.int32):
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            return values.astype(dtype)
    raise OverflowError(f"values from {low} to {high} do not fit int32")
