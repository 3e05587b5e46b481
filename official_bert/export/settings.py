"""Settings of an export beside weights and vocabulary, such as how texts were cut in training.

This needs neither Keras nor TensorFlow, so a model that cannot be exported is refused at once.
"""

import dataclasses
import re
from typing import Any

from official_bert.checkpoints.sentence_vectors import SentenceVectors
from official_bert.common.errors import UserError, check_choice, check_once
from official_bert.common.json_files import fields_of
from official_bert.tokenization import sequences
from official_bert.tokenization.windows import check_overlap

PRECISIONS = ("float32", "bfloat16", "int8")
POOLINGS = ("cls", "mean")
LABEL_PIECES = ("first", "last")
# Name -> (hidden states it reads, how it joins them), as in official_bert.features. There the
# weighted sums have weights to learn and start as the plain mean; here they are the plain mean.
LAYERS = {
    "embeddings": (slice(0, 1), "single"),
    "second_to_last": (slice(-2, -1), "single"),
    "last": (slice(-1, None), "single"),
    "mean_last_four": (slice(-4, None), "mean"),
    "concat_last_four": (slice(-4, None), "concat"),
    "mean_all": (slice(1, None), "mean"),
}


@dataclasses.dataclass(frozen=True)
class ServingSettings:
    """Settings of an export; an extension's head may have a subclass with more.

    Attributes:
      input_fields: names of the text inputs of `serving_default`. One name for one text, two for a
        pair; heads with inputs of their own (spans, multiple choice, ...) leave it empty.
      labels: names of the outputs, in the model's order.
      problem: of a classifier: "single_label", "multi_label" or "regression".
      max_seq_length: tokens of one input, [CLS] and [SEP] included.
      truncation: which end of a long text is kept: "head", "tail" or "head+tail".
      windows: of a classifier that pools windows: the most windows of a text.
      window_overlap: tokens that such a window shares with the one before it.
      doc_stride: tokens between the starts of two windows of a long passage.
      max_query_length: tokens of a question; the rest is cut.
      max_answer_length: tokens of the longest answer.
      n_best_size: number of spans whose softmax gives an answer's probability.
      allow_no_answer: SQuAD 2.0: the empty answer competes.
      null_score_diff_threshold: how much better than the best span the empty answer has to score.
      label_piece: of a tagger: the piece that decides a word's label, "first" or "last".
      top_k: words offered for each [MASK].
      layers: of embeddings and features, such as concat_last_four: a name of `LAYERS`.
      pooling: of embeddings: "cls" or "mean" over all tokens.
      normalize: scale embeddings to length 1.
      precision: "float32", "bfloat16" (SavedModels) or "int8" (ONNX and LiteRT).
    """

    input_fields: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    problem: str = "single_label"
    max_seq_length: int = 128
    truncation: str = "head"
    windows: int = 0
    window_overlap: int = 0
    doc_stride: int = 128
    max_query_length: int = 64
    max_answer_length: int = 30
    n_best_size: int = 20
    allow_no_answer: bool = False
    null_score_diff_threshold: float = 0.0
    label_piece: str = "first"
    top_k: int = 5
    layers: str = "last"
    pooling: str = "mean"
    normalize: bool = False
    precision: str = "float32"

    def __post_init__(self):
        check_choice("precision", self.precision, PRECISIONS)
        check_choice("pooling", self.pooling, POOLINGS)
        check_choice("label_piece", self.label_piece, LABEL_PIECES)
        check_choice("truncation", self.truncation, sequences.TRUNCATIONS)
        check_choice("layers", self.layers, LAYERS)
        lengths = ("max_seq_length", "doc_stride", "max_answer_length")
        for name in (*lengths, "n_best_size", "top_k"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be positive, not {getattr(self, name)}")
        for name in ("max_query_length", "windows", "window_overlap"):
            if getattr(self, name) < 0:
                raise UserError(f"{name} must not be negative, but is {getattr(self, name)}")
        for name in self.input_fields:
            if not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name) or name == "self":
                raise UserError(
                    f"input_fields: {name!r:.80} is not a name for TensorFlow; it takes letters, "
                    "digits and _, a letter first, and not 'self'"
                )
        if len(self.input_fields) > 2 or len(set(self.input_fields)) != len(self.input_fields):
            raise UserError(f"input_fields: one or two different names, not {self.input_fields!r}")

    @classmethod
    def from_loaded(cls, loaded, **overrides: Any) -> "ServingSettings":
        """Return the settings of a loaded model: from its `model.json`, its encoder, or defaults.

        `model.json` has the fields of training at the top (labels, problem, max_seq_length) and the
        task's own options under "task", "options". `overrides` that are None count as absent.

        Raises:
          UserError: an override names no setting, or a value is impossible.
        """
        names = {field.name for field in dataclasses.fields(cls)}
        task = loaded.settings.get("task")
        task = task if isinstance(task, dict) else {}
        version_2 = {"allow_no_answer": "2" in str(task.get("name", "")).partition("_v")[2]}
        options = task.get("options")
        options = options if isinstance(options, dict) else {}
        own = _vectors(loaded)
        # In model.json "windows" is the pooling; the number of windows is the task's option.
        folder = {name: value for name, value in loaded.settings.items() if name != "windows"}
        found = {
            name: value
            for source in (version_2, options, own, folder, overrides)
            for name, value in source.items()
            if value is not None and (name in names or source is overrides)
        }
        found = fields_of(cls, found, "settings (of model.json, or given)")
        longest = loaded.config.max_position_embeddings
        found.setdefault("max_seq_length", min(128, longest))
        if found["max_seq_length"] > longest:
            raise UserError(
                f"max_seq_length {found['max_seq_length']} is more than the {longest} positions of "
                "the encoder"
            )
        for name in ("labels", "input_fields"):
            if name in found:
                found[name] = tuple(str(value) for value in found[name])
        check_once(found.get("labels", ()), "labels")
        return cls(**found)

    def check_for(self, head: str, loaded) -> None:
        """Raise UserError where a head of `exports.HEADS` cannot be served with these settings.

        Args:
          loaded: `LoadedModel`; its weights are not looked at.
        """
        config, count = loaded.config, loaded.settings.get("num_labels")
        if config.unserved:
            raise UserError(
                f"{config.unserved} is there to be compared with BERT and is not served; "
                "experiments.predict reads its model folder"
            )
        names_labels = head == "tagging" or (
            head == "classification" and loaded.settings.get("problem") != "regression"
        )
        if names_labels and len(self.labels) != count:
            raise UserError(
                f"{len(self.labels)} labels for a model of {count} "
                'outputs; "labels" in model.json names them in order'
            )
        if head == "classification" and loaded.settings.get("windows"):
            self.check_windows(loaded.tokenizer, len(self.input_fields) == 2)
        if head == "masked_words" and config.attention_direction != "bidirectional":
            raise UserError(
                "a left-to-right model cannot fill [MASK]: it sees no word to the right"
            )
        if head == "embedding" and "embedding" in loaded.settings:
            SentenceVectors.from_settings(
                loaded.settings["embedding"], "model.json"
            ).export_settings()
        reads_four = head in ("embedding", "features") and self.layers.endswith("last_four")
        if reads_four and config.num_hidden_layers < 4:
            raise UserError(
                f"layers={self.layers!r} reads four layers; the encoder has "
                f"{config.num_hidden_layers}"
            )
        separators = loaded.tokenizer.separators
        pairs = head == "multiple_choice" or len(self.input_fields) == 2
        sequences.check_room(self.max_seq_length, separators if pairs else 0)
        if head == "span" and self.max_seq_length <= self.max_query_length + 2 + separators:
            raise UserError(
                f"max_seq_length={self.max_seq_length} leaves no room for the passage beside a "
                f"question of {self.max_query_length} tokens; lower max_query_length"
            )

    def check_windows(self, tokenizer, pairs: bool) -> None:
        """Raise UserError where texts, or pairs of them, cannot be read in windows."""
        if self.windows < 1:
            raise UserError(
                "the model pools windows of a text, but their number is not known: windows in "
                "task, options of model.json says it"
            )
        between = tokenizer.between if pairs else []
        check_overlap(self.window_overlap, self.max_seq_length, between)


def _vectors(loaded) -> dict[str, Any]:
    """Return the settings of the sentence-transformers folder that the model came from, if any."""
    try:
        fields = loaded.settings.get("embedding")
        return (
            SentenceVectors.from_settings(fields, "model.json").export_settings() if fields else {}
        )
    except UserError:  # the export of the embedding says so
        return {}
