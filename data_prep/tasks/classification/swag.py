"""SWAG (section 4.4) and other multiple-choice tasks: find the right ending of a text.

Each choice is a sequence, `[CLS] sentence A [SEP] ending [SEP]`; the dot product of a vector V with
its pooled output is its score.
"""

import dataclasses

from data_prep.tasks.classification.sequence_classification import Classification
from data_prep.tasks.split_files import SplitTask
from data_prep.tasks.task import head_of
from official_bert.common.errors import UserError
from official_bert.tokenization import sequences


@dataclasses.dataclass(frozen=True)
class ChoiceExample:
    """A context with its possible endings.

    `context`: sentence A; `endings`: sentence B of each choice; `label`: index of the right one.
    """

    id: str
    context: str
    endings: tuple[str, ...]
    label: int | None = None


class Swag(SplitTask, Classification):
    """CSV files with SWAG's header: sent1, sent2 and ending0, ending1, ...; label where known.

    Sentence A is sent1; a choice is sent2, the beginning of the next sentence, and an ending.
    """

    metrics = ("accuracy",)
    hint = "; --task_options.num_choices= says how many endings there are"
    optional = ("label",)
    about_windows = "a choice is read as one row; raise max_seq_length"
    endings = (".csv", ".tsv", ".jsonl", ".json", ".parquet")

    def __init__(self, data_dir: str = "", *, num_choices: int = 4, **options):
        """
        Args:
          data_dir: folder of train.csv, val.csv and test.csv, or one file, the training file.
          num_choices: endings of a question.
        """
        super().__init__(data_dir, **options)
        if num_choices < 2:
            raise UserError(f"num_choices={num_choices}; it is at least 2")
        self.num_choices = num_choices
        self.ending_columns = tuple(f"ending{index}" for index in range(num_choices))
        self.input_fields = ("sent1", "sent2", *self.ending_columns)

    @property
    def labels(self) -> list[int]:
        return list(range(self.num_choices))

    @property
    def head(self) -> dict:
        return head_of("multiple_choice", map(str, self.labels), "multiple_choice")

    def settings(self) -> dict:
        return {"num_choices": self.num_choices}

    def _read_split(self, split: str) -> list[ChoiceExample]:
        examples = []
        for index, row, where in self.rows(split, self.table(split)):
            label = self._label(row.get("label"), split, where)
            examples.append(dataclasses.replace(self._example(row, index), label=label))
        return examples

    def example(self, fields: dict) -> ChoiceExample:
        return self._example(fields, "")

    def texts(self, example: ChoiceExample) -> list[str]:
        """Return the texts that `features` will tokenise."""
        return [example.context, *example.endings]

    def features(self, example: ChoiceExample, tokenizer, max_seq_length: int) -> list[dict]:
        """Return one feature, whose lists hold a list for each choice."""
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

    def analysis(self, examples, predictions, mistakes: int = 20) -> dict:
        found = super().analysis(examples, predictions, mistakes)
        return {name: found[name] for name in ("confusion", "mistakes")}

    def _told(self, example, answer) -> dict:
        gold, predicted = (example.endings[label] for label in (example.label, answer))
        return {"text": example.context, "gold": gold, "predicted": predicted}

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
    """CODAH's TSV without header: category, prompt, four endings, label.

    The dev split is held out by prompt.
    """

    def __init__(self, data_dir: str = "", *, dev_fraction: float = 0.2):
        """
        Args:
          data_dir: the folder of full_data.tsv.
          dev_fraction: the share held out; CODAH itself is evaluated with five folds.
        """
        super().__init__(data_dir, train_file="full_data.tsv", dev_fraction=dev_fraction)
        self.input_fields = ("sent1", *self.ending_columns)
        self.header = ("category", *self.input_fields, "label")

    def settings(self) -> dict:
        return {}
