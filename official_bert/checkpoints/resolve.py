"""Opens what a `model=` field names: a folder of ours, Google's, Hugging Face's or KerasHub's, or a
model by its name."""

import os
from collections.abc import Callable
from pathlib import Path

from official_bert.checkpoints import embedded, google, huggingface, keras_hub, model_folder
from official_bert.checkpoints.model_folder import LoadedModel
from official_bert.common.errors import UserError


def load(path_or_preset: str | os.PathLike, **encoder_options) -> LoadedModel:
    """Loads a model from a folder of any known kind, or by its name.

    The GELU form is what the format implies (see the importers); to choose another, import with
    `experiments.convert` first.

    Args:
      path_or_preset: a model folder, the folder (or prefix) of a Google checkpoint, a Hugging Face
        folder, a KerasHub preset's folder, the name of a model of this package ("tiny-wikipedia"),
        or a preset's name such as "bert_tiny_en_uncased".
      **encoder_options: passed to `BertEncoder`, for example `remat=True`.

    Raises:
      UserError: nothing that can be read is there.
    """
    kind = kind_of(path_or_preset)
    if kind == "model_folder":
        return model_folder.load(path_or_preset, **encoder_options)
    return IMPORTERS[kind](path_or_preset, **encoder_options)


def peek(path_or_preset: str | os.PathLike):
    """What a model is without its weights; needs neither Keras nor TensorFlow.

    Returns:
      (BertConfig, BertTokenizer or None); None for KerasHub's presets, which KerasHub has to be
      asked for.

    Raises:
      UserError: no model is there, or its small files are damaged.
    """
    path = embedded.find(path_or_preset)
    is_name = len(path.parts) == 1 and not path.exists() and not google.is_google_checkpoint(path)
    if is_name or "://" in str(path_or_preset):
        return None
    kind = kind_of(path_or_preset)
    return PEEKS[kind](path) if kind in PEEKS else None


def kind_of(path_or_preset: str | os.PathLike) -> str:
    """ "model_folder", "google", "huggingface" or "keras_hub".

    Raises:
      UserError: it is none of them.
    """
    path = Path(path_or_preset)
    if model_folder.is_model_folder(path):
        return "model_folder"
    if google.is_google_checkpoint(path):
        return "google"
    if keras_hub.is_preset_folder(path):
        return "keras_hub"
    if huggingface.is_huggingface_folder(path):
        return "huggingface"
    if path.is_dir():
        raise UserError(
            f"{path}: no model in this folder; expected {model_folder.MODEL_FILE} (a model "
            "folder), bert_config.json with *.ckpt.index (Google), config.json with "
            "model.safetensors (Hugging Face), or a KerasHub preset"
        )
    name = str(path_or_preset)
    # KerasHub takes seconds to import: not for a path with a typing error.
    if os.sep in name and "://" not in name:
        raise UserError(f"{name}: no such folder or checkpoint")
    if keras_hub.is_preset_name(name):
        return "keras_hub"
    presets = ", ".join(keras_hub.preset_names())
    raise UserError(
        f"{name}: no such folder, no embedded model ({', '.join(embedded.names())}), and no BERT "
        f"preset of KerasHub's; those there are: {presets}"
    )


IMPORTERS: dict[str, Callable[..., LoadedModel]] = {
    "google": google.import_google,
    "huggingface": huggingface.import_huggingface,
    "keras_hub": keras_hub.import_keras_hub,
}
PEEKS: dict[str, Callable[..., tuple]] = {
    "model_folder": model_folder.peek,
    "google": google.peek,
    "huggingface": huggingface.peek,
}
EXPORTERS = {
    "google": google.export_google,
    "huggingface": huggingface.export_huggingface,
    "keras_hub": keras_hub.export_keras_hub,
}
