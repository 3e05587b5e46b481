"""The registry of BERT and its successors: which of them a shape is, in either library's eyes."""

from official_bert.common.errors import UserError
from official_bert.config import BertConfig
from official_bert.family.albert import Albert
from official_bert.family.distilbert import DistilBert
from official_bert.family.electra import Electra
from official_bert.family.gpt2 import Gpt2
from official_bert.family.member import Backbone, Member
from official_bert.family.openai_gpt import OpenAIGPT
from official_bert.family.roberta import Roberta

MEMBERS: dict[str, Member] = {
    member.name: member
    for member in (Member(), Roberta(), Albert(), DistilBert(), Electra(), OpenAIGPT(), Gpt2())
}
BACKBONES: dict[str, Backbone] = {
    m.backbone.name: m.backbone for m in MEMBERS.values() if m.backbone
}


def member_of(config: BertConfig, has_word_pieces: bool) -> Member:
    """What an encoder of this shape goes out as to `transformers`."""
    order = ("gpt2", "openai-gpt", "albert", "distilbert", "electra", "roberta", "bert")
    return next(MEMBERS[n] for n in order if MEMBERS[n].fits(config, has_word_pieces))


def backbone_of(config: BertConfig) -> Backbone:
    """KerasHub's backbone that computes an encoder of this shape.

    Raises:
      UserError: there is none.
    """
    order = ("Albert", "Electra", "Roberta", "DistilBert", "Bert")
    backbones = (BACKBONES[f"{name}Backbone"] for name in order)
    found = next(backbone for backbone in backbones if backbone.fits(config))
    needed = {
        "attention_direction": "bidirectional",
        "hidden_act": "gelu",
        "layer_norm_eps": found.computes["layer_norm_eps"],
        "embedding_norm": True,
    }
    if found.name in ("BertBackbone", "AlbertBackbone"):
        needed["pooler_activation"] = "tanh"
    for field, expected in needed.items():
        if (value := config.value(field, expected)) != expected:
            raise UserError(f"KerasHub's {found.name} has {field} {expected!r} only, not {value!r}")
    if "embedding_size" in found.fields and not config.value("embedding_size"):
        raise UserError(f"KerasHub's {found.name} has an embedding_size of its own, this has none")
    return found


def remarks(backbone: Backbone, config: BertConfig) -> list[str]:
    """What the backbone computes differently from an encoder of this shape, or lacks."""
    notes = []
    form = backbone.computes["gelu_form"]
    if config.gelu_form != form:
        notes.append(
            f"KerasHub computes GELU in the {form} form, this model {config.gelu_form}: outputs "
            "differ"
        )
    if config.attention_probs_dropout_prob != config.hidden_dropout_prob:
        notes.append("KerasHub has one dropout rate: hidden_dropout_prob was written")
    has_pooler = config.value("pooler_activation") != "none"
    if backbone.computes.get("pooler_activation") == "none":
        if has_pooler:
            notes.append(f"left out, a {backbone.name} has no pooler: the pooler")
    elif config.value("pooler_activation") != "tanh":
        notes.append(
            f"the pooler of {backbone.name} keeps random values: this model has not its pooler"
        )
    if backbone.name == "RobertaBackbone" and config.type_vocab_size:
        notes.append("the row of the one segment was added to those of the positions")
    return notes
