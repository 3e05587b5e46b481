"""The family of BERT: which member an encoder is to `transformers` and to KerasHub.

BERT is described here, a successor in its folder (`official_bert.extension`).
"""

from official_bert.checkpoints.member import Backbone, Member
from official_bert.common.errors import UserError
from official_bert.config import BertConfig
from official_bert.extension import find, load_all, names

_BERT = Member()


def known() -> list[str]:
    """Return the values of `model_type` that can be read."""
    return [_BERT.name, *names("members")]


def member(model_type: str) -> Member:
    """Return the member of a `model_type`.

    Raises:
      UserError: there is none.
    """
    return find("members", model_type, {_BERT.name: _BERT})


def members() -> list[Member]:
    """Return BERT and all successors."""
    return [_BERT, *(one for _, one in load_all("members"))]


def pretraining_parts() -> set[str]:
    """Return prefixes of tensors that only classes for pre-training store."""
    return {name for one in members() for name in one.pretraining_parts}


def member_of(config: BertConfig, algorithm: str) -> Member:
    """Return the member of the family as which an encoder with such a tokeniser is exported."""
    ranked = sorted(members(), key=lambda one: one.rank)
    return next(one for one in ranked if one.fits(config, algorithm))


def backbones() -> dict[str, Backbone]:
    """Return {name of KerasHub's class: backbone} of BERT and all successors."""
    return {one.backbone.name: one.backbone for one in members() if one.backbone}


def backbone_of(config: BertConfig) -> Backbone:
    """Return KerasHub's backbone that computes an encoder of this shape.

    Raises:
      UserError: there is none.
    """
    ranked = sorted(backbones().values(), key=lambda one: one.rank)
    backbone = next(one for one in ranked if one.fits(config))
    needed = {
        "attention_direction": "bidirectional",
        "hidden_act": "gelu",
        "layer_norm_eps": backbone.computes["layer_norm_eps"],
    }
    if backbone.pooler:
        needed["pooler_activation"] = backbone.pooler
    for field, expected in needed.items():
        if (value := config.value(field, expected)) != expected:
            raise UserError(
                f"KerasHub's {backbone.name} has {field} {expected!r} only, not {value!r}"
            )
    backbone.check(config)
    return backbone


def remarks(backbone: Backbone, config: BertConfig) -> list[str]:
    """List what the backbone computes differently from an encoder of this shape, or lacks."""
    notes = []
    form = backbone.computes["gelu_form"]
    if config.gelu_form != form:
        notes.append(
            f"KerasHub computes GELU in the {form} form, this model {config.gelu_form}: outputs "
            "differ"
        )
    if config.attention_probs_dropout_prob != config.hidden_dropout_prob:
        notes.append("KerasHub has one dropout rate: hidden_dropout_prob was written")
    has_pooler = config.value("pooler_activation", "tanh") != "none"
    if backbone.computes.get("pooler_activation") == "none":
        if has_pooler:
            notes.append(f"left out, a {backbone.name} has no pooler: the pooler")
    elif config.value("pooler_activation", "tanh") != "tanh":
        notes.append(
            f"the pooler of {backbone.name} keeps random values: this model has not its pooler"
        )
    if backbone.one_segment and config.type_vocab_size:
        notes.append("the row of the one segment was added to those of the positions")
    return notes
