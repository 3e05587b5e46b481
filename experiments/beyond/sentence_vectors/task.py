"""Texts that belong together: pairs, pairs with a score, triplets, or texts alone.

The columns of a file say which of them it holds. A column of scores makes scored pairs, which train
cosines (`cosine`) and are scored by Spearman's correlation. Two texts without a score are a
question and its answer, with hard negatives in further columns: they train in-batch negatives
(`in_batch`) and are scored as retrieval, where an example's second text is to be found among those
of all. Texts alone, a line each, train as SimCSE does (Gao et al. 2021): each is its own second
text, which dropout makes another.
"""

import contextlib
import dataclasses

import numpy as np

from data_prep.tasks import metrics, text_groups
from data_prep.tasks.files import formats
from data_prep.tasks.split_files import SplitTask
from data_prep.tasks.task import MissingFile, label_list
from experiments.beyond.sentence_vectors.options import SentenceOptions
from experiments.beyond.sentence_vectors.similarity import TextVectors, retrieval_scores
from experiments.training.start import preflight
from official_bert.checkpoints.sentence_vectors import NORMALIZE, SentenceVectors
from official_bert.common.errors import UserError
from official_bert.tokenization import sequences

# Names of columns that say by themselves what the texts are, tried in this order.
_PAIRS = (
    ("anchor", "positive"),
    ("sentence1", "sentence2"),
    ("query", "passage"),
    ("question", "sentence"),
    ("question", "answer"),
    ("premise", "hypothesis"),
    ("text_a", "text_b"),
)
_ALONE = ("sentence",), ("text",)
# Columns that say which pairs belong together; nobody trains on all rows of such a file unasked.
_LABELS = ("label", "gold_label", "is_duplicate")


@dataclasses.dataclass(frozen=True)
class TextGroup:
    """Texts that are compared.

    Attributes:
      id: of the row.
      texts: the first, what belongs to it, hard negatives; "" is absent.
      score: how alike the first two are, 1 as the highest; None where they are a right pair.
    """

    id: str
    texts: tuple[str, ...]
    score: float | None = None

    @property
    def text_a(self):
        return self.texts[0]

    @property
    def text_b(self):
        return self.texts[1]


