"""Descriptions of BERT and its successors in other libraries, by BERT's names.

A member differs from BERT in a few fields and in the names of its tensors. Its class says both, and
`checkpoints` asks it (`members`). This needs neither Keras nor TensorFlow.
"""

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from official_bert.common.errors import UserError
from official_bert.config import BertConfig

POSITIONS = "bert.embeddings.position_embeddings.weight"
SIZES = {
    "vocab_size": "vocabulary_size",
    "hidden_size": "hidden_dim",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "intermediate_size": "intermediate_dim",
    "max_position_embeddings": "max_sequence_length",
}
WITH_SEGMENTS = {**SIZES, "type_vocab_size": "num_segments"}
TANH = {"gelu_form": "tanh", "layer_norm_eps": 1e-12}


@dataclasses.dataclass(frozen=True)
class Backbone:
    """KerasHub's backbone of a member.

    Attributes:
      name: of its class.
      fields: name in `BertConfig` -> argument of the backbone.
      computes: fields of `BertConfig` that it has no argument for -> the values it computes with.
      tokenizer: the class of its tokeniser.
      fits: function of a shape: whether it computes such an encoder, apart from `computes`. The
        first backbone that fits is taken (`members.backbone_of`).
      rank: backbones of lower rank are asked first; BERT's is the last.
      pooler: activation that its pooler must have; "": it has none, or keeps random values.
      renames: (regular expression of its variables' names, the name in BERT's backbone) pairs.
      one_segment: whether the one segment's row is added to the rows of positions on export.
      pieces: the kind of its tokeniser, see `tokenization.tokenizer_class`.
      check_preset: function of the folder of a preset, which raises UserError where files of its
        tokeniser are damaged.
      tokenizer_from: function of (KerasHub's tokeniser, its place, do_lower_case) -> ours.
      tokenizer_to: function of (KerasHub's class, our tokeniser) -> KerasHub's.
      note: remark for the user on the tokeniser that was written.
    """

    name: str
    fields: Mapping[str, str]
    computes: Mapping[str, Any]
    tokenizer: str
    fits: Callable[[BertConfig], bool] = lambda config: True
    rank: int = 100
    pooler: str = "tanh"
    renames: tuple[tuple[str, str], ...] = ()
    one_segment: bool = False
    pieces: str = "word_piece"
    check_preset: Callable[[Path], None] = lambda preset: None
    tokenizer_from: Callable | None = None  # None: WordPiece, `keras_hub` knows it
    tokenizer_to: Callable | None = None
    note: str = ""

    def config(self, get: Callable[[str], Any], gelu_form: str | None = None) -> dict[str, Any]:
        """Return fields of a `BertConfig`; `get` gives the value of an argument of the backbone."""
        found = {ours: get(theirs) for ours, theirs in self.fields.items()} | self.computes
        return found | ({"gelu_form": gelu_form} if gelu_form else {})

    def arguments(self, config: BertConfig) -> dict[str, Any]:
        """Return the arguments of the backbone that computes a model of this shape."""
        return {theirs: config.value(ours) for ours, theirs in self.fields.items()}

    def check(self, config: BertConfig) -> None:
        """Raise UserError where the backbone lacks what a shape has."""


