"""SavedModels of model folders: made, and asked about a few texts."""

from pathlib import Path

from experiments.training.predictor import described_task
from official_bert.errors import UserError


def export(model_folder, output, **options) -> Path:
    """Exports a model folder; a classifier takes `text`, or `text_a` and `text_b` for pairs.

    Args:
      model_folder: the folder.
      output: where to; the SavedModel is in its sub-folder "1".
      **options: as for `official_bert.serving.export`.

    Returns:
      The path of the SavedModel.
    """
    import official_bert
    from official_bert import serving

    loaded = official_bert.load(model_folder)
    if loaded.tokenizer is None:
        raise UserError(f"{model_folder}: has no vocabulary; a served model needs its vocabulary")
    if loaded.head == "classification" and not options.get("input_fields"):
        pairs = _reads_pairs(loaded.settings)
        options["input_fields"] = ("text_a", "text_b") if pairs else ("text",)
    return serving.export(loaded, output, **options)


def answer(saved_model, texts, **more_inputs) -> list[dict]:
    """What an exported model says to a few texts: one dict an output row.

    `texts` go to the model's first input; `more_inputs` are lists for the others, by name.
    """
    from official_bert import serving

    model = serving.load(saved_model)
    first = model.description["inputs"][0]
    outputs = model(**{first: texts}, **more_inputs)
    return [{name: values[row] for name, values in outputs.items()} for row in range(len(texts))]


def _reads_pairs(settings) -> bool:
    """Whether the task that the model was trained on has two texts an example."""
    from data_prep.tasks import get_task

    name, options = described_task(settings)
    return bool(name) and len(get_task(name, **options).input_fields) == 2
