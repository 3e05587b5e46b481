"""Exports a model folder: as a SavedModel that takes text, or as ONNX or LiteRT that take ids.

    python -m experiments.export --model=runs/spam/model --output=exported/spam
    python -m experiments.export --model=runs/spam/model --output=spam_onnx --format=onnx

The first writes exported/spam/1/, which needs tensorflow and tensorflow-text and nothing of this
project. Settings that are not given are those of training. Its inputs and outputs are listed at the
end, and by

    saved_model_cli show --dir=exported/spam/1 --all

The second writes spam_onnx/model.onnx (with --format=litert model.tflite) with the tokeniser beside
it, asks it, and prints how far its answers are from the model folder's.
"""

import dataclasses
from pathlib import Path

from absl import flags, logging

from data_prep.jobs import command_flags, commands
from experiments.training.answers import export_model
from official_bert.backend import tensorflow_start
from official_bert.common.errors import UserError
from official_bert.export.exports import HEADS
from official_bert.export.settings import POOLINGS, PRECISIONS, ServingSettings
from official_bert.extension import find, names

_OF_SAVED_MODELS = ("version", "input_fields", "null_score_diff_threshold")
_HEADS = sorted({head for possible in HEADS.values() for head in possible})


def describe(saved_model: Path) -> str:
    """Return the signatures of an exported model, a line an input or output."""
    from official_bert import export as serving

    lines = []
    for name, function in serving.load(saved_model).signatures.items():
        lines.append(f"{name}:")
        for arrow, specs in (
            ("<-", function.structured_input_signature[1]),
            ("->", function.structured_outputs),
        ):
            for field, spec in sorted(specs.items()):
                shape = ", ".join("?" if size is None else str(size) for size in spec.shape)
                lines.append(f"  {arrow} {field}: {spec.dtype.name} [{shape}]")
    return "\n".join(lines)


def main(_) -> None:
    asked = command_flags.values(export_model.check)
    settings = command_flags.values(ServingSettings)
    for kind in _of_extensions():
        settings |= command_flags.values(kind)
    settings = {name: value for name, value in settings.items() if value is not None}
    if asked["format"] != "saved_model":
        for name in _OF_SAVED_MODELS:
            if flags.FLAGS[name].present:
                raise UserError(f"--{name} is for --format=saved_model; ONNX and LiteRT take ids")
    export_model.check(**asked, **settings)
    tensorflow_start.import_tensorflow()
    logging.set_verbosity(logging.WARNING)  # saving a graph writes pages of notes
    if (format := asked.pop("format")) == "saved_model":
        path = export_model.export(**asked, **settings)
        print(describe(path))
        print("in Python, import tensorflow_text before it is loaded")
        print(f"SavedModel: {path}")
    else:
        del asked["version"]
        made = export_model.export_ids(**asked, format=format, **settings)
        for name, (far, most) in made.differences.items():
            print(f"{name}: at most {far:.1e} from the model folder's, the largest {most:.2g}")
        for note in made.notes:
            print(f"note: {note}")
        print(f"{format}: {made.path}, {made.path.stat().st_size / 1e6:.1f} MB")


def _define_flags():
    command_flags.define(
        export_model.check, least={"version": 1}, format=export_model.FORMATS, head=_HEADS
    )
    # Options that are not given are as in training.
    command_flags.define(
        ServingSettings,
        ("problem", "truncation", "windows", "window_overlap", "doc_stride", "max_query_length",
         "max_answer_length", "n_best_size", "allow_no_answer", "label_piece"),
        unset=True, precision=PRECISIONS, pooling=POOLINGS,
    )  # fmt: skip
    define = command_flags.define
    for kind, skip in _of_extensions().items():
        define(kind, skip, unset=True)


def _of_extensions() -> dict:
    """Return {subclass of ServingSettings: its fields without a flag of their own}."""
    named = [name.partition("export.")[2] for name in names("options")]
    kinds = {find("options", f"export.{name}") for name in named if name}
    return {
        kind: [f.name for f in dataclasses.fields(kind) if f.name not in named] for kind in kinds
    }


if __name__ == "__main__":
    _define_flags()
    commands.run(main)