class Member:
    """BERT as `transformers` has it; a subclass says how a successor differs.

    Attributes:
      name: its model_type.
      classes: how its classes begin.
      prefix: of its encoder's tensors, where BERT has "bert".
      renames: (fragment of its tensors' names, BERT's fragment) pairs, in this order in both
        directions. "{}" stands for a number; a fragment matches at the beginning of a name unless
        it begins with ".".
      head_renames: head -> further pairs, for classes with that head only.
      dense: activation of the dense layer between encoder and classifier; where it is not "tanh",
        the encoder without a classifier has no such layer.
      unused_positions: rows of the position table before the first that is used.
      tokenizer: the kind of its tokeniser, see `tokenization.tokenizer_class`.
      sign: regular expression; the beginning of a tensor's name, or of a part of it, that only this
        member has.
      anchor: end of the name of the token table, which every encoder has once.
      backbone: KerasHub's; None where it has none.
      rank: members of lower rank are asked first whether they fit an encoder; BERT is the last.
      own_words: whether its language-model head has tensors beside the token table.
      own_heads: whether classes for fine-tuning compute what ours do.
      pretraining_parts: prefixes, in BERT's names, of tensors that only its class for pre-training
        stores.
    """

    name = "bert"
    classes = "Bert"
    prefix = "bert"
    renames: tuple[tuple[str, str], ...] = ()
    head_renames: Mapping[str, tuple[tuple[str, str], ...]] = {}
    dense = "tanh"
    unused_positions = 0
    tokenizer = "word_piece"
    sign = r"bert\."
    anchor = "embeddings.word_embeddings.weight"
    backbone: Backbone | None = Backbone("BertBackbone", WITH_SEGMENTS, TANH, "BertTokenizer")
    rank = 100
    own_words = own_heads = True
    pretraining_parts: tuple[str, ...] = ()

    def bert_fields(self, fields: dict[str, Any], path: Path) -> dict[str, Any]:
        """Return the fields of BERT's config.json that differ from its own: `read`, with errors.

        Raises:
          UserError: a field is missing or of the wrong type.
        """
        try:
            return self.read(fields)
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"{path}: a field is missing or wrong: {error}") from None

    def read(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of BERT's config.json that differ from its own."""
        return {}

    def their_config(self, fields: dict[str, Any], config: BertConfig) -> dict[str, Any]:
        """Return its config.json, made from the one that BERT would have; `read` reversed."""
        return fields

    def fits(self, config: BertConfig, algorithm: str) -> bool:
        """Return whether an encoder of this shape can be exported as this member.

        Members of lower rank are asked before. `algorithm` is that of its tokeniser.
        """
        return True

    def needed(self, config: BertConfig, objectives: list[str]) -> dict[str, Any]:
        """Return {field: the only value that it may have for this member}.

        `objectives` are those of the model to export.
        """
        return {"attention_direction": "bidirectional"}

    def pretraining_class(self, objectives: list[str]) -> str | None:
        """Return the end of the name of the class with the heads of these objectives, or None."""
        return "ForMaskedLM" if "masked_lm" in objectives else None

    def objectives(self, names: Mapping[str, str], found: list[str]) -> list[str]:
        """Return the objectives whose heads a folder holds.

        Args:
          names: the result of `table_names`.
          found: BERT's objectives whose heads it holds.
        """
        return found

    def table_names(self, stored: Iterable[str]) -> dict[str, str]:
        """Return {BERT's name: stored name}, from names as `transfer.rooted` returns them."""
        bare = not any(name.startswith(f"{self.prefix}.") for name in stored)
        return {self._berts(name, bare): name for name in stored}

    def reader(self, read: Callable, stored: Mapping[str, str], fields: dict) -> Callable:
        """Return `read` without the rows of positions that are never used.

        Args:
          read: returns the array with a stored name.
          stored: the result of `table_names`.
          fields: the contents of config.json.
        """
        positions = stored.get(POSITIONS)
        return lambda name: read(name)[self.unused_positions :] if name == positions else read(name)

    def own_tensors(self, found: Mapping[str, np.ndarray], head: str) -> dict[str, np.ndarray]:
        """Return {its name: array} from {BERT's name: array}, for a model with one of our heads."""
        written = {}
        for name, array in found.items():
            if name == POSITIONS and self.unused_positions:
                unused = np.zeros((self.unused_positions, array.shape[1]), array.dtype)
                array = np.concatenate([unused, array])
            own = name
            for theirs, berts in (*self.head_renames.get(head, ()), *self.renames):
                own = _renamed(own, berts, theirs)
            own = re.sub(r"^bert\.", f"{self.prefix}.", own)
            written[own.removeprefix(f"{self.prefix}.") if head == "none" else own] = array
        return written

    def _berts(self, name: str, bare: bool) -> str:
        # An encoder alone is stored without the prefix.
        bare = bare and name.startswith(("embeddings", "encoder.", "transformer.", "pooler."))
        name = f"bert.{name}" if bare else re.sub(rf"^{self.prefix}\.", "bert.", name)
        # The oldest files have these names for LayerNorm's parameters.
        name = name.replace("LayerNorm.gamma", "LayerNorm.weight")
        name = name.replace("LayerNorm.beta", "LayerNorm.bias")
        of_heads = (pair for pairs in self.head_renames.values() for pair in pairs)
        for theirs, berts in (*of_heads, *self.renames):
            name = _renamed(name, theirs, berts)
        return name


def _renamed(name: str, old: str, new: str) -> str:
    pattern = re.escape(old).replace(r"\{\}", r"(\d+)")
    pattern = pattern if old.startswith(".") else f"^{pattern}"
    return re.sub(pattern, new.replace("{}", r"\1"), name)
