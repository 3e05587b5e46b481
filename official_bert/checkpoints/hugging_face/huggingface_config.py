"""`config.json` of a Hugging Face folder: a model's shape, read and written.

A folder of 2019 may lack model_type, or have Google's bert_config.json beside PyTorch's weights.
Then the names of the tensors say which model it is.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from official_bert.checkpoints import members
from official_bert.common.errors import UserError, check_choice
from official_bert.common.json_files import field, list_of, read_json, shorten
from official_bert.config import BertConfig
from official_bert.extension import names

FILES = ("config.json", "bert_config.json")
# Their tensors have BERT's names, which do not show that they compute something else.
_LOOK_ALIKE = ("big_bird", "mra", "nystromformer", "yoso")
# hidden_act there -> (hidden_act, gelu_form) here.
_ACTIVATIONS = {
    "gelu": ("gelu", "erf"),
    "gelu_python": ("gelu", "erf"),
    "gelu_new": ("gelu", "tanh"),
    "gelu_fast": ("gelu", "tanh"),
    "gelu_pytorch_tanh": ("gelu", "tanh"),
    "relu": ("relu", "erf"),
    "tanh": ("tanh", "erf"),
    "linear": ("linear", "erf"),
}
# Fields with the same name and meaning in config.json and in bert_config.json.
SAME_FIELDS = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "max_position_embeddings",
    "type_vocab_size",
    "initializer_range",
    "layer_norm_eps",
)


def path_of(folder: Path) -> Path:
    """Return the path of the folder's configuration; the first name where it has none."""
    return next((folder / name for name in FILES if (folder / name).is_file()), folder / FILES[0])


def read(path: Path) -> dict[str, Any]:
    """Return the fields.

    Raises:
      UserError: the file is damaged, or says that the weights are quantised.
    """
    fields = read_json(path)
    for name in ("model_type", "hidden_act", "problem_type", "position_embedding_type"):
        if fields.get(name) is not None:
            field(fields, name, str, path)
    if fields.get("architectures") is not None:
        list_of(fields, "architectures", str, path)
    if fields.get("quantization_config"):
        raise UserError(
            f"{path}: quantization_config is set; quantised weights are not read, those that they "
            "were made of are"
        )
    return fields


def with_kind(fields: dict[str, Any], names: Iterable[str], path: Path) -> dict[str, Any]:
    """Return the fields with a "model_type" that is one of `members`.

    Where the file names none, or an unknown one, the tensors decide.

    Raises:
      UserError: the model is none that is read, or may be one of two.
    """
    model_type = fields.get("model_type")
    if model_type in members.known():
        return fields
    found = None if model_type in _LOOK_ALIKE else _kind_by_tensors(fields, list(names), path)
    if found is None:
        reason = "no model_type" if model_type is None else f"model_type is {shorten(model_type)}"
        known = ", ".join(members.known())
        raise UserError(f"{path}: {reason}, and the tensors are not BERT's; read are {known}")
    return {**fields, "model_type": found}


def our_config(fields: dict, path: Path, gelu_form: str | None) -> BertConfig:
    """Return the `BertConfig` of the fields that `with_kind` returns.

    Raises:
      UserError: a field is wrong, or the encoder computes what ours does not.
    """
    own = members.member(fields["model_type"]).bert_fields(fields, path)
    fields = {**fields, **own}
    embedding = fields.get("position_embedding_type") or "absolute"
    if embedding != "absolute":
        raise UserError(f"{path}: position_embedding_type {embedding!r}; BERT's are absolute")
    if fields.get("add_cross_attention"):
        raise UserError(f"{path}: add_cross_attention is set; BERT's encoder has none")
    field(fields, "num_attention_heads", int, path)  # which no tensor's shape shows
    theirs = fields.get("hidden_act") or "gelu"
    check_choice("hidden_act", theirs, _ACTIVATIONS, str(path))
    act, form = _ACTIVATIONS[theirs]
    same = {*SAME_FIELDS, *(own.keys() & names("configs"))}
    ours = {name: value for name, value in fields.items() if name in same}
    if fields.get("pad_token_id") is not None:
        ours["pad_token_id"] = field(fields, "pad_token_id", int, path)
    direction = "left_to_right" if fields.get("is_decoder") else "bidirectional"
    ours |= {"hidden_act": act, "gelu_form": gelu_form or form, "attention_direction": direction}
    return BertConfig.from_dict(ours, source=str(path))


def their_config(config: BertConfig, architecture: str) -> dict[str, Any]:
    """Return the fields of a config.json that do not belong to a head."""
    names = {ours: theirs for theirs, ours in reversed(_ACTIVATIONS.items()) if ours[0] == "gelu"}
    return {
        "architectures": [architecture],
        "model_type": "bert",
        **{name: getattr(config, name) for name in SAME_FIELDS},
        "hidden_act": names.get((config.hidden_act, config.gelu_form), config.hidden_act),
        "is_decoder": config.attention_direction == "left_to_right",
        "pad_token_id": config.pad_token_id,
        "position_embedding_type": "absolute",
        "tie_word_embeddings": True,
        "dtype": "float32",
    }


def _kind_by_tensors(fields: dict, names: list[str], path: Path) -> str | None:
    for member in members.members():
        if any(re.search(rf"(^|\.)({member.sign})", name) for name in names):
            return member.name
    if not any(name.endswith(members.member("bert").anchor) for name in names):
        return None
    if fields.get("pad_token_id"):  # bare, without the name of a family
        raise UserError(
            f"{path}: no model_type; padding of id {shorten(fields['pad_token_id'])} may be "
            f"another model's than BERT's: add \"model_type\", one of {', '.join(members.known())}"
        )
    return "bert"
