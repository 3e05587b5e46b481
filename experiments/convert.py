"""Converts checkpoints: from other formats into a model folder, and the other way.

    python -m experiments.convert --source=google --input=uncased_L-12_H-768_A-12 --output=model
    python -m experiments.convert --target=huggingface --input=model --output=for_transformers

A model folder in half precision is half as large, and loads as any other:

    python -m experiments.convert --input=model --output=smaller --half

With both --source and --target it goes from one foreign format to the other. Every import prints
what was loaded, what was left out and what keeps its initial values.
"""

from data_prep.jobs import command_flags, commands
from data_prep.jobs.outputs import check_outputs
from official_bert.backend import tensorflow_start
from official_bert.common.errors import UserError

_FORMATS = ["google", "huggingface", "keras_hub"]


def convert(
    input: str,
    output: str,
    source: str | None = None,
    target: str | None = None,
    head: str | None = None,
    gelu_form: str | None = None,
    pickle: bool = False,
    vocab: str | None = None,
    do_lower_case: bool | None = None,
    half: bool = False,
    overwrite: bool = False,
) -> None:
    """Convert a checkpoint and print a report of it.

    Args:
      input: a folder, a checkpoint's prefix, or a name: of the package, the hub or KerasHub.
      output: the folder to write.
      source: format of the input; by default it is recognised by its files.
      target: format of the output; by default a model folder.
      head: none imports the encoder alone, pretraining both heads too; by default what is there.
      gelu_form: GELU of an import; by default erf for Google and Hugging Face, tanh for KerasHub.
      pickle: take a model of the hub that has no weights but a pickle.
      vocab: vocabulary file of an import, where none lies beside it.
      do_lower_case: of an import; by default as its tokenizer files or vocabulary say.
      half: round the weights of a model folder to 16 bits.
      overwrite: rename what stands at the output to NAME.~1~ first.

    Raises:
      UserError: the input cannot be read, or the options do not go together.
    """
    check_outputs([input, vocab or ""], outputs=[output], overwrite=overwrite)
    from official_bert.checkpoints import model_folder
    from official_bert.checkpoints.finding.resolve import EXPORTERS, IMPORTERS, find, format_of
    from official_bert.checkpoints.hugging_face import model_card

    if target and half:
        raise UserError("--half is for model folders; leave it or --target out")
    path = find(input, pickle=pickle)
    format = source or format_of(path)
    given = {"head": head, "gelu_form": gelu_form, "vocab": vocab, "do_lower_case": do_lower_case}
    given = {name: value for name, value in given.items() if value not in (None, "")}
    tensorflow_start.import_tensorflow()
    if format == "model_folder":
        if not (target or half):
            raise UserError(f"{input} is a model folder already; name a --target or --half")
        if given:
            raise UserError(f"--{next(iter(given))} is for imports; {input} is a model folder")
        loaded = model_folder.load(path)
    else:
        loaded = IMPORTERS[format](path, **given)
        print(loaded.report)
    model, tokenizer, settings = loaded.model, loaded.tokenizer, loaded.settings
    if target:
        settings = {**settings, **model_card.settings_of(path)}
        for note in EXPORTERS[target](output, model, tokenizer, settings, overwrite=overwrite):
            print(f"note: {note}")
    else:
        model_folder.save(output, model, tokenizer, settings, overwrite=overwrite, half=half)
    if tokenizer is None:
        print("note: no vocabulary found, none written; --vocab names one")
    print(f"{output}: {target or 'model folder'}, head {loaded.head}")


def main(_) -> None:
    convert(**command_flags.values(convert))


def _define_flags():
    command_flags.define(
        convert, source=_FORMATS, target=_FORMATS, head=["none", "pretraining"],
        gelu_form=["erf", "tanh"],
    )  # fmt: skip


if __name__ == "__main__":
    _define_flags()
    commands.run(main)
