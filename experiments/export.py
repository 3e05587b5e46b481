"""Exports a model folder: as a SavedModel that takes text, or as ONNX or LiteRT that take ids.

    python -m experiments.export --model=runs/spam/model --output=exported/spam
    python -m experiments.export --model=runs/spam/model --output=spam_onnx --format=onnx

The first writes exported/spam/1/, which needs tensorflow and tensorflow-text and nothing of this
project. Settings that are not given are those of training. What it takes and gives is listed at the
end, and by

    saved_model_cli show --dir=exported/spam/1 --all

The second writes spam_onnx/model.onnx (with --format=litert model.tflite) with the tokeniser beside
it, asks it, and prints how far its answers are from the model folder's.
"""

from pathlib import Path

from absl import flags, logging

from data_prep.jobs import command_flags
from experiments.training import export_model
from official_bert.common import commands
from official_bert.common.errors import UserError
from official_bert.export.settings import POOLINGS, PRECISIONS, ServingSettings

_OF_SAVED_MODELS = ("version", "input_fields", "null_score_diff_threshold")
_HEADS = ["classification", "span", "multiple_choice", "tagging", "masked_words", "text",
          "embedding", "features"]  # fmt: skip


def describe(saved_model: Path) -> str:
    """The signatures of an exported model, a line an input or output."""
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


def main(argv) -> None:
    del argv
    options = flags.FLAGS
    commands.required("model", "output")
    if options.format != "saved_model":
        for name in _OF_SAVED_MODELS:
            if options[name].present:
                raise UserError(f"--{name} is for --format=saved_model; ONNX and LiteRT take ids")
    settings = command_flags.values(ServingSettings)
    settings = {name: value for name, value in settings.items() if value is not None}
    settings |= {"head": options.head, "overwrite": options.overwrite}
    export_model.check(
        options.model, options.output, options.format, version=options.version, **settings
    )
    commands.import_tensorflow()
    logging.set_verbosity(logging.WARNING)  # saving a graph writes pages of notes
    if options.format == "saved_model":
        path = export_model.export(
            options.model, options.output, version=options.version, **settings
        )
        print(describe(path))
        print("in Python, import tensorflow_text before it is loaded")
        print(f"SavedModel: {path}")
    else:
        made = export_model.export_ids(
            options.model, options.output, format=options.format, **settings
        )
        for name, (far, most) in made.differences.items():
            print(f"{name}: at most {far:.1e} from the model folder's, the largest {most:.2g}")
        for note in made.notes:
            print(f"note: {note}")
        print(f"{options.format}: {made.path}, {made.path.stat().st_size / 1e6:.1f} MB")


def _define_flags():
    flags.DEFINE_string(
        "model", "", "Model folder, such as the `model` folder of a fine-tuning run."
    )
    flags.DEFINE_string("output", "", "Folder to write; a SavedModel goes in its sub-folder 1/.")
    flags.DEFINE_enum(
        "format", "saved_model", export_model.FORMATS, "saved_model takes text, the others ids."
    )
    flags.DEFINE_enum("head", None, _HEADS, "What to serve; by default the head of the model.")
    # Where they are not given they are as in training.
    command_flags.define(
        ServingSettings,
        ("problem", "truncation", "windows", "window_overlap", "doc_stride", "max_query_length",
         "max_answer_length", "n_best_size", "allow_no_answer", "label_piece", "length_penalty"),
        unset=True, precision=PRECISIONS, pooling=POOLINGS,
    )  # fmt: skip
    flags.DEFINE_integer("version", 1, "Name of the sub-folder.", lower_bound=1)
    flags.DEFINE_bool("overwrite", False, "Replace what is there.")


if __name__ == "__main__":
    _define_flags()
    commands.run(main)
