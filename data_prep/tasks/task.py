"""Fine-tuning tasks (section 4 of the paper): each is one small class with a fixed protocol.

A trainer never asks which benchmark it runs. It reads `head` to build the model, calls `examples`
and `features` to get data, feeds batches, and hands the outputs back to `predictions` and `score`.
"""

import dataclasses
import json
import os
import pathlib
from collections.abc import Iterator
from typing import Any

from data_prep.tasks.files import formats, reading
from data_prep.tasks.files.table import Table
from official_bert.common.errors import UserError, check_choice, check_once, first_of
from official_bert.common.files import atomic_write


@dataclasses.dataclass(frozen=True)
class Inputs:
    """The rows of a user's file, and the examples made of them.

    Attributes:
      rows: (rows, example) in the order of the file. One example may stand for several rows, such
        as the sentences of a document; None stands for rows without text.
      source: the file as a `table.Table` or `token_lines.TokenLines`.
    """

    rows: Iterator[tuple[list[dict], Any]]
    source: Any


class Task:
    """A benchmark, or own data; a new task is a subclass in its own file and a line of the
    registry.

    Attributes every task has:
      name: registry name.
      splits: names that `examples` accepts; not every folder has all of them.
      metrics: names of the scores, the main one first.
      input_fields: fields that `example(fields)` needs to make an example of a user's text.
      wanted: names of the columns with these fields in files, and alternatives
        (`formats.detect_format`).
      header: names of the columns of files without a header.
      short_rows: see `table.Table.rows`.
      hint: advice for files whose columns have other names.
      baseline_is: predicate about `baseline` for a sentence, such as "answers without a model".
      scoring: how the scores count, if a benchmark has several ways; for the report.
      reading_options: options of reading files that a fine-tuned model may be given anew.
      prediction_file: usual name of the file that `write` makes.
      head: {"head", "num_labels", "labels", "problem"} for `official_bert.heads`. It may read the
        training data the first time, to find the labels. For an extension's head "answers" names
        the columns of a table of answers.
      about_windows: why there is no option `windows`, if there is none.
      also_read: names of files of data_dir that decide results beside the examples.
      gold: field of an example with its label, None where that is unknown.
      whole_batches: whether the loss compares the examples of a batch with each other, so that
        batches are never divided into micro-batches.
      tokenizer: the model's, once `featurize` has it; answers that are texts need it.
      notes: {split: {reason: count}} of what was skipped, filled while files are read.
    """

    name = ""
    splits = ("train", "dev", "test")
    metrics: tuple[str, ...] = ()
    input_fields: tuple[str, ...] = ("text",)
    header: tuple[str, ...] = ()
    hint = ""
    short_rows = "error"
    reading_options: tuple[str, ...] = ()
    also_read: tuple[str, ...] = ()
    prediction_file = "predictions.jsonl"
    about_windows = ""
    baseline_is = "answers without a model"
    scoring = ""
    gold = "label"
    whole_batches = False
    tokenizer = None

    def __init__(self, data_dir: str = ""):
        self.data_dir = os.fspath(data_dir)
        if "://" in self.data_dir:
            raise UserError(f"data_dir={data_dir}: tasks read local folders; copy the files to one")
        self.notes: dict[str, dict[str, int]] = {}

    def __getstate__(self):
        # A worker process has a tokenizer of its own.
        return {name: value for name, value in vars(self).items() if name != "tokenizer"}

    # The model and its training.

    @property
    def head(self) -> dict:
        raise NotImplementedError

    def head_on(self, settings: dict, config) -> dict:
        """Return `head`, with the parts that it takes from the model that fine-tuning starts from.

        Args:
          settings: of that model's `model.json`.
          config: FinetuneConfig.
        """
        return self.head

    def network(self, loaded):
        """Return the Keras model that computes the outputs which `predictions` reads.

        Args:
          loaded: the `LoadedModel` of a folder that fine-tuning wrote.
        """
        return loaded.model

    @classmethod
    def forward_flops(cls, bert, rows: int, length: int) -> float:
        """Return the FLOPs of one forward pass of the task's model on [rows, length] tokens.

        Args:
          bert: BertConfig.
        """
        return bert.encoder_flops(rows, length)

    @classmethod
    def mean_windows(cls, length: int, options: dict) -> float:
        """Return the rows that an example takes on average, to estimate costs.

        Args:
          length: tokens a row.
          options: of the task.
        """
        return 1.0

    def check_training(self, config, bert) -> None:
        """Raise UserError where the options of a fine-tuning do not suit the task.

        Args:
          config: FinetuneConfig.
          bert: BertConfig of the model; None where it is not known yet.
        """

    # Examples, and the rows of users' files.

    def settings(self) -> dict:
        """Return the options that make this task again without its data files, as plain data."""
        raise NotImplementedError

    @property
    def reads_tfds(self) -> bool:
        """Return whether the examples come from TFDS, because no file is named."""
        return False

    def examples(self, split: str) -> list:
        """Return all examples of a split, in the order of the file; unknown labels are None.

        Raises:
          UserError: there is no such split, or it cannot be read.
        """
        check_choice("split", split, self.splits, f"task {self.name}")
        return self._read_split(split)

    def _read_split(self, split: str) -> list:
        """Read the examples of one of `splits`."""
        raise NotImplementedError

    def example(self, fields: dict):
        """Return an example without label from {input field: text}, to predict on a user's file."""
        raise NotImplementedError

    @property
    def wanted(self) -> tuple[tuple[str, ...], ...]:
        return (self.input_fields,)

    def inputs(self, path: str, format: str = "") -> Inputs:
        """Return the rows of a user's file, with an example without label for each.

        Args:
          path: a file of any of `table.FORMATS`; "-" is standard input.
          format: one of them, if the user says it.

        Raises:
          UserError: nothing shows where the texts are, or (later, in reading) a row has none.
        """
        table = formats.detect_format(
            path, self.wanted, names=self.header, texts=True, format=format, hint=self.hint
        )
        return Inputs(self.rows_and_examples(table), table)

    def rows_and_examples(self, table: Table) -> Iterator[tuple[list[dict], Any]]:
        """Yield `Inputs.rows` of a table whose wanted columns are the input fields."""
        for number, row in table.rows(self.short_rows, blank_lines=True):
            if row is None:
                yield [{}], None
                continue
            reading.check_texts(row, table.found, table.where(number))
            texts = [row[column] for column in table.found]
            fields = dict(zip(self.input_fields, texts, strict=True))
            empty = not any(map(str.strip, texts))
            yield [row], None if empty else self.example({"id": row.get("id", number), **fields})

    def answers(self, rows: list[dict], prediction: dict) -> list[dict]:
        """Return an answer for each of some rows, from the prediction for their example."""
        return [prediction]

    # Features and predictions.

    def features(self, example, tokenizer, max_seq_length: int) -> list[dict]:
        """Return the features of an example, one or more (windows): dicts of lists and numbers.

        Lists are not padded. Every dict has `input_ids`, `segment_ids` and `truncated` (1 where
        text was cut off), the head's labels where the example has them, and the places in the text
        that `predictions` needs. `featurize` adds `example_index`.
        """
        raise NotImplementedError

    def predictions(self, examples: list, features, outputs: dict) -> list[dict]:
        """Return a plain dict for each example.

        Args:
          features: `FeatureSet` or list of feature dicts, several of which may belong to one
            example.
          outputs: {output name of the model: array or list with a row for each feature}; rows may
            be longer than the feature (padding), never shorter.
        """
        raise NotImplementedError

    def tune(self, examples: list, predictions: list[dict]) -> list[dict]:
        """Choose on dev what is chosen there (SQuAD 2.0's threshold), and keep it in `settings`.

        Return the predictions, decided again.
        """
        return predictions

    def write(self, path, predictions: list[dict]) -> list[str]:
        """Write predictions in the benchmark's format, or as a JSON object a line; return the
        paths.

        `path` is the file to write, or an existing folder for a file with the usual name. Further
        files of a format are written beside it.
        """
        path = self._output_path(path)
        with atomic_write(path) as file:
            file.writelines(json.dumps(prediction) + "\n" for prediction in predictions)
        return [path]

    def _output_path(self, path) -> str:
        if os.path.isdir(path):
            return os.path.join(path, self.prediction_file)
        return os.fspath(path)

    # Scores.

    def score(self, examples: list, predictions: list[dict]) -> dict[str, float]:
        """Return the official metrics, on a scale of 0 to 1 (correlations: -1 to 1)."""
        raise NotImplementedError

    def baseline(self, train_examples: list, examples: list) -> dict[str, float]:
        """Return the metrics of an answer that needs no model, which a score has to beat."""
        raise NotImplementedError

    def clusters(self, examples: list) -> list:
        """Return a value for each example; examples with equal values are not independent.

        Examples of such clusters are phrases of a sentence, questions of an article, sentences of a
        document.
        """
        return list(range(len(examples)))

    def statistics(self, examples: list, predictions: list[dict]) -> dict:
        """Return {metric: (measure, float64 [examples, k])} for metrics that are functions of sums.

        The sums over the examples give the metric through its measure, a key of `measures.MEASURES`
        or of an extension's `measures`. Means of the examples' scores need not be here.
        """
        return {}

    def analysis(self, examples: list, predictions: list[dict], mistakes: int = 20) -> dict:
        """Return confusion matrix, per-class scores and most confident mistakes, as plain data."""
        return {}

    def is_labelled(self, examples: list) -> bool:
        """Return whether all examples have labels to score against."""
        return all(getattr(example, self.gold, None) is not None for example in examples)

    def _golds(self, examples: list, what: str = "examples have no labels"):
        """Return the labels of the examples; raise UserError where one has none."""
        golds = [getattr(example, self.gold) for example in examples]
        if any(gold is None for gold in golds):
            raise UserError(f"task {self.name}: these {what} to score against")
        return golds


