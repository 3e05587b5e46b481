"""Converts checkpoints: from other formats into a model folder, and the other way.

    python -m experiments.convert --source=google --input=uncased_L-12_H-768_A-12 --output=model
    python -m experiments.convert --target=huggingface --input=model --output=for_transformers

A model folder in half precision is half as large, and loads as any other:

    python -m experiments.convert --input=model --output=smaller --half

With both --source and --target it goes from one foreign format to the other. Every import prints
what was loaded, what was left out and what keeps its initial values.
"""

from absl import flags

from official_bert.common import commands
from official_bert.common.claims import claim
from official_bert.common.errors import UserError

_FORMATS = ["google", "huggingface", "keras_hub"]

flags.DEFINE_enum(
    "source", None, _FORMATS, "Format of --input; by default it is recognised by its files."
)
flags.DEFINE_enum("target", None, _FORMATS, "Format of --output; by default a model folder.")
flags.DEFINE_string(
    "input", "", "A folder, a checkpoint's prefix, or a name: of the package, the hub or KerasHub."
)
flags.DEFINE_string("output", "", "The folder to write.")
flags.DEFINE_enum(
    "head",
    None,
    ["none", "pretraining"],
    "Import the encoder alone, or with both pre-training heads; by default what is there.",
)
flags.DEFINE_enum(
    "gelu_form",
    None,
    ["erf", "tanh"],
    "GELU of an import; by default erf for Google and Hugging Face, tanh for KerasHub.",
)
flags.DEFINE_bool("pickle", False, "Take a model of the hub that has no weights but a pickle.")
flags.DEFINE_string("vocab", "", "Vocabulary file of an import, where none lies beside it.")
flags.DEFINE_bool(
    "do_lower_case", None, "Of an import; by default as its tokenizer files or vocabulary say."
)
flags.DEFINE_bool("half", False, "Round the weights of a model folder to 16 bits.")
flags.DEFINE_bool("overwrite", False, "Replace --output if it exists.")


def main(argv) -> None:
    del argv
    options = flags.FLAGS
    commands.required("input", "output")
    claim([options.input, options.vocab], folders=[options.output], overwrite=options.overwrite)
    from official_bert.checkpoints import model_card, model_folder
    from official_bert.checkpoints.resolve import EXPORTERS, IMPORTERS, find, kind_of

    if options.target and options.half:
        raise UserError("--half is for model folders; leave it or --target out")
    path = find(options.input, pickle=options.pickle)
    kind = options.source or kind_of(path)
    commands.import_tensorflow()
    if kind == "model_folder":
        if not (options.target or options.half):
            raise UserError(f"{options.input} is a model folder already; name a --target or --half")
        for name in ("head", "gelu_form", "vocab", "do_lower_case"):
            if options[name].value not in (None, ""):
                raise UserError(f"--{name} is for imports; {options.input} is a model folder")
        loaded = model_folder.load(path)
    else:
        given = {
            "head": options.head,
            "gelu_form": options.gelu_form,
            "vocab": options.vocab or None,
            "do_lower_case": options.do_lower_case,
        }
        given = {name: value for name, value in given.items() if value is not None}
        loaded = IMPORTERS[kind](path, **given)
        print(loaded.report)
    model, tokenizer, settings = loaded.model, loaded.tokenizer, loaded.settings
    if options.target:
        write, overwrite = EXPORTERS[options.target], options.overwrite
        settings = {**settings, **model_card.settings_of(path)}
        notes = write(options.output, model, tokenizer, settings, overwrite=overwrite)
        for note in notes:
            print(f"note: {note}")
    else:
        how = {"overwrite": options.overwrite, "half": options.half}
        model_folder.save(options.output, model, tokenizer, settings, **how)
    if tokenizer is None:
        print("note: no vocabulary found, none written; --vocab names one")
    print(f"{options.output}: {options.target or 'model folder'}, head {loaded.head}")


if __name__ == "__main__":
    commands.run(main)
