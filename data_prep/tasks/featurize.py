"""Features of examples, made on all cores where that pays, kept as columns in memory and on disk.

The key of a file is a hash of the examples themselves (so of the files' content, wherever they came
from), the task's options, the vocabulary, the length, the source code of this package, of the
tokeniser and of `corpus`, and the splitters' versions. So no stale file is ever read.
"""

import dataclasses
import functools
import hashlib
import inspect
import json
import os
import pathlib
import sys
import time

import numpy as np

from data_prep import corpus, tasks
from data_prep.corpus.sentence_splitter import splitter_version
from data_prep.corpus.shares import MOST_UNKNOWN
from data_prep.jobs import array_files
from data_prep.jobs.processes import Processes, WorkerDied, available_cores
from data_prep.tasks.files import formats
from data_prep.tasks.task import Task
from official_bert import tokenization
from official_bert.common.errors import UserError
from official_bert.common.files import set_aside

_CHUNK = 512  # examples in a unit of work
# Workers pay where the rest would take longer than this; starting one takes about a second.
_PARALLEL_FROM_SECONDS = 4.0


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


def featurize(
    task: Task,
    examples: list,
    tokenizer,
    max_seq_length: int,
    cache_dir: str | os.PathLike | None = None,
    num_processes: int | None = None,
) -> FeatureSet:
    """Return the features of all examples, in order; they do not depend on the number of processes.

    Args:
      cache_dir: folder that is searched for the result first, and keeps it; None: no folder.
      num_processes: number of processes, 1: this one; None: all cores if that is faster.

    Raises:
      UserError: there are no examples, or `max_seq_length` is too small.
    """
    if not examples:
        raise UserError(f"task {task.name}: no examples")
    task.tokenizer = tokenizer
    path = None
    if cache_dir is not None:
        key = cache_key(task, examples, tokenizer, max_seq_length)
        path = pathlib.Path(cache_dir, f"{task.name}-{key[:32]}.npz")
        if path.exists():
            cached = FeatureSet.load(path)
            if cached is not None:
                _look_for_unknown(cached, tokenizer, task.name)
                return cached
            set_aside(path)
    features = FeatureSet.concatenate(
        list(_chunks_of_features(task, examples, tokenizer, max_seq_length, num_processes)),
        len(examples),
        max_seq_length,
    )
    _look_for_unknown(features, tokenizer, task.name)
    if path is not None:
        try:
            features.save(path)
        except UserError as error:
            print(f"features are not kept: {error}", file=sys.stderr)
    return features


def _look_for_unknown(features: FeatureSet, tokenizer, name: str) -> None:
    special = getattr(tokenizer, "special", None)
    if special is None or special.unk is None:
        return
    share = (features.columns["input_ids"].values == tokenizer.unk_id).mean()
    if share > MOST_UNKNOWN:
        formats.announce(
            f"warning: {name}: more than {MOST_UNKNOWN:.0%} of the tokens are {special.unk}: the "
            "model's vocabulary is of other text"
        )


def cache_key(task: Task, examples: list, tokenizer, max_seq_length: int) -> str:
    """Return a hash of everything that decides the features."""
    digest = hashlib.sha256()
    options = [task.name, task.settings(), max_seq_length]
    code = f"{_own_code(type(task), type(tokenizer))} {splitter_version('en')}"
    for part in (json.dumps(options, sort_keys=True), tokenizer.digest(), code):
        digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
    for example in examples:
        digest.update(repr(example).encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()


class _EncodedBefore:
    """A tokenizer that knows the ids of some texts already.

    One call encodes all texts of a chunk on the fast path, and tasks still ask for one at a time.
    """

    def __init__(self, tokenizer, texts: list[str]):
        self._tokenizer = tokenizer
        texts = list(dict.fromkeys(texts))
        ids, offsets = tokenizer.encode_batch(texts)
        ids = ids.tolist()
        self._ids = {text: ids[offsets[i] : offsets[i + 1]] for i, text in enumerate(texts)}

    def encode(self, text: str) -> list[int]:
        known = self._ids.get(text)
        return self._tokenizer.encode(text) if known is None else known

    def __getattr__(self, name: str):
        return getattr(self._tokenizer, name)


def _chunks_of_features(task, examples, tokenizer, max_seq_length, num_processes):
    chunks = [
        (start, examples[start : start + _CHUNK]) for start in range(0, len(examples), _CHUNK)
    ]
    done = 0
    if num_processes is None:
        seconds = 0.0
        for start, chunk in chunks[:2]:  # the first fills caches, the second shows the speed
            begun = time.perf_counter()
            features = _features_of_chunk(task, start, chunk, tokenizer, max_seq_length)
            seconds = time.perf_counter() - begun
            done += 1
            yield features
        left = seconds * (len(chunks) - done)
        num_processes = available_cores() if left > _PARALLEL_FROM_SECONDS else 1
    num_processes = min(num_processes, len(chunks) - done)
    if num_processes > 1:
        task.head  # noqa: B018  labels are found once, here, not in every worker
        prepare = functools.partial(_prepare_worker, task, tokenizer, max_seq_length)
        try:
            with Processes(num_processes, prepare) as processes:
                for features in processes.map(_work, chunks[done:]):
                    yield features
                    done += 1
        except WorkerDied:
            # The main script cannot be imported again (a notebook cell, standard input).
            print("featurising in one process: workers could not start", file=sys.stderr)
    for start, chunk in chunks[done:]:
        yield _features_of_chunk(task, start, chunk, tokenizer, max_seq_length)


def _features_of_chunk(task, start: int, examples: list, tokenizer, max_seq_length) -> FeatureSet:
    texts = getattr(task, "texts", None)
    if texts is not None:
        tokenizer = _EncodedBefore(tokenizer, [text for e in examples for text in texts(e)])
    features = []
    for index, example in enumerate(examples, start):
        for feature in task.features(example, tokenizer, max_seq_length):
            feature["example_index"] = index
            features.append(feature)
    return FeatureSet.of(features, len(examples), max_seq_length)


def feature_cache() -> pathlib.Path:
    """Return the folder of cached features, which all runs of a user share."""
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    default = pathlib.Path(base) / "official_bert" / "features"
    return pathlib.Path(os.environ.get("OFFICIAL_BERT_CACHE") or default)


_worker: tuple = ()


def _prepare_worker(task, tokenizer, max_seq_length) -> None:
    global _worker
    _worker = (task, tokenizer, max_seq_length)


def _work(chunk) -> FeatureSet:
    task, tokenizer, max_seq_length = _worker
    start, examples = chunk
    return _features_of_chunk(task, start, examples, tokenizer, max_seq_length)


def _own_code(kind: type, pieces: type) -> str:
    """Hash the code that makes features: of a class of tasks and of a class of tokenisers.

    A class of tasks counts with its own files, a tokeniser with all files of its folder.
    """
    folders = [pathlib.Path(room.__file__).parent for room in (tasks, corpus, tokenization)]
    files = {path for folder in folders for path in folder.rglob("*.py")}
    files |= {pathlib.Path(inspect.getfile(one)) for one in kind.__mro__[:-1]}
    homes = {pathlib.Path(inspect.getfile(one)).parent for one in pieces.__mro__[:-1]}
    return code_hash(*sorted(files.union(*(home.glob("*.py") for home in homes))))


@functools.cache
def code_hash(*files: pathlib.Path) -> str:
    """Hash files of code once in a process, whatever is written to them later."""
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
