"""Common parts of exports of every format. Needs neither Keras nor TensorFlow."""

import dataclasses
import itertools
import os
from pathlib import Path

from official_bert.checkpoints import integrity
from official_bert.checkpoints.names import FINE_TUNED
from official_bert.common.errors import UserError, check_choice
from official_bert.common.files import write_json, write_text
from official_bert.export.settings import ServingSettings
from official_bert.extension import find
from official_bert.objectives import fills_masks

# Exports of a model folder's head: the first is the default.
_OF_ENCODER = ("embedding", "features")
HEADS = {
    **{head: (head, *_OF_ENCODER) for head in FINE_TUNED},
    "pretraining": ("masked_words", *_OF_ENCODER),
    "none": _OF_ENCODER,
}

# Format -> the precisions that it has.
PRECISIONS = {
    "saved_model": ("float32", "bfloat16"),
    "onnx": ("float32", "int8"),
    "litert": ("float32", "int8"),
}


def load(model: str | os.PathLike):
    """Return a `LoadedModel` and its name in messages, from a folder or a loaded model.

    Raises:
      UserError: the folder cannot be read, or the model has no vocabulary.
    """
    loaded, source = model, "the model"
    if isinstance(model, str | os.PathLike):
        from official_bert.checkpoints import model_folder

        loaded, source = model_folder.load(model), str(model)
    check_vocabulary(loaded.tokenizer, source)
    return loaded, source


def peek(folder: str | os.PathLike):
    """Return what `load` returns, but without weights: `encoder` and `model` are None."""
    from official_bert.checkpoints import embedded, model_folder, model_settings

    if not embedded.find(folder).is_dir():
        raise UserError(f"{folder}: no such folder")
    settings = model_settings.read_settings(folder)
    config, tokenizer = model_folder.peek(folder, settings)
    check_vocabulary(tokenizer, folder)
    described = model_folder.LoadedModel(config, None, None, settings["head"], tokenizer, settings)
    return described, str(folder)


def check_vocabulary(tokenizer, source: str | os.PathLike) -> None:
    """Raise UserError where a model, called `source` in the message, came without a vocabulary."""
    if tokenizer is None:
        raise UserError(f"{source}: has no vocabulary; a served model needs its vocabulary")


def check_precision(format: str, precision: str) -> None:
    """Raise UserError where a format does not have a precision."""
    check_choice("precision", precision, PRECISIONS[format], format)


def resolve_export(loaded, source: str, format: str, head: str | None = None, **settings):
    """Return (head, `ServingSettings`) of an export, without looking at weights.

    Raises:
      UserError: the model cannot be exported so.
    """
    head = choose_head(loaded, head, source)
    own = None if head in itertools.chain(*HEADS.values()) else find("heads", head)
    settings = (own.settings if own else ServingSettings).from_loaded(loaded, **settings)
    check_precision(format, settings.precision)
    settings.check_for(head, loaded)
    if own:
        own.check_export(settings, format, source)
    return head, settings


def choose_head(loaded, head: str | None, source: str) -> str:
    """Return the head to export: `head`, or by default the model's first in `HEADS`.

    Raises:
      UserError: the model, called `source` in the message, lacks that head.
    """
    possible = HEADS.get(loaded.head) or find("heads", loaded.head).exports
    if loaded.head == "pretraining" and not fills_masks(loaded.settings):
        possible = tuple(name for name in possible if name != "masked_words")
    head = head or possible[0]
    if head not in possible:
        raise UserError(
            f"{source} has the head {loaded.head!r}: it can be exported as {', '.join(possible)}, "
            f"not as {head!r}"
        )
    return head


def write_tokenizer(folder: Path, tokenizer, labels) -> None:
    """Write the vocabulary, and `labels.txt` where there are labels."""
    tokenizer.write(folder)
    if labels:
        text = "".join(f"{label}\n" for label in labels)
        write_text(folder / "labels.txt", text)


def description(loaded, head: str, inputs: list[str], settings: ServingSettings, **more) -> dict:
    """Return the contents of `serving.json`, which tells clients the kind of model."""
    return {
        "head": head,
        "problem": loaded.settings.get("problem", "") if head == "classification" else "",
        "labels": list(settings.labels),
        "inputs": inputs,
        "settings": dataclasses.asdict(settings),
        "bert_config": loaded.config.to_dict(),
        "tokenizer": loaded.tokenizer.kind,
        "mask": loaded.tokenizer.special.mask,
        **loaded.tokenizer.options,
        **more,
    }


def write_description(folder: Path, name: str, *described, **more) -> None:
    """Write `serving.json` as `name`, with checksums of the folder's other files.

    The other arguments are those of `description`.
    """
    fields = integrity.with_checksums(folder, name, description(*described, **more))
    write_json(folder / name, fields)
