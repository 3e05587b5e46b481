"""A model folder: everything a trained model needs, in four files.

`bert_config.json` (the encoder's shape), `model.json` (which head, its labels and the task's
settings, and the checksums of all files), `weights.safetensors` (every variable by its name, bit
for bit) and `vocab.txt`, or what a successor's tokeniser has in its place. Training writes model
folders, imports make them, exports read them; one written under one backend loads under another.
"""

import contextlib
import dataclasses
import math
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from official_bert.backend.variables import named_variables
from official_bert.checkpoints import embedded, integrity
from official_bert.checkpoints.files import safetensors_files
from official_bert.checkpoints.model_settings import HEADS, MODEL_FILE, check_field, read_settings
from official_bert.checkpoints.sentence_vectors import SentenceVectors
from official_bert.common.errors import UserError
from official_bert.common.files import atomic_folder, write_json
from official_bert.config import BertConfig
from official_bert.extension import find

CONFIG_FILE = "bert_config.json"
WEIGHTS_FILE = "weights.safetensors"

_FIRST_KIND = "word_piece"  # of folders that do not say which tokeniser they have


@dataclasses.dataclass
class LoadedModel:
    """A model with everything that belongs to it; `predict.Model` adds methods that answer.

    Attributes:
      config: the encoder's `BertConfig`.
      encoder: the `BertEncoder`; None where an extension's head reads texts by itself.
      model: the whole model: encoder and head, or the encoder itself where there is no head.
      head: "none", "pretraining", "classification", "span", "multiple_choice", "tagging" or an
        extension's.
      tokenizer: a `tokenization.Tokenizer`, or None where no vocabulary came with the weights.
      settings: the contents of `model.json`: labels, problem, do_lower_case, lengths, task.
      vectors: `SentenceVectors`, how `embed` makes vectors; None where no file says it.
      report: what an import loaded, left out and kept at its initial value; None when the model
        came from a model folder.
    """

    config: BertConfig
    encoder: Any
    model: Any
    head: str
    tokenizer: Any
    settings: dict[str, Any]
    report: Any = None
    vectors: SentenceVectors | None = None

    @property
    def verb(self) -> str:
        """Name of the method of `predict.Model` that asks this model's head."""
        if self.head != "pretraining":
            return "embed" if self.head == "none" else "predict"
        return "fill_mask" if self.config.attention_direction == "bidirectional" else "generate"


def is_model_folder(folder: str | os.PathLike) -> bool:
    """Return whether `folder` holds the files of a model folder; they may still be faulty."""
    folder = embedded.find(folder)
    has = [(folder / name).is_file() for name in (MODEL_FILE, CONFIG_FILE, WEIGHTS_FILE)]
    return has[0] and any(has[1:])  # an extension's own folder has no BERT to describe


