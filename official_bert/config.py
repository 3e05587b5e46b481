"""The shape of a BERT model: `BertConfig` and the sizes that have a name.

Field names are those of Google's `bert_config.json`, so its files are read unchanged. Fields are
added, each with the original's value as default: `attention_direction`, `gelu_form` and
`layer_norm_eps`, and those by which BERT's successors differ from it (docs/family.md).
"""

import dataclasses
import math
import os
import re
from typing import Any, ClassVar

from official_bert.common.errors import UserError, check_choice
from official_bert.common.files import write_json
from official_bert.common.json_files import fields_of, read_json
from official_bert.common.typed import fits, type_words
from official_bert.extension import find, names

ACTIVATIONS = ("gelu", "relu", "tanh", "linear")
GELU_FORMS = ("erf", "tanh")
PROBLEMS = ("single_label", "multi_label", "regression")  # of a classifier


@dataclasses.dataclass(frozen=True)
class BertConfig:
    """Sizes and rates of a BERT encoder (paper, section 3, "Model Architecture").

    Attributes:
      vocab_size: entries of the WordPiece vocabulary.
      hidden_size: width of every layer, the paper's H.
      num_hidden_layers: Transformer blocks, the paper's L.
      num_attention_heads: attention heads, the paper's A; divides `hidden_size`.
      intermediate_size: width of the feed-forward layer, 4H in the paper.
      hidden_act: activation of the feed-forward layer and the masked-LM transform.
      hidden_dropout_prob: dropout of the embeddings and of each sub-layer's output.
      attention_probs_dropout_prob: dropout of the attention probabilities.
      max_position_embeddings: longest sequence, in tokens.
      type_vocab_size: segments (sentence A, sentence B); with 1 all tokens have the one row
        (RoBERTa), with 0 there is no table (DistilBERT).
      initializer_range: standard deviation of the truncated normal initial weights.
      attention_direction: "bidirectional", or "left_to_right" for the ablation of section 5.1,
        where a token attends to itself and to tokens on its left only.
      gelu_form: "erf" (exact; the published checkpoints) or "tanh" (the approximation that
        google-research/bert has used since February 2019). They differ by at most 4.73e-4.
      layer_norm_eps: added to the variance in layer normalisation.
      pad_token_id: the id that fills rows; in a batch without a mask it tells the padding. With -1
        the id of padding has another use too, so a batch without a mask is refused. The vocabulary
        of a model decides it.

    Encoders that are not BERT's have subclasses, marked by their fields: see `from_dict`.

    Raises:
      UserError: a field has an impossible value; the message names the field.
    """

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    attention_direction: str = "bidirectional"
    gelu_form: str = "erf"
    layer_norm_eps: float = 1e-12
    pad_token_id: int = 0

    # The language model of each `attention_direction` (section 5.1).
    language_models: ClassVar[dict[str, str]] = {
        "bidirectional": "masked_lm",
        "left_to_right": "next_token",
    }
    # Classes of the encoder's parts and of the language-model head.
    transformer: ClassVar[str] = "official_bert.layers:Transformer"
    language_model_head: ClassVar[str] = "official_bert.objectives.masked_lm:MaskedLMHead"

    def __post_init__(self):
        for field in dataclasses.fields(self):
            _check_type(field, getattr(self, field.name))
        for name in (
            "vocab_size",
            "hidden_size",
            "num_hidden_layers",
            "num_attention_heads",
            "intermediate_size",
            "max_position_embeddings",
            "initializer_range",
            "layer_norm_eps",
        ):
            if getattr(self, name) <= 0:
                raise UserError(f"BertConfig.{name} must be positive, not {getattr(self, name)}")
        if (count := self.type_vocab_size) < 0:
            raise UserError(f"BertConfig.type_vocab_size must not be negative: {count}")
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            if not 0 <= getattr(self, name) < 1:
                raise UserError(f"BertConfig.{name} must be in [0, 1), not {getattr(self, name)}")
        if self.hidden_size % self.num_attention_heads:
            raise UserError(
                f"BertConfig.num_attention_heads ({self.num_attention_heads}) must divide "
                f"hidden_size ({self.hidden_size})"
            )
        check_choice("BertConfig.hidden_act", self.hidden_act, ACTIVATIONS)
        check_choice(
            "BertConfig.attention_direction", self.attention_direction, self.language_models
        )
        check_choice("BertConfig.gelu_form", self.gelu_form, GELU_FORMS)

    @classmethod
    def config_class(cls, fields: dict[str, Any]) -> "type[BertConfig]":
        """Return the subclass that fields mark, or this class where they mark none."""
        return _marked_class(cls, fields)

    @staticmethod
    def of_google(fields: dict[str, Any]) -> dict[str, Any]:
        """Translate fields of google-research's `bert_config.json` to those of `from_dict`."""
        return fields

    def replaced(self, **fields: Any) -> "BertConfig":
        """Return a copy with other values; its class is the one that they mark."""
        return BertConfig.from_dict({**vars(self), **fields})

    def value(self, name: str, absent: Any = None) -> Any:
        """Return the value of a field.

        For a field that only a subclass has, return the value that BERT has; for a field that no
        known class has, return `absent`.
        """
        if name not in vars(self) and name in names("configs"):
            return _usual(find("configs", name))[name]
        return getattr(self, name, absent)

    def check_is_bert(self, target: str) -> None:
        """Raise UserError where the encoder differs from BERT's, which is all that `target` can
        hold."""
        own = {field.name for field in dataclasses.fields(BertConfig)}
        names = [name for name in self.changes() if name not in own]
        names += [] if self.type_vocab_size else ["type_vocab_size"]
        if names:
            raise UserError(
                f"the encoder differs from BERT's in {', '.join(names)}: {target}'s format of BERT "
                "has no place for it; a model folder has"
            )

    def padded_by(self, tokenizer) -> "BertConfig":
        """Return a copy with the tokeniser's `pad_token_id`, -1 where [CLS] or [SEP] has that id
        too.

        Without a tokeniser the configuration is returned as it is.
        """
        if tokenizer is None:
            return self
        shared = tokenizer.pad_id in (tokenizer.cls_id, tokenizer.sep_id)
        return dataclasses.replace(self, pad_token_id=-1 if shared else tokenizer.pad_id)

    @property
    def language_model(self) -> str:
        """Name of the objective that is the language model of this direction."""
        return self.language_models[self.attention_direction]

    @property
    def unserved(self) -> str:
        """Say which encoder it is where it is not exported for serving; "" where it is."""
        return ""

    @property
    def widths(self) -> list[int]:
        """Widths of the hidden states, the embeddings' first."""
        return [self.hidden_size] * (self.num_hidden_layers + 1)

    @property
    def embedding_width(self) -> int:
        """Width of the embedding tables."""
        return self.hidden_size

    @property
    def num_blocks(self) -> int:
        """Blocks with weights of their own."""
        return self.num_hidden_layers

    def block_of(self, layer: int) -> int:
        """Return the index of the block that a layer uses; both count from 0."""
        return layer * self.num_blocks // self.num_hidden_layers

    @property
    def num_parameters(self) -> int:
        """Number of parameters of a `BertEncoder` of this shape."""
        H, I = self.hidden_size, self.intermediate_size
        rows = self.vocab_size + self.type_vocab_size + self.max_position_embeddings
        block = 4 * (H * H + H) + 2 * H * I + I + H + 4 * H
        return (rows + 2) * H + self.num_hidden_layers * block + H * H + H

    def encoder_flops(self, sequences: int, length: int) -> float:
        """Count the FLOPs of one forward pass of the encoder on [sequences, length] tokens.

        Only products of matrices count: 2 m n k multiplications and additions each.
        """
        return float(sequences) * length * (self.block_flops(length) * self.num_hidden_layers)

    def block_flops(self, length: int) -> int:
        """Count the FLOPs of one layer for one token in a row of `length`."""
        H, I = self.hidden_size, self.intermediate_size
        # Query, key, value, output; feed-forward; attention scores and the values that they weight.
        return 2 * (4 * H * H + 2 * H * I) + 2 * 2 * length * H

    def head_flops(self, predictions: int) -> float:
        """Count the FLOPs of one forward pass of the language-model head on `predictions`
        positions."""
        return float(predictions) * 2 * self.hidden_size * (self.hidden_size + self.vocab_size)

    @classmethod
    def from_dict(cls, fields: dict[str, Any], source: str = "BertConfig") -> "BertConfig":
        """Make a configuration from a dictionary; missing fields keep their defaults. The fields
        decide whether it is a subclass.

        Raises:
          UserError: a field is unknown or has an impossible value. `source` starts the message.
        """
        # Multilingual and Chinese checkpoints carry pooler_* fields that no code of theirs reads.
        fields = {k: v for k, v in fields.items() if k not in _IGNORED_FIELDS}
        marked = cls.config_class(fields)
        own = {field.name for field in dataclasses.fields(marked)}
        others = fields.keys() - own & {*names("configs")}
        others = {
            name for name in others if fields[name] == _usual(find("configs", name)).get(name, cls)
        }
        fields = {name: value for name, value in fields.items() if name not in others}
        fields = fields_of(marked, fields, source)
        try:
            return marked(**fields)
        except UserError as error:
            raise UserError(f"{source}: {error}") from None

    @classmethod
    def from_json_file(cls, path: str | os.PathLike) -> "BertConfig":
        """Read a `bert_config.json`.

        Raises:
          UserError: the file is missing, is not a JSON object, or a field is wrong.
        """
        return cls.from_dict(read_json(path), source=str(path))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that a file holds.

        Fields that the original has not are left out where they change nothing, so the file of a
        BERT is one of the original's.
        """
        original = {field.name for field in dataclasses.fields(BertConfig)} - {"pad_token_id"}
        changed, values = self.changes(), vars(self)
        written = [name for name in values if name in original or name in changed]
        written.sort(key="pad_token_id".__eq__)  # the last, where earlier versions had it
        return {name: values[name] for name in written}

    def changes(self) -> dict[str, Any]:
        """Return the fields that differ from BERT's values; `from_dict` reads them back equal."""
        usual = _usual(type(self))
        return {name: value for name, value in vars(self).items() if value != usual[name]}

    def to_json_file(self, path: str | os.PathLike) -> None:
        """Write a `bert_config.json` that `from_json_file` reads back equal."""
        write_json(path, self.to_dict())


