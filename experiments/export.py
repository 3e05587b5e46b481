"""Exports a model folder: as a SavedModel that takes text, or as ONNX or LiteRT that take ids.

    python -m experiments.export --model=runs/spam/model --output=exported/spam
    python -m experiments.export --model=runs/spam/model --output=spam_onnx --format=onnx

The first writes exported/spam/1/, which needs tensorflow and tensorflow-text and nothing of this
project. What it takes and gives is listed at the end, and by

    saved_model_cli show --dir=exported/spam/1 --all

The second writes spam_onnx/model.onnx (with --format=litert model.tflite) with the tokeniser beside
it, asks it, and prints how far its answers are from the model folder's.
"""

from pathlib import Path

from absl import flags, logging

from experiments.training import export_model
from official_bert.common import commands
from official_bert.common.errors import UserError

_OF_SAVED_MODELS = ("version", "input_fields", "null_score_diff_threshold")
_SETTINGS = (
    "precision",
    "input_fields",
    "labels",
    "max_seq_length",
    "top_k",
    "beams",
    "layers",
    "pooling",
    "normalize",
    "null_score_diff_threshold",
)


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
    settings = {name: options[name].value for name in _SETTINGS if options[name].value is not None}
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
    flags.DEFINE_enum(
        "head",
        None,
        [
            "classification",
            "span",
            "multiple_choice",
            "tagging",
            "masked_words",
            "text",
            "embedding",
            "features",
        ],
        "What to serve; by default the head that the model has.",
    )
    flags.DEFINE_enum(
        "precision",
        "float32",
        ["float32", "bfloat16", "int8"],
        "Of weights and products: bfloat16 in SavedModels, int8 in the other formats.",
    )
    flags.DEFINE_list(
        "input_fields",
        None,
        "Names of the text inputs of a classifier, one or two; by default text, or text_a,text_b.",
    )
    flags.DEFINE_list(
        "labels", None, "Names of the labels, in the model's order; by default those of training."
    )
    flags.DEFINE_integer("max_seq_length", None, "Tokens of an input; by default as in training.")
    flags.DEFINE_integer("top_k", None, "Words offered for each [MASK].", lower_bound=1)
    flags.DEFINE_integer("beams", None, "Of a model that writes; 1: greedy.", lower_bound=1)
    flags.DEFINE_string(
        "layers", None, "Layers of embeddings and features, such as concat_last_four."
    )
    flags.DEFINE_enum("pooling", None, ["cls", "mean"], "Of embeddings.")
    flags.DEFINE_bool("normalize", None, "Scale embeddings to length 1.")
    flags.DEFINE_float(
        "null_score_diff_threshold", None, "SQuAD 2.0: how far the empty answer has to be ahead."
    )
    flags.DEFINE_integer("version", 1, "Name of the sub-folder.", lower_bound=1)
    flags.DEFINE_bool("overwrite", False, "Replace what is there.")


if __name__ == "__main__":
    _define_flags()
    commands.run(main)