class SentenceVectorsTask(SplitTask):
    """Texts in, their vectors compared."""

    name = "sentence_vectors"
    endings = (*SplitTask.endings, ".txt")
    baseline_is = "compares TF-IDF vectors of words"
    scoring = (
        "cosines: of scored pairs the correlation with the scores; of others the place of the "
        "second text among those of all rows, ties against it"
    )
    hint = (
        ". --task_options.text_column= and text_b_column= name others (negative_column, "
        "score_column too); where the first line is no header, --task_options.columns= names all"
    )
    input_fields = ("text_a", "text_b")
    reading_options = (
        "text_column", "text_b_column", "negative_column", "score_column", "columns", "keep",
        "highest_score", "recall_at",
    )  # fmt: skip

    def __init__(
        self,
        data_dir: str = "",
        *,
        text_column: str = "",
        text_b_column: str = "",
        negative_column: str = "negative",
        score_column: str = "score",
        columns: str | list[str] | tuple[str, ...] = (),
        keep: str = "",
        highest_score: float = 1.0,
        recall_at: int = 10,
        **options,
    ):
        """Options.

        Args:
          text_column, text_b_column: names of the columns of the texts; by default usual names
            ("anchor" and "positive", "sentence1" and "sentence2", "text", ...) are looked for.
          negative_column: name of a column of hard negatives, or several with commas between; read
            where they are there. A cell may be empty, in JSON and Parquet a list.
          score_column: name of the column of scores, read where it is there; "": none is.
          columns: the names of all columns, where the files have no header.
          keep: "COLUMN=VALUE": only rows with that value are read, as label=entailment; a file of
            scored pairs need not have the column.
          highest_score: score of a pair whose texts mean the same, 5 in STS-B; training divides by
            it.
          recall_at: how many texts are looked at where recall is measured, beside 1.
        """
        super().__init__(data_dir, **options)
        if text_b_column and not text_column:
            raise UserError("text_b_column is set but text_column is not")
        if not highest_score > 0 or recall_at < 2:
            raise UserError(f"{highest_score=} (above 0), {recall_at=} (2 or more)")
        column, equals, _ = keep.partition("=")
        if keep and not (column and equals):
            raise UserError(f"keep={keep} is not COLUMN=VALUE, as label=entailment")
        self.text_column, self.text_b_column = text_column, text_b_column
        self.negative_column, self.score_column = negative_column, score_column
        self.negatives = tuple(label_list(negative_column))
        self.header, self.keep = tuple(label_list(columns)), keep
        self.highest_score, self.recall_at = highest_score, recall_at
        self.kept_column = column
        others = (*self.negatives, score_column, column, *_LABELS)
        self.optional = tuple(dict.fromkeys(filter(None, others)))

    @property
    def head(self):
        return {"head": "sentence_vectors", "problem": "", "answers": ("similarity",)}

    @property
    def metrics(self):
        """The scores of dev, which its columns decide; without a file those of retrieval."""
        with contextlib.suppress(MissingFile):
            if self._kind(self.table("dev")) == "scored":
                return ("spearman", "pearson")
        return ("mrr", "recall_at_1", f"recall_at_{self.recall_at}")

    @property
    def objective(self):
        """The objective, which the columns of the training file decide."""
        return "cosine" if self._kind(self.table("train")) == "scored" else "in_batch"

    @property
    def whole_batches(self):
        return self.objective == "in_batch"

    def head_on(self, settings, config):
        """Return the head, whose vectors are made as the model's are, or as the options say.

        Raises:
          UserError: the model's vectors are none that are trained here.
        """
        options = SentenceOptions.of(config)
        vectors = SentenceVectors((options.pooling or "mean",))
        if "embedding" in settings and not options.pooling:
            vectors = SentenceVectors.from_settings(settings["embedding"], f"{config.model}")
            told = vectors.refused or (vectors.lower_case or vectors.prompts) and vectors
            if told:
                raise UserError(
                    f"{config.model}: its vectors are made as is not trained here ({told}); "
                    "--config.pooling=mean (or another) trains them without that"
                )
        return {
            **self.head,
            "objective": self.objective,
            "temperature": options.temperature,
            "poolings": vectors.poolings,
            "normalize": NORMALIZE in vectors.steps,
        }

    def network(self, loaded):
        from experiments.beyond.sentence_vectors.model import SentenceEncoder

        return SentenceEncoder(loaded.encoder, poolings=loaded.vectors.poolings)

    def check_training(self, config, bert):
        losses = [one for one in config.model_options if one.adds_loss]
        preflight.refuse(config, ("bilstm",), losses, config.task)
        if self.whole_batches and config.gradient_accumulation > 1:
            raise UserError(
                f"--config.gradient_accumulation={config.gradient_accumulation}: in-batch "
                "negatives are of the whole batch; leave it out (--config.remat=true saves memory)"
            )
        rates = bert and (bert.hidden_dropout_prob, bert.attention_probs_dropout_prob)
        alone = self._kind(self.table("train")) == "texts"
        if alone and rates and not (max(rates) if config.dropout < 0 else config.dropout):
            raise UserError(
                f"--config.task={config.task}: of texts alone each is compared with itself under "
                "another dropout, and this model has none; set --config.dropout=0.1"
            )

    def settings(self):
        return {
            **{name: getattr(self, name) for name in self.reading_options if name != "columns"},
            "columns": list(self.header),
        }

    @property
    def wanted(self):
        if self.text_b_column:
            return ((self.text_column, self.text_b_column),)
        return _PAIRS

    def table(self, split):
        path, _ = self.source(split)
        wanted = self.wanted
        if not self.text_b_column:
            wanted = ((self.text_column,),) if self.text_column else (*_PAIRS, *_ALONE)
        return formats.detect_format(
            path,
            wanted,
            optional=self.optional,
            names=self.header,
            texts=split == "train" and not (self.text_column or self.header),
            question="which columns are the texts?",
            hint=self.hint,
        )

    def _kind(self, table) -> str:
        """Return "scored", "pairs" or "texts".

        Raises:
          UserError: the columns leave it open.
        """
        if len(table.found) == 1:
            return "texts"
        negatives = [name for name in self.negatives if name in table.columns]
        scored = self.score_column and self.score_column in table.columns
        if scored and negatives:
            raise UserError(
                f"{table.path}: it has scores ({self.score_column}) and hard negatives "
                f"({negatives[0]}), which train different losses; set --task_options.score_column= "
                "or negative_column= to nothing"
            )
        labels = [name for name in _LABELS if name in table.columns and name != self.kept_column]
        if labels and not scored:
            raise UserError(
                f"{table.path}: the column {labels[0]} says which texts belong together; "
                f"--task_options.keep={labels[0]}=VALUE reads the rows with one value, "
                f"score_column={labels[0]} takes its numbers for scores"
            )
        return "scored" if scored else "pairs"

    def _read_split(self, split):
        """Read the rows of a split.

        Raises:
          UserError: a missing column, an empty text, a score that is no number, or texts alone in a
            split that is scored.
        """
        table, found, left_out = self.table(split), [], 0
        kind, value = self._kind(table), self.keep.partition("=")[2]
        if kind == "texts" and split != "train":
            raise UserError(
                f"{table.path}: texts alone are for training; {split} needs pairs of texts, with "
                "scores (Spearman) or without (retrieval): --task_options.dev_file= names a file"
            )
        keeps = self.kept_column in table.columns
        if self.keep and not keeps and kind != "scored":
            raise UserError(f"{table.path}: no column {self.kept_column} (keep={self.keep})")
        for index, row, where in self.rows(split, table):
            if keeps and str(row.get(self.kept_column)) != value:
                left_out += 1
                continue
            texts = [row[column] for column in table.found]
            if not all(map(str.strip, texts)):
                raise UserError(f"{where}: a text is empty; leave the row out")
            score = self._score(row, where, split) if kind == "scored" else None
            texts = texts * 2 if kind == "texts" else [*texts, *self._negatives(row, where)]
            found.append(TextGroup(str(row.get("id", index)), tuple(texts), score))
        if not found:
            raise UserError(f"{table.path}: no row has {self.keep}")
        if left_out:
            self.notes[split] = {"rows_left_out": left_out}
        most = max(len(one.texts) for one in found)
        absent = ("",) * most
        return [dataclasses.replace(one, texts=(*one.texts, *absent)[:most]) for one in found]

    def _negatives(self, row, where):
        for name in self.negatives:
            cell = row.get(name)
            for text in cell if isinstance(cell, list) else [cell]:
                if text is not None and not isinstance(text, str):
                    raise UserError(f"{where}: {name} is {text!r}, not a text")
                if text and text.strip():
                    yield text

    def _score(self, row, where, split):
        try:
            score = float(row[self.score_column])
        except (KeyError, TypeError, ValueError):
            told = row.get(self.score_column)
            raise UserError(
                f"{where}: {self.score_column} is {told!r}, expected a number"
            ) from None
        if not abs(score) <= (self.highest_score if split == "train" else 1e9):
            raise UserError(
                f"{where}: {self.score_column} is {score:g}; cosines go to 1 and scores to "
                f"highest_score={self.highest_score:g}: --task_options.highest_score=5 (say) "
                "divides them by 5"
            )
        return score / self.highest_score

    def example(self, fields):
        return TextGroup(str(fields.get("id", "")), (fields["text_a"], fields["text_b"]))

    def is_labelled(self, examples):
        return True

    def texts(self, example):
        """Return the texts that `features` will tokenise; `featurize` tokenises many at once."""
        return [text for text in example.texts if text]

    def features(self, example, tokenizer, max_seq_length):
        rows = [
            sequences.pack(tokenizer, tokenizer.encode(text), None, max_seq_length)
            if text
            else {"input_ids": [], "segment_ids": [], "truncated": 0}
            for text in example.texts
        ]
        feature = {name: [row[name] for row in rows] for name in ("input_ids", "segment_ids")}
        feature["truncated"] = max(row["truncated"] for row in rows)
        if example.score is not None:
            feature["label_ids"] = example.score
        return [feature]

    def predictions(self, examples, features, outputs):
        """Return {"similarity": cosine} of each, and its "rank" where there are no scores."""
        texts = [text for one in examples for text in one.texts]
        return self.compared(examples, TextVectors.of(texts, np.concatenate(outputs["vectors"])))

    def compared(self, examples, vectors: TextVectors):
        """Return `predictions` from vectors of the examples' texts."""
        texts = [one.texts for one in examples]
        found = [
            {"id": one.id, "similarity": cosine}
            for one, cosine in zip(examples, vectors.cosines(texts), strict=True)
        ]
        if all(one.score is None for one in examples):
            for each, rank in zip(found, vectors.ranks(texts), strict=True):
                each["rank"] = rank
        return found

    def score(self, examples, predictions):
        if examples[0].score is None:
            return retrieval_scores([one["rank"] for one in predictions], self.recall_at)
        values = [one["similarity"] for one in predictions]
        found = metrics.regression_scores([one.score for one in examples], values)
        return {name: found[name] for name in ("spearman", "pearson")}

    def statistics(self, examples, predictions):
        if examples[0].score is None:
            return {}
        pairs = zip(examples, predictions, strict=True)
        values = np.array([(one.score, found["similarity"]) for one, found in pairs], np.float64)
        return metrics.correlation_sums(*values.T)

    def baseline(self, train_examples, examples):
        known, asked = (
            [text for one in each for text in self.texts(one)]
            for each in (train_examples, examples)
        )
        vectors = TextVectors.of_words(known, asked)
        return self.score(examples, self.compared(examples, vectors))

    def clusters(self, examples):
        """Return examples that share a text."""
        return text_groups.clusters_of_texts(examples)