# Well-Read Students (Turc et al., 2019): every L with every H, and A = H / 64.
_MINIATURES = {
    f"L-{layers}_H-{width}": (layers, width, width // 64)
    for layers in (2, 4, 6, 8, 10, 12)
    for width in (128, 256, 512, 768)
}
# (L, H, A) of each name. Rows of Table 6 that equal another size keep a name of their own, so that
# the table can be read row by row.
NAMED_SIZES: dict[str, tuple[int, int, int]] = {
    "base": (12, 768, 12),
    "large": (24, 1024, 16),
    "tiny": (2, 128, 2),
    "mini": (4, 256, 4),
    "small": (4, 512, 8),
    "medium": (8, 512, 8),
    **_MINIATURES,
    "table6-L3-H768-A12": (3, 768, 12),
    "table6-L6-H768-A3": (6, 768, 3),
    "table6-L6-H768-A12": (6, 768, 12),
    "table6-L12-H768-A12": (12, 768, 12),
    "table6-L12-H1024-A16": (12, 1024, 16),
    "table6-L24-H1024-A16": (24, 1024, 16),
}


def named_config(name: str, **overrides: Any) -> BertConfig:
    """Return the configuration of a named size, uncased English unless `overrides` says otherwise.

    Examples:
      >>> config = named_config("mini", vocab_size=8192)
      >>> config.num_hidden_layers, config.hidden_size, config.vocab_size
      (4, 256, 8192)

    Raises:
      UserError: no size has that name, or an override is wrong.
    """
    size = find("sizes", name, NAMED_SIZES)
    if name in NAMED_SIZES:
        layers, width, heads = size
        size = {
            "num_hidden_layers": layers,
            "hidden_size": width,
            "num_attention_heads": heads,
            "intermediate_size": 4 * width,
        }
    return BertConfig.from_dict({**size, **overrides}, source=f"named_config({name!r})")


def _usual(cls: type[BertConfig]) -> dict[str, Any]:
    """Return the value of each field that a file leaves out.

    That is "absent" of the field's metadata, or the default in the class that first has the field.
    """
    usual: dict[str, Any] = {}
    for one in filter(dataclasses.is_dataclass, reversed(cls.__mro__)):
        for field in dataclasses.fields(one):
            usual.setdefault(field.name, field.metadata.get("absent", field.default))
    return usual


def _marked_class(cls: type[BertConfig], fields: dict[str, Any]) -> type[BertConfig]:
    """Return the class that the fields or the direction mark; of several, the most derived."""
    classes, marks = {cls}, names("configs")
    for name, value in fields.items():
        if name in marks:
            marker = find("configs", name)
            if not issubclass(marker, BertConfig):  # marks an encoder that is not a Transformer
                continue
            usual = _usual(marker).get(name)
            classes |= {marker} if value != usual or type(value) is not type(usual) else set()
    direction = fields.get("attention_direction")
    classes |= {find("configs", direction)} if direction in marks else set()
    return max(classes, key=lambda one: len(one.__mro__))


_IGNORED_FIELDS = frozenset(
    {
        "directionality",
        "pooler_fc_size",
        "pooler_num_attention_heads",
        "pooler_num_fc_layers",
        "pooler_size_per_head",
        "pooler_type",
    }
)


def parts_named(what: str, num_blocks: int) -> list[int]:
    """Return the indices of the parts that a text such as "embeddings,blocks:0-5" names.

    They count as in `BertEncoder.parts`: 0 the embeddings, then the blocks, then the pooler.

    Raises:
      UserError: there is no such part.
    """
    found = []
    for name in (part.strip() for part in what.split(",")):
        blocks = re.fullmatch(r"blocks(?::(\d+)(?:-(\d+))?)?", name)
        first = int(blocks[1] or 0) if blocks else 0
        last = int(blocks[2] or blocks[1] or num_blocks - 1) if blocks else -1
        if name in ("embeddings", "pooler"):
            found.append(0 if name == "embeddings" else num_blocks + 1)
        elif blocks and first <= last < num_blocks:
            found += range(first + 1, last + 2)
        else:
            raise UserError(
                f"freeze: {name!r} is not a part; parts are embeddings, "
                f"blocks:0-{num_blocks - 1} (or fewer), pooler"
            )
    return found


def _check_type(field: dataclasses.Field, value: Any) -> None:
    if not fits(value, field.type):
        raise UserError(f"BertConfig.{field.name} must be {type_words(field.type)}, not {value!r}")
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"BertConfig.{field.name} must be a finite number, not {value!r}")
    if isinstance(value, int) and abs(value) >= 1 << 31:
        raise UserError(f"BertConfig.{field.name} must be below 2**31")
