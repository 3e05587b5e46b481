"""Heads in a Hugging Face folder: the class that it names, and the tensors that it has.

An encoder is worth having with any head. A head that is not one of ours, or that lacks a tensor, is
left out, and the import's report says so.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np

from official_bert.checkpoints import members, transfer
from official_bert.checkpoints.member import Member
from official_bert.checkpoints.names import FINE_TUNED
from official_bert.common.errors import UserError, check_choice, check_once
from official_bert.common.json_files import field, shorten
from official_bert.config import BertConfig
from official_bert.objectives import parse_spec
from official_bert.window_pooling import token_pooling_fields

# Heads of pre-training depend on the objectives.
_CLASSES = {"none": "Model"} | {head: named.classes for head, named in FINE_TUNED.items()}
# How a class ends in config.json's "architectures" -> our head.
_HEADS = {ending: head for head, ending in _CLASSES.items()}
_HEADS |= dict.fromkeys(("ForPreTraining", "ForMaskedLM", "LMHeadModel"), "pretraining")
PROBLEMS = {
    "single_label": "single_label_classification",
    "multi_label": "multi_label_classification",
    "regression": "regression",
}


def untied(source: transfer.TensorSource) -> str:
    """Return how the masked-LM head differs from the embeddings that BERT ties it to, or "".

    A tensor that is stored under the copy's name alone is then found under the original's.
    """
    for copy, original in (
        ("cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"),
        ("cls.predictions.decoder.bias", "cls.predictions.bias"),
    ):
        if copy not in source.stored_names:
            continue
        if original not in source.stored_names:
            # Some writers keep only one name of a tied tensor.
            source.stored_names[original] = source.stored_names.pop(copy)
        elif not np.array_equal(*(source.read(source.stored_names[n]) for n in (copy, original))):
            return f"tensor {copy} differs from {original}; BERT ties them, and this model does too"
    return ""


def settings_of(
    fields: dict,
    path: Path,
    config: BertConfig,
    shapes: dict,
    source: transfer.TensorSource,
    head: str | None = None,
    difference: str = "",
) -> tuple[dict[str, Any], list[str]]:
    """Return the settings of `model.json`, and remarks for the report.

    Args:
      fields: of the configuration in `path`.
      shapes: of the tensors, by their stored names.
      source: the tensors.
      head: "none", "pretraining", or None for the folder's own.
      difference: the result of `untied`.

    Raises:
      UserError: `head` is another one, or a field of its labels is wrong.
    """
    check_choice("head", head or "none", ("none", "pretraining"))
    if head == "none":
        return {"head": head}, []
    if head == "pretraining":
        if difference:
            raise UserError(f"{source.where}: {difference}")
        return {"head": head, "objectives": _objectives(fields, source, config, True)}, []
    notes = [f"the masked-LM head is left out: {difference}"] if difference else []
    stated, own = (fields.get("architectures") or [""])[0], members.member(fields["model_type"])
    # AlbertForMaskedLM, DistilBertModel: the family's name, then an ending as BERT's classes have.
    families = "|".join(member.classes for member in members.members())
    named = re.fullmatch(f"(?:{families})([A-Z].*)", stated)
    found = _HEADS.get(named[1]) if named else None
    if found in FINE_TUNED:
        settings, missing = _fine_tuned(found, fields, path, config, shapes, source)
        return settings, [missing] if missing else []
    if found != "none":
        # A language-model head may be the table alone.
        is_table = found == "pretraining" and not own.own_words
        has_words = is_table or any(n.startswith("cls.predictions.") for n in source.stored_names)
        if objectives := _objectives(fields, source, config, has_words and not difference):
            return {"head": "pretraining", "objectives": objectives}, notes
        if stated:
            notes.append(f"{path.name} names {stated}: no such head is here; the encoder is read")
    return {"head": "none"}, notes


def _objectives(fields, source, config: BertConfig, has_words: bool) -> list[str]:
    names = source.stored_names
    found = [config.language_model] * has_words
    found += ["next_sentence"] * ("cls.seq_relationship.weight" in names)
    return members.member(fields["model_type"]).objectives(names, found)


def _fine_tuned(head, fields, path, config, shapes, source) -> tuple[dict[str, Any], str]:
    layer, outputs = FINE_TUNED[head].huggingface, FINE_TUNED[head].outputs
    parts = [shapes.get(source.stored_names.get(f"{layer}.{part}")) for part in ("weight", "bias")]
    count = outputs or (parts[1] or (0,))[0]
    if not count or parts != [(count, config.hidden_size), (count,)]:
        what = ", ".join(map(str, parts)).replace("None", "none")
        return {"head": "none"}, (
            f"the {head} head is left out: ours has tensors {layer}.weight and {layer}.bias for "
            f"vectors of {config.hidden_size} numbers, here they are {what}"
        )
    settings: dict[str, Any] = {"head": head}
    if head == "classification":
        ours = {theirs: name for name, theirs in PROBLEMS.items()}
        # The class that transformers assumes where the field is empty.
        usual = PROBLEMS["regression" if count == 1 else "single_label"]
        theirs = fields.get("problem_type") or usual
        check_choice("problem_type", theirs, ours, str(path))
        settings["problem"] = ours[theirs]
        if settings["problem"] == "regression" and count > 1:
            return {"head": "none"}, f"the {head} head is left out: regression to {count} numbers"
    if not outputs:
        settings["num_labels"] = count
        labels = _labels(fields, path)
        if len(labels) == count:
            settings["labels"] = labels
    return settings, ""


def _labels(fields: dict, path: Path) -> list[str]:
    named = field(fields, "id2label", dict, path) if fields.get("id2label") is not None else {}
    keys = [*map(str, range(len(named)))]
    if named.keys() != {*keys}:
        raise UserError(f"{path}: the fields of id2label must be 0, 1, ..., not {shorten(named)}")
    kinds = (str, int, float, bool)  # a label may be a number
    labels = [str(field(named, key, kinds, f"{path}: id2label")) for key in keys]
    check_once(labels, f"{path}: id2label")
    return labels


def class_of(member: Member, head: str, settings: dict, config: BertConfig) -> str:
    """Return the class of `transformers` that computes what the model does.

    Args:
      member: the member of the family that the encoder is exported as.
      head, settings: of `model_folder.describe`.

    Raises:
      UserError: there is none.
    """
    for name, what in (
        ("bilstm", "BERT with a BiLSTM"),
        ("windows", "classifier of windows"),
        *((name, f"classifier with {name.replace('_', ' ')}") for name in token_pooling_fields()),
    ):
        if settings.get(name):
            raise UserError(f"transformers has no {what}; export the encoder alone")
    objectives = (
        [parse_spec(one)[0] for one in settings["objectives"]] if head == "pretraining" else []
    )
    if member.name == "bert":
        ending = _ending_of_bert(head, objectives, config)
    else:
        _check_shape(member, head, objectives, config)
        ending = _CLASSES.get(head) or member.pretraining_class(objectives)
    if ending is None:
        raise UserError(
            f"transformers has no {member.classes} with the heads of {', '.join(objectives)}; "
            "export the encoder alone"
        )
    return member.classes + ending


def absent_parts(member: Member, class_name: str) -> tuple[str, ...]:
    """Return prefixes, by BERT's names, of the tensors that a class of `class_of` cannot store."""
    absent = [] if class_name.endswith("ForPreTraining") else [*members.pretraining_parts()]
    words_alone = class_name.endswith(("MaskedLM", "LMHeadModel"))
    if words_alone or class_name.endswith(("TokenClassification", "QuestionAnswering")):
        absent.append("bert.pooler.")
    if words_alone or member.name != "bert":
        absent.append("cls.seq_relationship.")
    return tuple(absent)


