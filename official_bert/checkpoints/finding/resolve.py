"""Opens the model that a `model=` field names: a folder of any known format, or a name."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from official_bert.checkpoints import embedded, model_folder, model_settings
from official_bert.checkpoints.finding import hub
from official_bert.checkpoints.model_folder import LoadedModel
from official_bert.common.errors import UserError, meant, os_errors
from official_bert.extension import load as load_at

# Modules of foreign formats, each of which is imported when a function of it is called.
_GOOGLE = "official_bert.checkpoints.google"
_HUGGING_FACE = "official_bert.checkpoints.hugging_face.huggingface"
_KERAS_HUB = "official_bert.checkpoints.keras_hub"


def load(
    model: str | os.PathLike, revision: str | None = None, pickle: bool = False, **encoder_options
) -> LoadedModel:
    """Return a model with all that belongs to it; see `official_bert.load`."""
    found = find(model, revision, pickle)
    format = format_of(found)
    if format == "model_folder":
        return model_folder.load(found, **encoder_options)
    return IMPORTERS[format](found, **encoder_options)


def peek(model: str | os.PathLike):
    """Return the configuration and the tokeniser of a model, without its weights.

    This needs neither Keras nor TensorFlow.

    A model of the hub is downloaded.

    Returns:
      (BertConfig, BertTokenizer or None); None for KerasHub's presets, which KerasHub has to be
      asked for.

    Raises:
      UserError: no model is there, or its small files are damaged.
    """
    path = find(model)
    format = format_of(path)
    return PEEKS[format](path) if format in PEEKS else None


def find(model: str | os.PathLike, revision: str | None = None, pickle: bool = False) -> Path | str:
    """Return the path of the model that `model` names, downloaded if it is on the hub.

    The name of a preset is returned as it is.

    Args: as for `load`.

    Raises:
      UserError: there is no such path and no such name.
    """
    name = str(model)
    with os_errors(name):
        path = embedded.find(model)
        lies_here = path.exists() or _is_google_checkpoint(path)
    presets = [] if lies_here else _preset_names()
    if lies_here or name in presets or name.startswith(("kaggle://", "gs://")):
        if revision:
            raise UserError(f"{model}: lies here or is KerasHub's, and a revision is for the hub")
        return path if lies_here else name
    known = [*embedded.names(), *presets]
    if not (parts := hub.parts_of(name)):
        left = model_settings.of_run(path)
        raise UserError(f"{name}: no such folder or checkpoint{left or meant(name, known)}")
    name, written = parts
    if revision and written not in (None, revision):
        raise UserError(f"{model}: names another revision than revision={revision}")
    try:
        return hub.download(name, revision or written, pickle)
    except hub.Absent as absent:
        raise UserError(
            f"{model}: no such folder{meant(name, known)}, no model of this package "
            f"({', '.join(embedded.names())}), no BERT preset of KerasHub's, {absent}"
        ) from None


def format_of(model: str | os.PathLike) -> str:
    """Return "model_folder", "google", "huggingface" or "keras_hub".

    Raises:
      UserError: it is none of them.
    """
    path = find(model)
    if isinstance(path, str):
        return "keras_hub"
    if model_folder.is_model_folder(path):
        return "model_folder"
    if _is_google_checkpoint(path):
        return "google"
    if _is_preset_folder(path):
        return "keras_hub"
    if _is_huggingface_folder(path):
        return "huggingface"
    raise UserError(
        f"{path}: no model in this folder{model_settings.of_run(path)}; expected "
        f"{model_settings.MODEL_FILE} (a model folder), bert_config.json with *.ckpt.index "
        "(Google), config.json with model.safetensors (Hugging Face), or a KerasHub preset"
    )


def _later(module: str, name: str) -> Callable:
    return lambda *arguments, **options: load_at(f"{module}:{name}")(*arguments, **options)


_is_google_checkpoint = _later(_GOOGLE, "is_google_checkpoint")
_is_huggingface_folder = _later(_HUGGING_FACE, "is_huggingface_folder")
_is_preset_folder = _later(_KERAS_HUB, "is_preset_folder")
_preset_names = _later(_KERAS_HUB, "preset_names")


class Importer(Protocol):
    """Reads a foreign checkpoint."""

    def __call__(
        self,
        path: str | os.PathLike,
        /,
        head: str | None = None,
        gelu_form: str | None = None,
        vocab: str | os.PathLike | None = None,
        do_lower_case: bool | None = None,
        **encoder_options: Any,
    ) -> LoadedModel:
        """
        Args:
          path: a folder, a prefix or a name, as the format has it.
          head: "none" to take the encoder alone, "pretraining" for both pre-training heads even
            where the checkpoint lacks them; None for the head that it has.
          gelu_form: "erf" or "tanh"; None as the checkpoint says or its format implies.
          vocab, do_lower_case: another vocabulary file, and whether its texts are lower-cased.
          **encoder_options: passed to `BertEncoder`.

        Raises:
          UserError: there is no such checkpoint, it is damaged or none of these models, or a tensor
            is missing or mis-shaped.
        """


IMPORTERS: dict[str, Importer] = {
    "google": _later(_GOOGLE, "import_google"),
    "huggingface": _later(_HUGGING_FACE, "import_huggingface"),
    "keras_hub": _later(_KERAS_HUB, "import_keras_hub"),
}
PEEKS: dict[str, Callable[..., tuple]] = {
    "model_folder": model_folder.peek,
    "google": _later(_GOOGLE, "peek"),
    "huggingface": _later(_HUGGING_FACE, "peek"),
}


class Exporter(Protocol):
    """Writes a folder in another library's format."""

    def __call__(
        self, folder: str | os.PathLike, /, model, tokenizer, settings=None, overwrite: bool = False
    ) -> list[str]:
        """
        Args:
          model: an encoder, a pre-trainer or a model of `official_bert.heads`.
          tokenizer: its tokeniser; None, or one that such a model has not, to write no vocabulary.
          settings: fields of `model.json`, as far as the format has a place for them.
          overwrite: rename a folder that exists to NAME.~1~ first.

        Returns: remarks on what the format cannot hold.

        Raises:
          UserError: the format has no place for this head or encoder, or the folder exists.
        """


EXPORTERS: dict[str, Exporter] = {
    "google": _later(_GOOGLE, "export_google"),
    "huggingface": _later(_HUGGING_FACE, "export_huggingface"),
    "keras_hub": _later(_KERAS_HUB, "export_keras_hub"),
}
