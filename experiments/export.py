"""Exports a model folder as a SavedModel that takes text.

    python -m experiments.export --model=runs/spam/model --output=exported/spam

writes exported/spam/1/, which needs tensorflow and tensorflow-text and nothing of this project.
What it takes and gives is listed at the end, and by

    saved_model_cli show --dir=exported/spam/1 --all
"""

from pathlib import Path

from absl import flags, logging

from experiments.training.export_model import export
from official_bert import commands
from official_bert.errors import UserError

_SETTINGS = (
    "precision",
    "input_fields",
    "labels",
    "max_seq_length",
    "top_k",
    "layers",
    "pooling",
    "normalize",
    "null_score_diff_threshold",
)


def describe(saved_model: Path) -> str:
    """The signatures of an exported model, a line an input or output."""
    from official_bert import serving

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
    for name in ("model", "output"):
        if not options[name].value:
            raise UserError(f"--{name} is missing; see --help")
    commands.import_tensorflow()
    logging.set_verbosity(logging.WARNING)  # saving a graph writes pages of notes
    settings = {name: options[name].value for name in _SETTINGS if options[name].value is not None}
    path = export(
        options.model,
        options.output,
        head=options.head,
        version=options.version,
        overwrite=options.overwrite,
        **settings,
    )
    print(describe(path))
    print(f"SavedModel: {path}")


def _define_flags():
    flags.DEFINE_string(
        "model", "", "Model folder, such as the `model` folder of a fine-tuning run."
    )
    flags.DEFINE_string("output", "", "Folder to write; the SavedModel goes in its sub-folder 1/.")
    flags.DEFINE_enum(
        "head",
        None,
        [
            "classification",
            "span",
            "multiple_choice",
            "tagging",
            "masked_words",
            "embedding",
            "features",
        ],
        "What to serve; by default the head that the model has.",
    )
    flags.DEFINE_enum("precision", "float32", ["float32", "bfloat16"], "Of weights and products.")
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
    flags.DEFINE_string(
        "layers", None, "Layers of embeddings and features, such as concat_last_four."
    )
    flags.DEFINE_enum("pooling", None, ["cls", "mean"], "Of embeddings.")
    flags.DEFINE_bool("normalize", None, "Scale embeddings to length 1.")
    flags.DEFINE_float(
        "null_score_diff_threshold", None, "SQuAD 2.0: how far the empty answer has to be ahead."
    )
    flags.DEFINE_integer("version", 1, "Name of the sub-folder.", lower_bound=1)
    flags.DEFINE_bool("overwrite", False, "Replace the version if it exists.")


if __name__ == "__main__":
    _define_flags()
    commands.run(main)
