"""Hugging Face model folders in and out: `config.json`, `model.safetensors`, tokenizer files.

Neither `transformers` nor PyTorch is needed. Only a `pytorch_model.bin`, a pickle, is read by
PyTorch.
"""

import contextlib
import functools
import math
import os
from pathlib import Path

from official_bert.checkpoints import members, model_folder, transfer
from official_bert.checkpoints.files import safetensors_files
from official_bert.checkpoints.hugging_face import (
    huggingface_config,
    huggingface_heads,
    huggingface_tokenizer,
    model_card,
    sentence_transformers,
)
from official_bert.checkpoints.hugging_face.huggingface_tensors import has_tensors, open_tensors
from official_bert.checkpoints.model_folder import LoadedModel
from official_bert.checkpoints.sentence_vectors import SentenceVectors
from official_bert.common.errors import UserError
from official_bert.common.files import atomic_folder, write_json, write_text
from official_bert.common.json_files import is_json_object
from official_bert.config import BertConfig
from official_bert.tokenization import BertTokenizer, ForeignTokenizer

_LEFT_OUT = (
    (r"(position|token_type)_ids$", "a constant"),
    (r"^cls\.predictions\.decoder\.", "a copy of tied weights"),
)


def import_huggingface(
    folder, /, head=None, gelu_form=None, vocab=None, do_lower_case=None, **encoder_options
) -> LoadedModel:
    """Import a folder of `transformers`, of a model in `members`, as a `resolve.Importer`.

    In the folder are `config.json` and `model.safetensors` (or its shards, or `pytorch_model.bin`).
    The head is that of the class that `config.json` names; GELU is what `hidden_act` says, "gelu"
    being erf and "gelu_new" tanh; texts are cut as the tokenizer files say.
    """
    whole = Path(folder)
    folder = sentence_transformers.encoder_folder(whole)
    path = huggingface_config.path_of(folder)
    with contextlib.ExitStack() as stack:
        fields, opened = _fields(folder, path, stack)
        config = huggingface_config.our_config(fields, path, gelu_form)
        shapes, read_stored = opened()
        member = members.member(fields["model_type"])
        own = transfer.rooted(shapes, member.anchor, f"{member.prefix}.", folder)
        stored = member.table_names(own)
        shapes = {name: shapes[there] for name, there in own.items()}
        read = member.reader(lambda name: read_stored(own[name]), stored, fields)
        tokenizer = _tokenizer(fields, folder, vocab, do_lower_case)
        source = transfer.TensorSource(str(folder), "huggingface", stored, read)
        difference = huggingface_heads.untied(source)
        settings, notes = huggingface_heads.settings_of(
            fields, path, config, shapes, source, head, difference
        )
        untied = [(r"^cls\.predictions\.", "not tied as ours are")] if difference else []
        reasons, numbers = [*untied, *_LEFT_OUT], sum(map(math.prod, shapes.values()))
        loaded = transfer.assembled(
            config, settings, source, tokenizer, notes, reasons, numbers, **encoder_options
        )
    loaded.vectors = _vectors(whole, folder, loaded)
    return loaded


def peek(folder: Path):
    """Return (BertConfig, Tokenizer or None) from the small files of a folder."""
    folder = sentence_transformers.encoder_folder(folder)
    path = huggingface_config.path_of(folder)
    with contextlib.ExitStack() as stack:
        fields, _ = _fields(folder, path, stack)
    tokenizer = _tokenizer(fields, folder, None, None)
    return huggingface_config.our_config(fields, path, None).padded_by(tokenizer), tokenizer


