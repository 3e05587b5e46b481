"""A client in Python for an exported model: `load(folder)(text=[...])`."""

import os
from pathlib import Path
from typing import Any

from official_bert.checkpoints import integrity
from official_bert.common.errors import UserError, check_choice, first_line
from official_bert.common.json_files import read_json

DESCRIPTION = "assets.extra/serving.json"  # inside the folder of a version


def load(folder: str | os.PathLike) -> "ExportedModel":
    """Load an exported model: its newest version, or the version's folder itself.

    Raises:
      UserError: there is no SavedModel.
    """
    return ExportedModel(newest_version(folder))


def newest_version(folder: str | os.PathLike) -> Path:
    """Return the SavedModel in `folder`: itself, or the sub-folder with the highest number.

    Raises:
      UserError: there is none.
    """
    folder = Path(folder)
    if (folder / "saved_model.pb").is_file():
        return folder
    versions = [
        path
        for path in (folder.iterdir() if folder.is_dir() else ())
        if path.name.isdecimal() and (path / "saved_model.pb").is_file()
    ]
    if not folder.exists():
        raise UserError(f"{folder}: no SavedModel, for there is no such folder")
    if not versions:
        raise UserError(f"{folder}: no SavedModel; python -m experiments.export makes one")
    return max(versions, key=lambda path: int(path.name))


class ExportedModel:
    """An exported model, called with lists of texts.

        model = load("spam")
        model(text=["See you at six", "WINNER!! call now"])
        # {"labels": ["ham", "spam"], "probabilities": [[...], [...]], "logits": ...}

    Attributes:
      path: the SavedModel's folder.
      description: contents of `serving.json`: head, labels, inputs, settings.
      signatures: {name: concrete function}.
      signature_defs: the same as plain data, as TensorFlow Serving shows them.
    """

    def __init__(self, path: Path):
        import tensorflow as tf
        import tensorflow_text  # noqa: F401  (registers the tokeniser's operations)

        self.path = path
        self.description: dict[str, Any] = {}
        if os.path.lexists(path / DESCRIPTION):  # this project exported it
            self.description = read_json(path / DESCRIPTION)
            integrity.check_folder(path, DESCRIPTION, self.description)
            self.description.pop(integrity.CHECKSUMS, None)
        try:
            self._loaded = tf.saved_model.load(str(path))  # keeps the signatures alive
            self.signature_defs = _signature_defs(path)
        except Exception as error:  # TensorFlow raises every kind of exception for damage
            reason = first_line(error)
            if set("[]*?") & set(str(path)):
                reason = "TensorFlow takes its path for a pattern; name it without [ ] * ?"
            raise UserError(f"{path}: cannot be read as a SavedModel ({reason})") from error
        self.signatures = dict(self._loaded.signatures)

    def __call__(self, signature: str = "serving_default", **inputs) -> dict[str, Any]:
        """Run a signature on lists or arrays.

        Returns:
          {output name: numpy array, or (nested) list of str for texts}.

        Raises:
          UserError: there is no such signature, or its inputs have other names, types or shapes.
        """
        import tensorflow as tf

        check_choice("signature", signature, self.signatures)
        function = self.signatures[signature]
        specs = function.structured_input_signature[1]
        if inputs.keys() != specs.keys():
            given, wanted = ", ".join(inputs) or "none", ", ".join(specs)
            raise UserError(f"{signature}: the inputs are {given}; they must be {wanted}")
        tensors = {}
        for name, value in inputs.items():
            try:
                tensors[name] = tf.constant(value, specs[name].dtype)
            except (TypeError, ValueError) as error:
                raise UserError(f"{name}: {first_line(error)[:300]}") from None
            if not specs[name].shape.is_compatible_with(shape := tensors[name].shape):
                raise UserError(f"{name} has the shape {shape}; it must be {specs[name].shape}")
        return {name: _readable(value.numpy()) for name, value in function(**tensors).items()}


def _signature_defs(path) -> dict[str, Any]:
    """Return the signatures in a SavedModel as plain data, as TensorFlow Serving shows them."""
    from google.protobuf import json_format
    from tensorflow.core.protobuf import saved_model_pb2

    saved = saved_model_pb2.SavedModel.FromString((path / "saved_model.pb").read_bytes())
    return {
        name: json_format.MessageToDict(definition, preserving_proto_field_name=True)
        for name, definition in saved.meta_graphs[0].signature_def.items()
        if not name.startswith("__")
    }


def _readable(array):
    if array.dtype != object:
        return array
    return _decode(array.tolist())


def _decode(value):
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    return [_decode(part) for part in value]