class FileTask(Task):
    """A task that reads a file for each split."""

    def __init__(
        self, data_dir: str = "", *, train_file: str = "", dev_file: str = "", test_file: str = ""
    ):
        """
        Args:
          train_file, dev_file, test_file: names in `data_dir`, if they are not the usual ones.
        """
        super().__init__(data_dir)
        self.files = {"train": train_file, "dev": dev_file, "test": test_file}


class TfdsTask(FileTask):
    """A task that reads TFDS if no file is named."""

    def __init__(self, data_dir: str = "", *, tfds_dir: str = "", **options):
        """
        Args:
          tfds_dir: TFDS's own data folder, "" for its default.
        """
        super().__init__(data_dir, **options)
        self.tfds_dir = os.fspath(tfds_dir)

    @property
    def reads_tfds(self) -> bool:
        return not self.data_dir and not any(self.files.values())


class MissingFile(UserError):
    """The data folder has no file for a split; most folders lack some."""


def head_of(kind: str, labels=(), problem: str = "", **more) -> dict:
    """Return a `Task.head` with an output for each label."""
    labels = list(labels)
    return {"head": kind, "num_labels": len(labels), "labels": labels, "problem": problem} | more


def label_list(labels) -> list[str]:
    """Return the labels of an option: a list, or names with commas between.

    Raises:
      UserError: a label occurs twice.
    """
    if isinstance(labels, str):
        labels = [label.strip() for label in labels.split(",") if label.strip()]
    check_once(labels, "labels")
    return list(labels)


def find_file(data_dir: str, names, what: str) -> str:
    """Return the first of `names` (relative to `data_dir`) that exists.

    Raises:
      MissingFile: none exists; the message lists the names that were tried.
    """
    tried = [str(pathlib.Path(data_dir, name)) for name in names]
    for path in tried:
        if os.path.isfile(path):
            return path
    where, hint = f" in {data_dir}", ""
    if not data_dir:
        where, hint = "", "; set data_dir to the folder of the files"
    elif what == "train" and (others := _files_like(data_dir, names)):
        hint = f"; it holds {first_of(others, 3)}: a file may itself be data_dir"
    raise MissingFile(f"no file for {what}: looked for {', '.join(names)}{where}{hint}")


def _files_like(folder: str, names) -> list[str]:
    """Return the files of a folder with an ending of one of the names."""
    endings = tuple({pathlib.Path(name).suffix for name in names} - {""})
    found = os.listdir(folder) if os.path.isdir(folder) else ()
    return sorted(name for name in found if name.endswith(endings))
