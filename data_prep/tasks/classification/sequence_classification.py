"""Classes or a number for one or two texts: the common part of GLUE and own data.

Section 4.1 of the paper: the final vector of [CLS] feeds one new layer. Subclasses read the files;
everything from features to scores is here.
"""

import collections
import dataclasses

import numpy as np

from data_prep.tasks import metrics, text_groups
from data_prep.tasks.task import FileTask, MissingFile, head_of
from official_bert.common.errors import UserError, check_choice
from official_bert.common.files import atomic_write
from official_bert.export.text_answers import class_of
from official_bert.span_answers import shares
from official_bert.tokenization import sequences
from official_bert.tokenization.windows import pack_windows
from official_bert.window_pooling import POOLINGS

# The scores of each kind of problem, the main one first.
METRICS = {
    "single_label": ("accuracy", "macro_f1"),
    "multi_label": ("micro_f1", "macro_f1", "exact_match"),
    "regression": ("pearson", "spearman", "mean_squared_error"),
}


@dataclasses.dataclass(frozen=True)
class TextExample:
    """One or two texts, and their label.

    `label` is a str, a tuple of str (multi-label), a float, or None (unknown).
    """

    id: str
    text_a: str
    text_b: str | None = None
    label: str | tuple[str, ...] | float | None = None


class Classification(FileTask):
    """Predictions and scores by labels; a subclass defines `labels` and the features."""

    prediction_file = "predictions.tsv"
    baseline_is = "gives every text the same answer"
    problem = "single_label"

    @property
    def labels(self) -> list:
        """The class labels in the order of the model's outputs; empty for regression."""
        raise NotImplementedError

    def predictions(self, examples, features, outputs) -> list[dict]:
        """Return `label` and `probabilities`, or `labels` (multi-label), or `value`, of each
        example."""
        logits = np.asarray(outputs["logits"], np.float64)
        if len(logits) != len(examples):
            raise ValueError(f"{len(logits)} rows of logits for {len(examples)} examples")
        if self.problem == "regression":
            rows = logits.reshape(len(examples))
        else:
            rows = shares(logits) if self.problem == "single_label" else 1 / (1 + np.exp(-logits))
        return [
            {"id": example.id, **class_of(row, self.problem, self.labels)}
            for example, row in zip(examples, rows, strict=True)
        ]

    def score(self, examples, predictions) -> dict[str, float]:
        gold, predicted = self._gold_and_predicted(examples, predictions)
        if self.problem == "regression":
            scores = metrics.regression_scores(gold, predicted)
        elif self.problem == "multi_label":
            scores = metrics.multi_label_scores(gold, predicted)
        else:
            scores = metrics.classification_scores(gold, predicted, list(self.labels))
        scores = {name: scores[name] for name in self.metrics}
        if self.problem == "multi_label":
            ranked = np.array([prediction["probabilities"] for prediction in predictions])
            scores |= metrics.ranking_scores(gold, ranked)
        return scores

    def baseline(self, train_examples, examples) -> dict[str, float]:
        """Return the scores of the most frequent training label, or of the training mean.

        Multi-label: of the labels that more than half of the training examples have (or of the most
        frequent).
        """
        golds = [example.label for example in train_examples if example.label is not None]
        if self.problem == "regression":
            answer = {"value": float(np.mean(golds))}
        elif self.problem == "multi_label":
            counts = collections.Counter(label for labels in golds for label in labels)
            shares = {label: counts[label] / len(golds) for label in self.labels}
            often = [label for label, share in shares.items() if share > 0.5]
            answer = {
                "labels": often or [max(self.labels, key=lambda label: counts[label])],
                "probabilities": list(shares.values()),
            }
        else:
            counts = collections.Counter(golds)
            answer = {"label": max(self.labels, key=lambda label: counts[label])}
        return self.score(examples, [answer] * len(examples))

    def write(self, path, predictions) -> list[str]:
        """Write a TSV with the columns id, label(s) and a probability for each label, or the
        value."""
        kind = {"regression": "value", "multi_label": "labels"}.get(self.problem, "label")
        return write_answers(self._output_path(path), kind, self.head["labels"], predictions)

    def analysis(self, examples, predictions, mistakes: int = 20) -> dict:
        """Return {"confusion" (single label), "per_class", "mistakes"}.

        The most confident (or largest) mistakes come first.
        """
        gold, predicted = self._gold_and_predicted(examples, predictions)
        found = {"mistakes": self._mistakes(examples, predictions, mistakes)}
        if self.problem == "single_label":
            found["confusion"] = metrics.confusion(gold, predicted, list(self.labels))
        if self.problem != "regression":
            found["per_class"] = metrics.per_class(gold, predicted, list(self.labels))
        return found

    def _mistakes(self, examples, predictions, number: int) -> list[dict]:
        found = []
        for example, prediction in zip(examples, predictions, strict=True):
            if self.problem == "regression":
                answer, size = prediction["value"], abs(prediction["value"] - example.label)
            elif self.problem == "multi_label":
                # The label with the most confident mistake.
                truth = self._label_ids(example.label)
                gaps = np.abs(np.subtract(prediction["probabilities"], truth))
                answer, size = prediction["labels"], float(np.max(gaps))
                if set(answer) == set(example.label):
                    continue
            else:
                answer, size = prediction["label"], max(prediction["probabilities"])
                if answer == example.label:
                    continue
            found.append((size, example, answer))
        found.sort(key=lambda mistake: -mistake[0])
        name = "error" if self.problem == "regression" else "confidence"
        return [
            {"id": example.id, **self._told(example, answer), name: size}
            for size, example, answer in found[:number]
        ]

    def _told(self, example, answer) -> dict:
        """Return the fields of a mistake for the report."""
        text = "\n".join(self.texts(example))
        return {"text": text, "gold": example.label, "predicted": answer}

    def _label_ids(self, label):
        if self.problem == "regression":
            return float(label)
        if self.problem == "multi_label":
            return [float(name in label) for name in self.labels]
        return self._label_index[label]

    @property
    def _label_index(self) -> dict[str, int]:
        return {label: index for index, label in enumerate(self.labels)}

    def _gold_and_predicted(self, examples, predictions):
        gold = self._golds(examples)
        if self.problem == "regression":
            return gold, [prediction["value"] for prediction in predictions]
        if self.problem == "multi_label":
            rows = [self._label_ids(prediction["labels"]) for prediction in predictions]
            return np.array([self._label_ids(g) for g in gold], int), np.array(rows, int)
        return gold, [prediction["label"] for prediction in predictions]