def _ending_of_bert(head: str, objectives: list[str], config: BertConfig) -> str:
    if config.attention_direction != "left_to_right":
        pretrained = "ForPreTraining" if "next_sentence" in objectives else "ForMaskedLM"
        return _CLASSES.get(head, pretrained)
    if head not in ("none", "pretraining"):
        raise UserError(
            f"transformers reads a {head} from the first token, which in a left-to-right model "
            "has seen only itself; export the encoder alone"
        )
    return "Model" if head == "none" else "LMHeadModel"


def _check_shape(member: Member, head: str, objectives: list[str], config: BertConfig) -> None:
    if not member.own_heads and head not in ("none", "pretraining"):
        raise UserError(
            f"transformers has no {member.classes} with a {head} like this: its own has no bias; "
            "export the encoder alone"
        )
    has_dense = member.dense == "tanh" or head in ("classification", "multiple_choice")
    needed = member.needed(config, objectives)
    needed |= {"pooler_activation": member.dense if has_dense else "none"}
    wrong = [name for name, value in needed.items() if config.value(name, value) != value]
    if wrong:
        values = ", ".join(f"{name} {config.value(name)!r}" for name in wrong)
        export = "export the encoder alone, or keep" if head != "none" else "keep"
        raise UserError(
            f"transformers has no {member.classes} that computes this {head} model: its {values} "
            f"is not what that has; {export} the model folder"
        )
