"""Exports of model folders: checks, exports, and answers of an export to a few texts."""

from pathlib import Path

from data_prep.jobs.outputs import check_outputs
from experiments.training.answers.predictor import described_task

FORMATS = ("saved_model", "onnx", "litert")


def check(
    model: str,
    output: str,
    format: str = "saved_model",
    head: str | None = None,
    version: int = 1,
    overwrite: bool = False,
    **settings,
) -> None:
    """Check an export as far as possible before Keras is imported.

    Args:
      model: model folder, such as the `model` folder of a fine-tuning run.
      output: folder to write; a SavedModel goes in its sub-folder 1/.
      format: saved_model takes text, the others ids.
      head: what to serve; by default the head of the model.
      version: name of the sub-folder.
      overwrite: rename what stands there to NAME.~1~ first.
      **settings: as for `export` and `export_ids`.

    Raises:
      UserError: the model cannot be exported so, a package is missing, or the output exists.
    """
    from official_bert.checkpoints.finding import resolve
    from official_bert.checkpoints.model_folder import is_model_folder
    from official_bert.export import exports, saved_model
    from official_bert.export.formats import id_export

    target = Path(output, str(version)) if format == "saved_model" else output
    check_outputs([model], outputs=[target], overwrite=overwrite)
    exports.check_precision(format, settings.get("precision", "float32"))
    if format != "saved_model":
        id_export.check_packages(format)
    if not is_model_folder(model):
        if small := resolve.peek(model):
            exports.check_vocabulary(small[1], model)
        return  # another kind of model: its import will say what is wrong inside
    loaded, source = exports.peek(model)
    if format == "saved_model":
        saved_model.resolve_export(loaded, source, output, head, version, **settings)
    else:
        id_export.resolve_export(loaded, source, format, head, **settings)


def export(model, output, **options) -> Path:
    """Export a model folder as a SavedModel.

    A classifier takes `text`, or `text_a` and `text_b` for pairs.

    Args:
      model: the folder.
      output: where to; the SavedModel is in its sub-folder "1".
      **options: as for `official_bert.export.export`.

    Returns:
      The path of the SavedModel.
    """
    from official_bert import export as serving

    loaded = _load(model)
    if loaded.head == "classification" and not options.get("input_fields"):
        pairs = _reads_pairs(loaded.settings)
        options["input_fields"] = ("text_a", "text_b") if pairs else ("text",)
    return serving.export(loaded, output, **options)


def export_ids(model, output, **options):
    """Export a model folder to take token ids; see `official_bert.export.export_ids`."""
    from official_bert import export as serving

    return serving.export_ids(_load(model), output, **options)


def answer(saved_model, texts, **more_inputs) -> list[dict]:
    """Ask an exported model about a few texts; return one dict an output row.

    `texts` go to the model's first input; `more_inputs` are lists for the others, by name.
    """
    from official_bert import export as serving

    model = serving.load(saved_model)
    first = model.description["inputs"][0]
    outputs = model(**{first: texts}, **more_inputs)
    return [{name: values[row] for name, values in outputs.items()} for row in range(len(texts))]


def _load(model):
    import official_bert
    from official_bert.export import exports

    loaded = official_bert.load(model)
    exports.check_vocabulary(loaded.tokenizer, model)
    return loaded


def _reads_pairs(settings) -> bool:
    """Return whether the task that the model was trained on has two texts an example."""
    from data_prep.tasks import get_task

    name, options = described_task(settings)
    return bool(name) and len(get_task(name, **options).input_fields) == 2