class SequenceClassification(Classification):
    """Classification of one or two texts; a subclass defines `labels` and `_read_split`."""

    truncation = "head"

    @classmethod
    def mean_windows(cls, length, options):
        return float(options.get("windows") or 1)  # all that a text may take

    def __init__(
        self,
        data_dir: str = "",
        *,
        dev_from_train: int = 0,
        folds: int = 0,
        fold: int = 1,
        windows: int = 0,
        window_pooling: str = "mean",
        window_overlap: int = 0,
        **options,
    ):
        """
        Args:
          dev_from_train: evaluate on this many examples of the training file, which are not trained
            on, whether there is a dev file or not.
          folds, fold: divide all labelled examples, of train and of dev (if there is a dev file),
            into this many parts; evaluate on part `fold` and train on the others. Examples that
            share a text are in one part. 0: as the files are.
          windows: read a text longer than max_seq_length in at most this many windows of that
            length, of a pair the longer text beside the other one; 0: cut it.
          window_pooling: how the windows' vectors are pooled: "mean", "max" or "first_last", the
            mean of the first and the last.
          window_overlap: tokens that a window shares with the one before it.
        """
        super().__init__(data_dir, **options)
        if windows < 0 or window_overlap < 0:
            raise UserError(f"{windows=}, {window_overlap=}: neither may be negative")
        check_choice("window_pooling", window_pooling, POOLINGS)
        if not windows and (window_pooling, window_overlap) != ("mean", 0):
            raise UserError("window_pooling and window_overlap are of windows; set windows too")
        self.windows, self.window_pooling = windows, window_pooling
        self.window_overlap = window_overlap
        if dev_from_train < 0:
            raise UserError(f"dev_from_train={dev_from_train}; it is a number of examples, or 0")
        if folds and dev_from_train:
            raise UserError("folds and dev_from_train are both set; choose one")
        if (folds, fold) != (0, 1) and (folds < 2 or not 1 <= fold <= folds):
            raise UserError(f"folds={folds}, fold={fold}; folds are 2 or more, fold is 1 to folds")
        self.dev_from_train, self.folds, self.fold = dev_from_train, folds, fold

    @property
    def head(self) -> dict:
        windows = {"windows": self.window_pooling} if self.windows else {}
        if self.problem == "regression":
            windows["num_labels"] = 1
        return head_of("classification", self.labels, self.problem, **windows)

    def examples(self, split: str) -> list[TextExample]:
        if not (self.dev_from_train or self.folds) or split not in ("train", "dev"):
            return super().examples(split)
        examples = super().examples("train")
        if self.folds:
            try:
                examples = [*examples, *super().examples("dev")]
            except MissingFile:
                if self.files["dev"]:
                    raise
            parts = text_groups.folds(examples, self.folds)
            return [
                dataclasses.replace(example, id=str(number))
                for number, (example, part) in enumerate(zip(examples, parts, strict=True))
                if (part == self.fold) == (split == "dev")
            ]
        train, dev = text_groups.dev_from_train(examples, self.dev_from_train)
        if split == "dev":
            self.notes["dev"] = {"from_training_file": len(dev)}
            return dev
        self.notes.setdefault("train", {})["held_out_for_dev"] = len(dev)
        return train

    def settings(self) -> dict:
        names = ("windows", "window_pooling", "window_overlap")
        return {name: getattr(self, name) for name in names if self.windows}

    def _number(self, value, where: str) -> float:
        """Return a label as a number of float32's range.

        Raise UserError where it is not one.
        """
        try:
            found = float(value)
        except (TypeError, ValueError, OverflowError):
            found = np.nan
        if not abs(found) <= float(np.finfo("float32").max):  # which models compute in
            raise UserError(f"{where} is {value!r}, expected a number")
        return found

    def example(self, fields: dict) -> TextExample:
        text_a, *text_b = (fields[name] for name in self.input_fields)
        return TextExample(str(fields.get("id", "")), text_a, text_b[0] if text_b else None)

    def texts(self, example: TextExample) -> list[str]:
        """Return the texts that `features` will tokenise, so that `featurize` can do many at
        once."""
        return [example.text_a] if example.text_b is None else [example.text_a, example.text_b]

    def features(self, example: TextExample, tokenizer, max_seq_length: int) -> list[dict]:
        """Return one feature; with windows its lists hold one list for each window that may be.

        Windows behind a text's end are empty.
        """
        first, *second = (tokenizer.encode(text) for text in self.texts(example))
        how = tokenizer, first, second[0] if second else None, max_seq_length, self.truncation
        if self.windows:
            rows, cut = pack_windows(*how, self.windows, self.window_overlap)
            empty = [[]] * (self.windows - len(rows))
            names = ("input_ids", "segment_ids")
            feature = {name: [row[name] for row in rows] + empty for name in names}
            feature["truncated"] = int(cut)
        else:
            feature = sequences.pack(*how)
        if example.label is not None:
            feature["label_ids"] = self._label_ids(example.label)
        return [feature]

    def statistics(self, examples, predictions):
        golds = [example.label for example in examples]
        if self.problem == "regression":
            values = [float(prediction["value"]) for prediction in predictions]
            return metrics.correlation_sums(np.array(golds, np.float64), np.array(values))
        if self.problem != "single_label":
            return {}
        texts = [str(gold) for gold in golds], [str(one["label"]) for one in predictions]
        positive = str(self.labels[1]) if len(self.labels) == 2 else None
        found = metrics.classification_sums(*texts, positive)
        return {metric: found[metric] for metric in self.metrics if metric in found}

    def clusters(self, examples: list) -> list:
        """Cluster examples that share a text or, if single texts, five consecutive words."""
        return text_groups.clusters_of_texts(examples)


def write_answers(path: str, kind: str, labels: list[str], predictions: list[dict]) -> list[str]:
    """Write a TSV with the columns id, `kind`, and a probability for each label."""
    with atomic_write(path) as file:
        names = [f"probability_{_one_field(label)}" for label in labels]
        file.write("\t".join(["id", kind, *names]) + "\n")
        for prediction in predictions:
            answer = prediction[kind]
            answer = ",".join(answer) if kind == "labels" else str(answer)
            values = [f"{p:.6g}" for p in prediction.get("probabilities", [])]
            file.write("\t".join([prediction["id"], _one_field(answer), *values]) + "\n")
    return [path]


def _one_field(text: str) -> str:
    return text.replace("\t", " ").replace("\n", " ")
