"""KerasHub's backbones of BERT and its successors: their fields and what they compute, in ours."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from official_bert.common.errors import UserError
from official_bert.config import BertConfig

_SIZES = {
    "vocab_size": "vocabulary_size",
    "hidden_size": "hidden_dim",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "intermediate_size": "intermediate_dim",
    "max_position_embeddings": "max_sequence_length",
}
_WITH_SEGMENTS = {**_SIZES, "type_vocab_size": "num_segments"}


@dataclasses.dataclass(frozen=True)
class Kind:
    """One backbone.

    Attributes:
      fields: name in `BertConfig` -> argument of the backbone.
      computes: what it computes and has no argument for: values of `BertConfig`.
      tokenizer: the class of its tokeniser.
    """

    fields: Mapping[str, str]
    computes: Mapping[str, Any]
    tokenizer: str

    def config(self, get: Callable[[str], Any], gelu_form: str | None = None) -> dict[str, Any]:
        """Fields of a `BertConfig`; `get` gives the value of an argument of the backbone."""
        found = {ours: get(theirs) for ours, theirs in self.fields.items()} | self.computes
        if found.get("embedding_size") == found["hidden_size"] and "num_hidden_groups" not in found:
            found["embedding_size"] = 0  # ELECTRA's has no projection then
        return found | ({"gelu_form": gelu_form} if gelu_form else {})

    def arguments(self, config: BertConfig) -> dict[str, Any]:
        """The arguments of the backbone that computes a model of this shape."""
        values = dataclasses.asdict(config) | {"embedding_size": config.embedding_width}
        return {theirs: values[ours] for ours, theirs in self.fields.items()}


_TANH = {"gelu_form": "tanh", "layer_norm_eps": 1e-12}
_BARE = {"gelu_form": "erf", "type_vocab_size": 0, "pooler_activation": "none"}
KINDS = {
    "BertBackbone": Kind(_WITH_SEGMENTS, _TANH, "BertTokenizer"),
    "RobertaBackbone": Kind(
        _SIZES, {**_BARE, "layer_norm_eps": 1e-5, "pad_token_id": 1}, "RobertaTokenizer"
    ),
    "DistilBertBackbone": Kind(_SIZES, {**_BARE, "layer_norm_eps": 1e-12}, "DistilBertTokenizer"),
    "ElectraBackbone": Kind(
        {**_WITH_SEGMENTS, "vocab_size": "vocab_size", "embedding_size": "embedding_dim"},
        _TANH,
        "ElectraTokenizer",
    ),
    "AlbertBackbone": Kind(
        {**_WITH_SEGMENTS, "embedding_size": "embedding_dim", "num_hidden_groups": "num_groups"},
        _TANH,
        "AlbertTokenizer",
    ),
}


def class_of(config: BertConfig) -> str:
    """The backbone that computes an encoder of this shape, a key of `KINDS`.

    Raises:
      UserError: there is none.
    """
    if config.num_hidden_groups:
        name = "AlbertBackbone"
    elif config.embedding_size:
        name = "ElectraBackbone"
    elif config.type_vocab_size > 1 or (config.type_vocab_size and config.layer_norm_eps != 1e-5):
        name = "BertBackbone"
    else:
        name = "RobertaBackbone" if config.layer_norm_eps == 1e-5 else "DistilBertBackbone"
    kind = KINDS[name]
    needed = {
        "attention_direction": "bidirectional",
        "hidden_act": "gelu",
        "layer_norm_eps": kind.computes["layer_norm_eps"],
        "embedding_norm": True,
    }
    if name in ("BertBackbone", "AlbertBackbone"):
        needed["pooler_activation"] = "tanh"
    for field, expected in needed.items():
        if getattr(config, field) != expected:
            value = getattr(config, field)
            raise UserError(f"KerasHub's {name} has {field} {expected!r} only, not {value!r}")
    if name == "AlbertBackbone" and not config.embedding_size:
        raise UserError("KerasHub's AlbertBackbone has an embedding_size of its own, this has none")
    return name


def remarks(name: str, config: BertConfig) -> list[str]:
    """What the backbone `name` computes differently from an encoder of this shape, or lacks."""
    notes = []
    form = KINDS[name].computes["gelu_form"]
    if config.gelu_form != form:
        notes.append(
            f"KerasHub computes GELU in the {form} form, this model {config.gelu_form}: outputs "
            "differ"
        )
    if config.attention_probs_dropout_prob != config.hidden_dropout_prob:
        notes.append("KerasHub has one dropout rate: hidden_dropout_prob was written")
    has_pooler = config.pooler_activation != "none"
    if KINDS[name].computes.get("pooler_activation") == "none":
        if has_pooler:
            notes.append(f"left out, a {name} has no pooler: the pooler")
    elif config.pooler_activation != "tanh":
        notes.append(f"the pooler of {name} keeps random values: this model has not its pooler")
    if name == "RobertaBackbone" and config.type_vocab_size:
        notes.append("the row of the one segment was added to those of the positions")
    return notes