def save(
    folder: str | os.PathLike,
    model,
    tokenizer,
    settings: dict[str, Any] | None = None,
    overwrite: bool = False,
    half: bool = False,
) -> None:
    """Write a model folder; it appears under its name only when it is complete.

    Args:
      model: a `BertEncoder`, a `BertPretrainer` or a model of `official_bert.heads`. A model that
        learns from a teacher is written as the student, without objectives that need the teacher.
      tokenizer: the tokeniser of the model, or None to write no vocabulary.
      settings: further fields of `model.json`, such as labels, max_seq_length or task; what the
        model and the tokeniser know themselves (head, num_labels, do_lower_case, ...) is added.
      half: round the weights to 16 bits, of which 11 are digits: half the size on the disk.

    Raises:
      UserError: the folder exists and `overwrite` is false, it cannot be written, the vocabulary
        has more entries than the embedding table has rows, or a weight is too large for 16 bits.
    """
    model = kept(model)
    head, own_settings = describe(model)
    config = model.config if head == "none" else model.encoder.config
    description = {**(settings or {}), "head": head, **own_settings}
    description["do_lower_case"] = None
    if tokenizer is not None:
        description |= {"do_lower_case": tokenizer.do_lower_case, **tokenizer.options}
        if tokenizer.kind != _FIRST_KIND:
            description["tokenizer"] = tokenizer.kind
        check_vocabulary(config, len(tokenizer.vocab), f"the vocabulary to save in {folder}")
    with atomic_folder(folder, overwrite, size_of(model) // (1 + half)) as temporary:
        config.to_json_file(temporary / CONFIG_FILE)
        tensors = {name: _array(v) for name, v in named_variables(model).items()}
        if half:
            tensors = {name: _halved(array, name, folder) for name, array in tensors.items()}
        safetensors_files.write(temporary / WEIGHTS_FILE, tensors)
        if tokenizer is not None:
            tokenizer.write(temporary)
        description = integrity.with_checksums(temporary, MODEL_FILE, description)
        write_json(temporary / MODEL_FILE, description)


def size_of(model) -> int:
    """Return the bytes that a model's weights take on the disk, at least."""
    return sum(math.prod(variable.shape) * 4 for variable in model.weights)


def load(folder: str | os.PathLike, **encoder_options: Any) -> LoadedModel:
    """Read a model folder; the head is rebuilt from `model.json`.

    Args:
      folder: a model folder, or the name of an embedded model.
      **encoder_options: passed to `BertEncoder`, for example `remat=True`.

    Raises:
      UserError: a file is missing or damaged, or the files do not belong together. The message
        names the file and the field.
    """
    folder = embedded.find(folder)
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder")
    settings = read_settings(folder)
    if own := own_loader(settings):
        return own(folder, settings)
    config, tokenizer = peek(folder, settings)
    path = folder / WEIGHTS_FILE
    if not path.is_file():
        raise UserError(f"{path}: missing; a model folder needs its weights")
    with contextlib.ExitStack() as stack:
        shapes, read = safetensors_files.open_all([path], stack)  # checks the size by the header
        integrity.check_folder(folder, MODEL_FILE, settings)
        settings.pop(integrity.CHECKSUMS, None)
        integrity.check_size(config, settings, sum(map(math.prod, shapes.values())), path)
        encoder, model = build(config, settings, **encoder_options)
        _fill(model, shapes, read, path)
    for variable in model.weights:
        integrity.check_finite(_array(variable), variable.path, path)
    vectors = None
    if "embedding" in settings:
        where = f"{folder / MODEL_FILE}: embedding"
        vectors = SentenceVectors.from_settings(settings["embedding"], where)
    head = settings["head"]
    return LoadedModel(config, encoder, model, head, tokenizer, settings, vectors=vectors)


def peek(folder: str | os.PathLike, settings: dict[str, Any] | None = None):
    """Return (BertConfig, BertTokenizer or None), without reading the weights.

    Raises:
      UserError: a file is missing or damaged, or the vocabulary has more entries than the model.
    """
    folder = embedded.find(folder)
    settings = settings or read_settings(folder)
    if own_loader(settings):
        raise UserError(
            f"{folder}: a {settings['head']} is not a network of tokens, to train further or to "
            "export; official_bert.load(FOLDER).predict and the command predict ask it"
        )
    config = BertConfig.from_json_file(folder / CONFIG_FILE)
    tokenizer = _load_tokenizer(folder, config, settings)
    return config.padded_by(tokenizer), tokenizer


def own_loader(settings: dict[str, Any]):
    """Return the function (folder, settings) -> `LoadedModel` of an extension's head that is no
    network of tokens; None for all others."""
    name = settings["head"]
    return None if name in HEADS else getattr(find("heads", name), "load", None)


def build(config: BertConfig, settings: dict[str, Any], **encoder_options):
    """Make the encoder, and the model around it that `settings["head"]` names, newly initialised.

    Returns:
      (encoder, model); the same object twice for the head "none"; no encoder, None, where the
      model does not compute with it.
    """
    from official_bert.encoder import BertEncoder
    from official_bert.heads import build_head
    from official_bert.pretraining import BertPretrainer

    encoder: Any = BertEncoder(config, **encoder_options)
    match settings["head"]:
        case "none":
            model = encoder
        case "pretraining":
            model = BertPretrainer(encoder, settings["objectives"], dtype=encoder.dtype_policy)
        case _:
            model = build_head(encoder, settings, bilstm=bool(settings.get("bilstm")))
            encoder = encoder if model.encoder is encoder else None
    return encoder, model


def describe(model) -> tuple[str, dict[str, Any]]:
    """Return the name of the model's head and the arguments that rebuild it.

    Raises:
      UserError: the model is not one of this project's.
    """
    from official_bert.encoder import BertEncoder
    from official_bert.heads import FineTuned
    from official_bert.pretraining import BertPretrainer

    if isinstance(model, BertEncoder):
        return "none", {}
    if isinstance(model, BertPretrainer):
        return "pretraining", {"objectives": [one.to_spec() for one in model.objectives]}
    if isinstance(model, FineTuned):
        own = {name: getattr(model, name) for name in model.options}
        options = {name: value for name, value in own.items() if value}
        return model.head_name, {"bilstm": model.bilstm is not None, **options}
    if hasattr(model, "described"):  # an extension's
        return model.described()
    raise UserError(f"{type(model).__name__} is not a model of official_bert: it cannot be saved")


def kept(model):
    """Return the part of a model that is saved: all but a teacher and the layers that need it."""
    return model.kept() if hasattr(model, "kept") else model


def check_vocabulary(config: BertConfig, entries: int, source: str) -> None:
    """Compare the vocabulary with the embedding table.

    More rows than entries give a warning: published checkpoints are sometimes padded. Fewer are an
    error, because an id beyond the table reads other memory or makes NaN, depending on the device.

    Raises:
      UserError: the embedding table has fewer rows than the vocabulary has entries.
    """
    sizes = f"{source}: {entries} entries, but the model's vocab_size is {config.vocab_size}"
    if config.vocab_size < entries:
        raise UserError(
            f"{sizes}: the embedding table has no row for the last entries; use the vocabulary "
            "that the model was trained with"
        )
    if config.vocab_size > entries:
        rows = config.vocab_size - entries
        warnings.warn(
            f"{sizes}: {rows} rows of the embedding table belong to no entry", stacklevel=3
        )


def _load_tokenizer(folder: Path, config: BertConfig, settings: dict[str, Any]):
    from official_bert.tokenization import load_tokenizer, tokenizer_class
    from official_bert.tokenization.reference import Rules

    settings = {"tokenizer": _FIRST_KIND, **settings}
    cls = tokenizer_class(settings["tokenizer"], str(folder / MODEL_FILE))
    lower, path = settings.get("do_lower_case"), folder / cls.file_name
    if lower is None and not path.exists():
        return None  # saved without a vocabulary
    if not path.is_file():
        raise UserError(f"{path}: missing; a model folder needs the vocabulary of its model")
    settings = {**settings, "do_lower_case": lower}
    rules: dict[str, Any] = {
        name: settings.get(name, usual) for name, usual in Rules._field_defaults.items()
    }
    for name, value in rules.items():
        fine = isinstance(value, bool) or (name == "strip_accents" and value is None)
        check_field(folder / MODEL_FILE, settings, name, fine, "true or false")
    tokenizer = load_tokenizer(path, **rules)
    check_vocabulary(config, len(tokenizer.vocab), str(path))
    return tokenizer


def _array(variable):
    import keras

    return keras.ops.convert_to_numpy(variable)


def _halved(array, name, folder):
    with np.errstate(over="ignore"):
        halved = array.astype("float16")
    integrity.check_finite(halved, f"{name}, in 16 bits,", folder)
    return halved


def _fill(model, shapes, read, path: Path) -> None:
    variables = named_variables(model)
    for name in [*variables, *shapes]:
        expected = tuple(variables[name].shape) if name in variables else None
        if shapes.get(name) != expected:
            raise UserError(
                f"{path}: does not fit {CONFIG_FILE} and {MODEL_FILE} beside it: {name} is "
                f"{shapes.get(name)}, expected {expected}"
            )
    for name, variable in variables.items():
        array = read(name)
        integrity.check_type(array.dtype.name, name, path)
        variable.assign(array)
