"""Hugging Face model folders in and out: `config.json`, `model.safetensors`, tokenizer files.

Neither `transformers` nor PyTorch is needed, but for folders that hold only a `pytorch_model.bin`,
a pickle, which PyTorch reads.
"""

import contextlib
import json
import math
import os
import re
from pathlib import Path

import numpy as np

from official_bert.checkpoints import (
    huggingface_family,
    huggingface_family_export,
    huggingface_tokenizer,
    integrity,
    model_folder,
    transfer,
)
from official_bert.checkpoints.huggingface_tensors import CHECKSUMS, checksum, open_tensors
from official_bert.checkpoints.model_folder import LoadedModel
from official_bert.config import BertConfig
from official_bert.errors import UserError
from official_bert.files import atomic_folder
from official_bert.json_files import field, is_json_object, list_of, read_json, shorten
from official_bert.objectives import of_bert
from official_bert.tokenization import BertTokenizer

_MEMBERS = huggingface_family_export.MEMBERS
_LEFT_OUT = (
    (r"position_ids$", "a constant"),
    (r"^cls\.predictions\.decoder\.", "a copy of tied weights"),
)
# The class in config.json's "architectures" -> our head.
_HEADS = {
    "BertModel": "none",
    "BertForPreTraining": "pretraining",
    "BertForMaskedLM": "pretraining",
    "BertLMHeadModel": "pretraining",
    "BertForSequenceClassification": "classification",
    "BertForTokenClassification": "tagging",
    "BertForQuestionAnswering": "span",
    "BertForMultipleChoice": "multiple_choice",
}
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
_PROBLEMS = {
    "single_label": "single_label_classification",
    "multi_label": "multi_label_classification",
    "regression": "regression",
}
# Fields with the same name and meaning in config.json and in bert_config.json.
_SAME_FIELDS = (
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


def import_huggingface(
    folder: str | os.PathLike,
    head: str | None = None,
    gelu_form: str | None = None,
    vocab: str | os.PathLike | None = None,
    do_lower_case: bool | None = None,
    **encoder_options,
) -> LoadedModel:
    """Reads the folder of a model of `transformers`: BERT, one of `huggingface_family`, or GPT.

    Args:
      folder: with `config.json` and `model.safetensors` (or its shards, or `pytorch_model.bin`).
      head: "none" to take the encoder alone, "pretraining" for both pre-training heads; None for
        the head of the class that `config.json` names.
      gelu_form: None for what `hidden_act` says: "gelu" is erf, "gelu_new" tanh.
      vocab, do_lower_case: by default as the tokenizer files say.
      **encoder_options: passed to `BertEncoder`.

    Raises:
      UserError: a file is missing or damaged, the model is no BERT, or a tensor is missing or
        mis-shaped.
    """
    folder = Path(folder)
    fields = _read_config(folder / "config.json")
    config = _our_config(fields, folder / "config.json", gelu_form)
    with contextlib.ExitStack() as stack:
        shapes, read = open_tensors(folder, stack)
        member = _MEMBERS.get(fields.get("model_type"))
        stored = member.table_names(shapes) if member else _table_names(shapes)
        read = member.reader(read, stored, fields) if member else read
        settings = _settings(fields, config, shapes, stored, head, folder)
        integrity.check_size(config, settings, sum(map(math.prod, shapes.values())), folder)
        tokenizer = _tokenizer(fields, folder, vocab, do_lower_case)
        if tokenizer is not None:
            model_folder.check_vocabulary(config, len(tokenizer.vocab), str(folder))
        encoder, model = model_folder.build(config, settings, **encoder_options)
        source = transfer.TensorSource(str(folder), "huggingface", stored, read)
        _check_tied(source)
        report = transfer.fill(model, settings["head"], source, _LEFT_OUT)
    settings["do_lower_case"] = None if tokenizer is None else tokenizer.do_lower_case
    return LoadedModel(config, encoder, model, settings["head"], tokenizer, settings, report)


def peek(folder: Path):
    """(BertConfig, Tokenizer or None) from the small files of a folder."""
    fields = _read_config(folder / "config.json")
    config = _our_config(fields, folder / "config.json", None)
    return config, _tokenizer(fields, folder, None, None)


def export_huggingface(
    folder: str | os.PathLike, model, tokenizer, settings=None, overwrite: bool = False
) -> list[str]:
    """Writes a folder that `transformers` loads with no missing and no unexpected tensor.

    Successors go out as RoBERTa, ALBERT, DistilBERT, ELECTRA or OpenAI GPT, whichever the encoder
    is.

    Args:
      folder: where to.
      model: an encoder, a pre-trainer or a model of `official_bert.heads`.
      tokenizer: its tokeniser; None, or one that such a model has not, to write no tokenizer files.
      settings: fields of `model.json` that the format has a place for: labels, max_seq_length.
      overwrite: replace a folder that exists.

    Returns:
      remarks on what the format cannot hold.

    Raises:
      UserError: `transformers` has no class that would compute the same; the folder exists.
    """
    from safetensors.numpy import save_file

    head, own = model_folder.describe(model)
    settings = {**(settings or {}), **own}
    config = getattr(model, "encoder", model).config
    word_pieces = isinstance(tokenizer, BertTokenizer)
    kind = huggingface_family_export.kind_of(config, word_pieces)
    own_pieces = not word_pieces and tokenizer and tokenizer.kind == _tokenizer_kind(kind)
    architecture = _architecture(kind, head, settings, config)
    tensors = transfer.extract(model, head, "huggingface")
    fields = _their_config(config, head, settings, architecture)
    if kind == "bert":
        left_out = _drop_absent_parts(tensors, architecture)
    else:
        tensors, left_out = huggingface_family_export.tensors(kind, head, tensors, architecture)
        fields = huggingface_family_export.their_config(kind, fields, config)
    notes = []
    if left_out:
        notes.append(f"left out, {architecture} has no place for it: {', '.join(left_out)}")
    if kind == "bert" and config.attention_direction == "left_to_right":
        notes.append("causal attention is written as is_decoder; its pooler reads [CLS] there")
    with atomic_folder(folder, overwrite=overwrite) as temporary:
        text = json.dumps(fields, indent=2)
        (temporary / "config.json").write_text(text + "\n", encoding="utf-8")
        # transformers refuses files that do not say which framework wrote them.
        checksums = json.dumps({name: checksum(array) for name, array in tensors.items()})
        metadata = {"format": "pt", CHECKSUMS: checksums}
        save_file(tensors, temporary / "model.safetensors", metadata=metadata)
        length = settings.get("max_seq_length") or config.max_position_embeddings
        if own_pieces:
            huggingface_tokenizer.write_of_successor(temporary, tokenizer, length)
        if word_pieces:
            has_segments = config.type_vocab_size > 1
            huggingface_tokenizer.write(temporary, tokenizer, length, has_segments)
    if kind != "bert" and hasattr(model, "generator"):
        notes.append("left out: ELECTRA's generator, which is a model of its own there")
    has_word_pieces = _tokenizer_kind(kind) == "word_piece"
    if not (word_pieces or own_pieces or (has_word_pieces and tokenizer is None)):
        notes.append(
            f"no tokenizer files: {_tokenizer_kind(kind)} is what {kind} has; put the original's "
            "beside the model"
        )
    return notes


def is_huggingface_folder(folder: str | os.PathLike) -> bool:
    """Whether `folder` holds a `config.json` of `transformers`."""
    return is_json_object(Path(folder) / "config.json", "model_type")


def _read_config(path: Path) -> dict:
    fields = read_json(path)
    kinds = ("bert", *_MEMBERS)
    if fields.get("model_type", "bert") not in kinds:
        raise UserError(
            f"{path}: model_type is {shorten(fields['model_type'])}; read are {', '.join(kinds)}"
        )
    for name in ("hidden_act", "problem_type", "position_embedding_type"):
        if fields.get(name) is not None:
            field(fields, name, str, path)
    if fields.get("architectures") is not None:
        list_of(fields, "architectures", str, path)
    return fields


def _tokenizer(fields: dict, folder: Path, vocab, do_lower_case: bool | None):
    kind = _tokenizer_kind(fields.get("model_type"))
    return huggingface_tokenizer.read(folder, vocab, do_lower_case, kind)


def _tokenizer_kind(model_type: str | None) -> str:
    member = _MEMBERS.get(model_type)
    return member.tokenizer if member else "word_piece"


def _our_config(fields: dict, path: Path, gelu_form: str | None) -> BertConfig:
    if member := _MEMBERS.get(fields.get("model_type")):
        fields = member.bert_fields(fields, path)
    kind = fields.get("position_embedding_type") or "absolute"
    if kind != "absolute":
        raise UserError(f"{path}: position_embedding_type {kind!r}; BERT's are absolute")
    if fields.get("add_cross_attention"):
        raise UserError(f"{path}: add_cross_attention is set; BERT's encoder has none")
    theirs = fields.get("hidden_act") or "gelu"
    if theirs not in _ACTIVATIONS:
        raise UserError(f"{path}: hidden_act {theirs!r} is none of {', '.join(_ACTIVATIONS)}")
    act, form = _ACTIVATIONS[theirs]
    same = (*_SAME_FIELDS, *huggingface_family.OUR_FIELDS)
    ours = {name: fields[name] for name in same if name in fields}
    direction = "left_to_right" if fields.get("is_decoder") else "bidirectional"
    ours |= {"hidden_act": act, "gelu_form": gelu_form or form, "attention_direction": direction}
    return BertConfig.from_dict(ours, source=str(path))


def _their_config(config: BertConfig, head: str, settings: dict, architecture: str) -> dict:
    names = {ours: theirs for theirs, ours in reversed(_ACTIVATIONS.items()) if ours[0] == "gelu"}
    act = names.get((config.hidden_act, config.gelu_form), config.hidden_act)
    decoder = config.attention_direction == "left_to_right"
    fields = {
        "architectures": [architecture],
        "model_type": "bert",
        **{name: getattr(config, name) for name in _SAME_FIELDS},
        "hidden_act": act,
        "is_decoder": decoder,
        "pad_token_id": 0,
        "position_embedding_type": "absolute",
        "tie_word_embeddings": True,
        "dtype": "float32",
    }
    if head in ("classification", "tagging"):
        count = settings["num_labels"]
        labels = settings.get("labels") or [f"LABEL_{i}" for i in range(count)]
        fields["id2label"] = {str(i): str(label) for i, label in enumerate(labels)}
        fields["label2id"] = {str(label): i for i, label in enumerate(labels)}
    if head == "classification":
        fields["problem_type"] = _PROBLEMS[settings["problem"]]
    return fields


def _architecture(kind: str, head: str, settings: dict, config: BertConfig) -> str:
    if settings.get("bilstm"):
        raise UserError("transformers has no BERT with a BiLSTM; export the encoder alone")
    if settings.get("windows"):
        raise UserError("transformers has no classifier of windows; export the encoder alone")
    if settings.get("concat_pooling"):
        raise UserError("transformers has no concat pooling; export the encoder alone")
    if kind != "bert":
        return huggingface_family_export.architecture(kind, head, settings, config)
    if config.attention_direction == "left_to_right":
        if head not in ("none", "pretraining"):
            raise UserError(
                f"transformers reads a {head} from the first token, which in a left-to-right model "
                "has seen only itself; export the encoder alone"
            )
        return "BertModel" if head == "none" else "BertLMHeadModel"
    if head == "pretraining":
        pairs = "next_sentence" in settings["objectives"]
        return "BertForPreTraining" if pairs else "BertForMaskedLM"
    return {ours: theirs for theirs, ours in _HEADS.items()}[head]


def _drop_absent_parts(tensors: dict[str, np.ndarray], architecture: str) -> list[str]:
    # Those classes are built without a pooler.
    absent = ()
    if architecture in ("BertForMaskedLM", "BertLMHeadModel"):
        absent = ("bert.pooler.", "cls.seq_relationship.")
    elif architecture in ("BertForTokenClassification", "BertForQuestionAnswering"):
        absent = ("bert.pooler.",)
    left_out = [name for name in tensors if name.startswith(absent)] if absent else []
    for name in left_out:
        del tensors[name]
    if architecture == "BertModel":
        for name in list(tensors):
            tensors[name.removeprefix("bert.")] = tensors.pop(name)
    return left_out


def _table_names(shapes: dict) -> dict[str, str]:
    # BertModel alone writes its tensors without the "bert." that every other class puts before
    # them; the oldest files call the parameters of LayerNorm gamma and beta.
    prefix = "" if any(name.startswith("bert.") for name in shapes) else "bert."
    names = {}
    for name in shapes:
        table_name = name.replace("LayerNorm.gamma", "LayerNorm.weight")
        table_name = table_name.replace("LayerNorm.beta", "LayerNorm.bias")
        if name.startswith(("embeddings.", "encoder.", "pooler.")):
            table_name = prefix + table_name
        names[table_name] = name
    return names


def _check_tied(source: transfer.TensorSource) -> None:
    for copy, original in (
        ("cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"),
        ("cls.predictions.decoder.bias", "cls.predictions.bias"),
    ):
        if copy not in source.stored_names:
            continue
        if original not in source.stored_names:
            # Some writers keep only one name of a tied tensor.
            source.stored_names[original] = source.stored_names.pop(copy)
        elif not np.array_equal(
            source.read(source.stored_names[copy]), source.read(source.stored_names[original])
        ):
            raise UserError(
                f"{source.where}: tensor {copy} differs from {original}; BERT ties them, and this "
                "model does too"
            )


def _labels(fields: dict, path: Path) -> list[str]:
    named = field(fields, "id2label", dict, path) if fields.get("id2label") is not None else {}
    if not all(key.isascii() and key.isdecimal() and len(key) < 10 for key in named):
        raise UserError(f"{path}: the fields of id2label must be numbers, not {shorten(named)}")
    return [field(named, key, str, f"{path}: id2label") for key in sorted(named, key=int)]


def _settings(
    fields: dict, config: BertConfig, shapes, stored, head: str | None, folder: Path
) -> dict:
    architecture = (fields.get("architectures") or ["BertModel"])[0]
    # AlbertForMaskedLM, DistilBertModel: what follows the name of the family is BERT's.
    family = re.match("(Bert|Roberta|Albert|DistilBert|Electra|OpenAIGPT)(?=[A-Z])", architecture)
    architecture = f"Bert{architecture[family.end() :]}" if family else architecture
    if head is None:
        if architecture not in _HEADS:
            names = ", ".join(_HEADS)
            raise UserError(
                f"{folder / 'config.json'}: architectures names {architecture}, none of {names}; "
                "pass head='none' to take the encoder alone"
            )
        head = _HEADS[architecture]
    elif head not in ("none", "pretraining"):
        raise UserError(f"head must be none or pretraining, not {head!r}")
    settings = {"head": head}
    if head == "pretraining":
        has_pairs = "cls.seq_relationship.weight" in stored
        settings["objectives"] = list(of_bert(config.attention_direction, has_pairs))
        if "sop_classifier.classifier.weight" in stored:
            settings["objectives"].append("sentence_order")
        if "discriminator_predictions.dense.weight" in stored:
            settings["objectives"] = ["replaced_token"]
    if head in ("classification", "tagging"):
        if len(shapes.get(stored.get("classifier.weight"), ())) != 2:
            raise UserError(
                f"{folder}: no tensor classifier.weight of two dimensions ({architecture})"
            )
        settings["num_labels"] = int(shapes[stored["classifier.weight"]][0])
        labels = _labels(fields, folder / "config.json")
        if len(labels) == settings["num_labels"]:
            settings["labels"] = labels
    if head == "classification":
        ours = {theirs: name for name, theirs in _PROBLEMS.items()}
        # What transformers assumes where the field is empty.
        default = "regression" if settings["num_labels"] == 1 else "single_label"
        settings["problem"] = ours.get(fields.get("problem_type"), default)
    return settings
