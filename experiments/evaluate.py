"""Measures a model: a fine-tuned one on a task's data, a pre-trained one on records.

    python -m experiments.evaluate --model=runs/spam/model --data=other.tsv --output=scores/
    python -m experiments.evaluate --model=MODEL --records=heldout/

--data is a file, or a folder of the task's files, with their answers. The command prints the task's
scores, a table of the classes and the most confident mistakes. Where a file is laid out otherwise
than in training, --task_options.NAME=VALUE says how it is read. --output is a folder for
scores.json, analysis.json, report.md and the predictions in the task's official format.

With --records it measures masked-LM loss and perplexity, and next-sentence accuracy. MODEL is then
a model with its pre-training heads: a model folder, an imported checkpoint's folder or a preset.
The records come from data_prep.create_pretraining_data with the model's vocabulary. One JSON object
is printed; --output names a file for it.
"""

import json
import math

from absl import flags

from data_prep.jobs import command_flags, commands
from data_prep.jobs.outputs import check_outputs
from data_prep.records import open_records
from data_prep.tasks.batches import sample
from experiments.training.answers.predictor import Predictor, task_on
from experiments.training.finetuning import finetune_report
from experiments.training.settings.config_flags import define_task_options, task_options_from_flags
from official_bert.backend import tensorflow_start
from official_bert.common.errors import UserError
from official_bert.common.files import atomic_folder, write_json, write_text


def run(
    model: str,
    records: str,
    batch_size: int = 32,
    max_examples: int = 0,
    precision: str = "float32",
):
    """Measure a pre-trained model on held-out records.

    Args:
      model: a folder, or a name.
      records: folder or glob of pre-training records.
      batch_size: rows of a batch; results do not depend on it.
      max_examples: how many records to use, rounded up to whole batches; 0: all.
      precision: of the computation with records.

    Returns: see `heldout.measure`, plus "examples": how many the records hold.
    Raises:
      UserError: the model has no pre-training heads, or the records are of another vocabulary.
    """
    from experiments.training.start.preflight import check_fit
    from official_bert.checkpoints.finding import resolve

    commands.say(f"reads {records} for {model}")
    opened = open_records(records)
    check_fit(opened, records, *(resolve.peek(model) or (None, None)))
    commands.say(f"{opened.examples:,} records; loads {model}")
    tensorflow_start.import_tensorflow()
    from data_prep.jobs.progress import progress_bar
    from experiments.training.pretraining import heldout
    from experiments.training.step import evaluation
    from official_bert.backend.compiled import compiled

    loaded = resolve.load(model, dtype=precision)
    if loaded.head != "pretraining":
        raise UserError(
            f"{model} has no masked-LM head (its head is {loaded.head}); "
            "evaluate needs a pre-trained model before fine-tuning"
        )
    check_fit(opened, records, loaded.config, loaded.tokenizer)

    terms = compiled(loaded.model, lambda batch: evaluation.terms(loaded.model, batch))
    total = min(max_examples or opened.examples, opened.examples)
    with progress_bar(True, total=math.ceil(total / batch_size), unit=" batches") as bar:

        def measured(batches):
            for batch in batches:
                yield terms(batch)
                bar.update()

        metrics = heldout.measure(
            lambda batches: evaluation.means(measured(batches)),
            loaded.model.objectives,
            opened,
            batch_size,
            max_examples,
        )
    return {"examples": opened.examples, **metrics}


def on_task(
    model: str,
    data: str,
    split: str = "dev",
    batch_size: int = 32,
    max_examples: int = 0,
    output: str = "",
    task_options=None,
    overwrite: bool = False,
):
    """Score a fine-tuned model on other data.

    Args:
      model: a model folder that fine-tuning wrote.
      data: a folder of the task's files, or one file, with answers.
      split: which of the task's splits: dev, test or another.
      batch_size: rows of a batch; results do not depend on it.
      max_examples: how many examples to use; 0: all.
      output: a folder for the files (with --records a file for the JSON); empty: write none.
      overwrite: rename what stands there to NAME.~1~ first.
      task_options: {name: value}, how the files are read where not as in training.

    Returns: (dict of metric -> float, the report as text).
    Raises:
      UserError: the model is not fine-tuned, or the data have no answers or other labels.
    """
    check_outputs([model, data], outputs=[output], overwrite=overwrite)
    commands.say(f"reads {data} for {model}")
    # Before TensorFlow starts, so that what is wrong with the file is said at once.
    examples = sample(task_on(model, data, split, task_options).examples(split), max_examples)
    predictor = Predictor(model, batch_size, task_options)
    commands.say(f"{len(examples):,} examples; loads {model}")
    predictions, truncated = predictor.predict(examples, show=True)
    task = predictor.task
    scores = {name: float(value) for name, value in task.score(examples, predictions).items()}
    analysis = task.analysis(examples, predictions)
    lines = [f"# {task.name}, {len(examples):,} examples of {data}"]
    lines.append("\n".join(f"- {name}: {value:.4f}" for name, value in scores.items()))
    if task.scoring:
        lines.append(f"{task.scoring}.")
    if truncated:
        lines.append(f"{truncated} texts were longer than the model's window and cut.")
    report = "\n\n".join(lines + finetune_report.of_analysis(analysis)) + "\n"
    if output:
        with atomic_folder(output, overwrite) as folder:
            write_json(folder / "scores.json", scores)
            write_json(folder / "analysis.json", analysis)
            write_text(folder / "report.md", report)
            task.write(folder, predictions)
    return scores, report


def main(_):
    values = flags.FLAGS
    if bool(values.records) == bool(values.data):
        raise UserError("give --data (a fine-tuned model's task) or --records (pre-training)")
    for name, place in {"precision": "records", "split": "data"}.items():
        if values[name].present and not values[place].value:
            raise UserError(f"--{name} is for --{place}; leave it out")
    if values.data:
        options = command_flags.values(on_task)
        print(on_task(**options, task_options=task_options_from_flags())[1])
        return
    check_outputs([values.model, values.records], files=[values.output], overwrite=values.overwrite)
    metrics = run(**command_flags.values(run))
    print(json.dumps(metrics, indent=2))
    if values.output:
        write_text(values.output, json.dumps(metrics, indent=2) + "\n", values.overwrite)


def _define_flags():
    define_task_options()
    flags.DEFINE_string("data", None, "folder of the task's files, or one file, with answers")
    flags.DEFINE_string("records", None, "folder or glob of pre-training records")
    command_flags.define(
        run, ("records", "batch_size", "max_examples"), precision=["float32", "mixed_bfloat16"]
    )
    least = {"batch_size": 1, "max_examples": 0}
    command_flags.define(on_task, ("model", "data", "task_options"), least=least)


if __name__ == "__main__":
    _define_flags()
    commands.run(main)
