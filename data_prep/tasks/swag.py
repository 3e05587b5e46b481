"""SWAG (section 4.4) and other multiple-choice tasks: which ending is the right one?

Each choice is a sequence of its own, `[CLS] sentence A [SEP] ending [SEP]`; a vector V dotted with
each pooled output scores them.
"""

import dataclasses

import numpy as np

from data_prep.tasks import look, metrics
from data_prep.tasks.sequence_classification import softmax, write_answers
from data_prep.tasks.split_files import SplitFiles
from data_prep.tasks.task import Task
from official_bert.common.errors import UserError
from official_bert.tokenization import sequences


@dataclasses.dataclass(frozen=True)
class ChoiceExample:
    """`context`: sentence A; `endings`: sentence B of each choice; `label`: index of the right
    one.
    """

    id: str
    context: str
    endings: tuple[str, ...]
    label: int | None = None


class Swag(Task):
    """CSV files with SWAG's header: sent1, sent2 and ending0, ending1, ...; label where known.

    Sentence A is sent1; a choice is sent2, the beginning of the next sentence, and an ending.
    """

    metrics = ("accuracy",)
    prediction_file = "predictions.tsv"
    hint = "; --task_options.num_choices= says how many endings there are"
    about_windows = "a choice is read as one row; raise max_seq_length"

    def __init__(
        self,
        data_dir: str = "",
        *,
        train_file: str = "",
        dev_file: str = "",
        test_file: str = "",
        num_choices: int = 4,
        dev_fraction: float = 0.0,
    ):
        """
        Args:
          data_dir: folder of train.csv, val.csv and test.csv, or one file, the training file.
          train_file, dev_file, test_file: names there where they are not the usual ones.
          dev_fraction: where there is no dev file, hold out this part of the training file,
            questions with the same sentence A together.
        """
        super().__init__(data_dir)
        if num_choices < 2:
            raise UserError(f"num_choices={num_choices}; it is at least 2")
        self.num_choices = num_choices
        files = {"train": train_file, "dev": dev_file, "test": test_file}
        self.files = SplitFiles(self.data_dir, files, dev_fraction, self._endings_of_files())
        self.ending_columns = tuple(f"ending{index}" for index in range(num_choices))
        self.input_fields = ("sent1", "sent2", *self.ending_columns)

    @property
    def head(self) -> dict:
        labels = [str(index) for index in range(self.num_choices)]
        return {
            "head": "multiple_choice",
            "num_labels": self.num_choices,
            "labels": labels,
            "problem": "multiple_choice",
        }

    def settings(self) -> dict:
        return {"num_choices": self.num_choices}

    def examples(self, split: str) -> list[ChoiceExample]:
        self._check_split(split)
        examples = []
        for index, row, where in self.files.rows(split, self._look):
            label = self._label(row.get("label"), split, where)
            examples.append(dataclasses.replace(self._example(row, index), label=label))
        return examples

    def _look(self, path: str) -> look.Table:
        return look.look(path, self.wanted, names=self.header, hint=self.hint)

    def example(self, fields: dict) -> ChoiceExample:
        return self._example(fields, "")

    def texts(self, example: ChoiceExample) -> list[str]:
        """What `features` will tokenise."""
        return [example.context, *example.endings]

    def features(self, example: ChoiceExample, tokenizer, max_seq_length: int) -> list[dict]:
        """One feature, whose lists hold one list a choice."""
        context = tokenizer.encode(example.context)
        choices = [
            sequences.pack(tokenizer, context, tokenizer.encode(ending), max_seq_length)
            for ending in example.endings
        ]
        feature = {
            "input_ids": [choice["input_ids"] for choice in choices],
            "segment_ids": [choice["segment_ids"] for choice in choices],
            "truncated": max(choice["truncated"] for choice in choices),
        }
        if example.label is not None:
            feature["label_ids"] = example.label
        return [feature]

    def predictions(self, examples, features, outputs) -> list[dict]:
        """{"id", "label": index of the best choice, "probabilities"}."""
        logits = np.asarray(outputs["logits"], np.float64)
        return [
            {
                "id": example.id,
                "label": int(np.argmax(row)),
                "probabilities": [float(p) for p in row],
            }
            for example, row in zip(examples, softmax(logits), strict=True)
        ]

    def score(self, examples, predictions) -> dict[str, float]:
        predicted = [prediction["label"] for prediction in predictions]
        return {"accuracy": float(np.mean(np.equal(self._golds(examples), predicted)))}

    def baseline(self, train_examples, examples) -> dict[str, float]:
        """Always the choice that is right most often in training."""
        counts = np.bincount(
            [e.label for e in train_examples if e.label is not None], minlength=self.num_choices
        )
        return self.score(examples, [{"label": int(np.argmax(counts))}] * len(examples))

    def write(self, path, predictions) -> list[str]:
        """A TSV with the columns id, label and the probability of each choice."""
        return write_answers(self._output_path(path), "label", self.head["labels"], predictions)

    def analysis(self, examples, predictions, mistakes: int = 20) -> dict:
        gold = self._golds(examples)
        predicted = [prediction["label"] for prediction in predictions]
        wrong = [index for index in range(len(gold)) if gold[index] != predicted[index]]
        wrong.sort(key=lambda index: -max(predictions[index]["probabilities"]))
        return {
            "confusion": metrics.confusion(gold, predicted, list(range(self.num_choices))),
            "mistakes": [
                {
                    "id": examples[index].id,
                    "text": examples[index].context,
                    "gold": examples[index].endings[gold[index]],
                    "predicted": examples[index].endings[predicted[index]],
                    "confidence": max(predictions[index]["probabilities"]),
                }
                for index in wrong[:mistakes]
            ],
        }

    def _endings_of_files(self) -> tuple[str, ...]:
        return (".csv", ".tsv", ".jsonl", ".json", ".parquet")

    def _example(self, row: dict, index) -> ChoiceExample:
        start = row.get("sent2", "").strip()
        endings = [f"{start} {row[column].strip()}".strip() for column in self.ending_columns]
        # SWAG's first column has no name and numbers the rows.
        id = row.get("id", row.get("", index))
        return ChoiceExample(str(id), row["sent1"].strip(), tuple(endings))

    def _label(self, text, split: str, where: str) -> int | None:
        if text is None or text == "":
            if split == "test":
                return None
            raise UserError(f"{where}: no label")
        if str(text) not in self.head["labels"]:
            raise UserError(f"{where}: label {text!r}, expected 0 to {self.num_choices - 1}")
        return int(text)


class Codah(Swag):
    """CODAH's TSV without header: category, prompt, four endings, label; dev is held out by
    prompt.
    """

    def __init__(self, data_dir: str = "", *, dev_fraction: float = 0.2):
        """
        Args:
          data_dir: the folder of full_data.tsv.
          dev_fraction: the part held out; CODAH itself is used with five folds.
        """
        super().__init__(data_dir, train_file="full_data.tsv", dev_fraction=dev_fraction)
        self.input_fields = ("sent1", *self.ending_columns)
        self.header = ("category", *self.input_fields, "label")

    def settings(self) -> dict:
        return {}