def export_huggingface(folder, model, tokenizer, settings=None, overwrite=False) -> list[str]:
    """Write a folder that `transformers` loads with no missing and no unexpected tensor.

    It is a `resolve.Exporter`.

    Successors go out as RoBERTa, ALBERT, DistilBERT, ELECTRA or OpenAI GPT, whichever the encoder
    is. The labels and max_seq_length of the settings are kept, and what `model_card` tells.
    """
    model = model_folder.kept(model)
    head, own = model_folder.describe(model)
    settings = {**(settings or {}), **own}
    config = getattr(model, "encoder", model).config
    member = members.member_of(config, tokenizer.algorithm if tokenizer else "")
    writes_pieces = isinstance(tokenizer, BertTokenizer | ForeignTokenizer)
    writes_pieces |= tokenizer is not None and tokenizer.kind == member.tokenizer
    architecture = huggingface_heads.class_of(member, head, settings, config)
    found = transfer.extract(model, head, "huggingface")
    absent = huggingface_heads.absent_parts(member, architecture)
    left_out = transfer.nameless(model, head, "huggingface")
    left_out += [name for name in found if name.startswith(absent)]
    found = {name: array for name, array in found.items() if name not in left_out}
    tensors = member.own_tensors(found, head)
    fields = _their_config(config, head, settings, architecture)
    fields = member.their_config({**fields, "model_type": member.name}, config)
    notes: list[str] = []
    vectors = None
    if "embedding" in settings:
        vectors = SentenceVectors.from_settings(settings["embedding"], "settings: embedding")
        if vectors.refused:
            note = "left out: how vectors of texts are made, modules.json"
            notes.append(f"{note} ({vectors.refused})")
            vectors = None
    if all(one.language_model for one in getattr(model, "objectives", ())):
        # The head of sentence pairs was never trained.
        left_out = [name for name in left_out if not name.startswith("cls.seq_relationship.")]
    if left_out:
        notes.append(f"left out, {architecture} has no place for it: {', '.join(left_out)}")
    if member.name == "bert" and config.attention_direction == "left_to_right":
        notes.append("causal attention is written as is_decoder; its pooler reads [CLS] there")
    if not writes_pieces and (tokenizer is not None or member.tokenizer != "word_piece"):
        notes.append(
            f"no tokenizer files: {member.tokenizer} is what {member.name} has; put the original's "
            "beside the model"
        )
    with atomic_folder(folder, overwrite, model_folder.size_of(model)) as temporary:
        write_json(temporary / "config.json", fields)
        card = model_card.text(config, member.name, architecture, settings, notes)
        write_text(temporary / model_card.FILE, card)
        # transformers refuses files that do not say which framework wrote them.
        safetensors_files.write(temporary / "model.safetensors", tensors, format="pt")
        length = settings.get("max_seq_length") or config.max_position_embeddings
        has_segments = config.type_vocab_size > 1
        if writes_pieces:
            huggingface_tokenizer.write(temporary, tokenizer, length, has_segments)
        if vectors:
            sentence_transformers.write(temporary, vectors, config.hidden_size, length)
    return notes


def is_huggingface_folder(folder: str | os.PathLike) -> bool:
    """Return whether `folder` holds a `config.json` of `transformers`, or one beside weights."""
    try:
        folder = sentence_transformers.encoder_folder(Path(folder))
    except UserError:
        return False
    path = huggingface_config.path_of(folder)
    return is_json_object(path, "model_type") or (has_tensors(folder) and path.is_file())


def _vectors(whole: Path, folder: Path, loaded: LoadedModel):
    """Read how `embed` makes vectors, and note it in the model's settings and report."""
    config, settings, report = loaded.config, loaded.settings, loaded.report
    longest = huggingface_tokenizer.longest(folder) or config.max_position_embeddings
    vectors, length = sentence_transformers.read(whole, config, longest)
    if vectors is None:
        report.notes.append("embed gives the mean over all tokens: no modules.json says otherwise")
        return None
    settings["embedding"] = vectors.settings()
    if length:
        settings["max_seq_length"] = length
    if vectors.refused:
        report.notes.append(f"embed needs a pooling: {vectors.refused}")
    else:
        report.notes.append(f"embed gives, as modules.json says, {vectors}; up to {length} tokens")
    return vectors


def _fields(folder: Path, path: Path, stack: contextlib.ExitStack):
    """Return the fields of the configuration, and a function that opens the weights once."""
    fields = huggingface_config.read(path)
    opened = functools.cache(lambda: open_tensors(folder, stack))
    if fields.get("model_type") not in members.known():
        names = opened()[0] if has_tensors(folder) else ()
        fields = huggingface_config.with_kind(fields, names, path)
    return fields, opened


def _tokenizer(fields: dict, folder: Path, vocab, do_lower_case: bool | None):
    kind = members.member(fields["model_type"]).tokenizer
    return huggingface_tokenizer.read(folder, vocab, do_lower_case, kind)


def _their_config(config: BertConfig, head: str, settings: dict, architecture: str) -> dict:
    fields = huggingface_config.their_config(config, architecture)
    if head in ("classification", "tagging"):
        count = settings["num_labels"]
        labels = settings.get("labels") or [f"LABEL_{i}" for i in range(count)]
        fields["id2label"] = {str(i): str(label) for i, label in enumerate(labels)}
        fields["label2id"] = {str(label): i for i, label in enumerate(labels)}
    if head == "classification":
        fields["problem_type"] = huggingface_heads.PROBLEMS[settings["problem"]]
    return fields
