"""Fine-tunes a model on a task (section 4 of the paper).

    python -m experiments.finetune --config=glue --config.task=mrpc --config.model=MODEL \\
        --config.data_dir=glue_data/MRPC --workdir=runs/mrpc

leaves in the work folder: results.json, predictions in the task's official format, report.md and
analysis.json (confusion matrix, scores of each class, the most confident mistakes), metrics.jsonl,
TensorBoard events, and model/, a model folder. The same command continues an interrupted run.

A search over hyper-parameters is one flag. Every combination is a run of its own, so an interrupted
search continues. The command prints the table of all runs and keeps it in search.json:

    --search='learning_rate=5e-5,4e-5,3e-5,2e-5;seed=1,2,3'
"""

from absl import flags

from data_prep.jobs import commands
from experiments.training import search
from experiments.training.finetuning import finetune_report
from experiments.training.runs import finetune as run
from experiments.training.settings.config import FinetuneConfig
from experiments.training.settings.config_flags import config_from_flags, define_flags


def main(_):
    config = config_from_flags(FinetuneConfig)
    commands.required("workdir")
    place = {"workdir": flags.FLAGS.workdir, "overwrite": flags.FLAGS.overwrite}
    if flags.FLAGS.search:
        grid = search.parse(flags.FLAGS.search, config)
        print(search.text(search.run(config, grid=grid, **place)))
    else:
        print(summary(run(config, **place)))


def summary(results):
    """Return the results of a run as a few lines of text."""
    lines = [
        f"{results.task}: {results.train_examples} training examples, "
        f"{results.steps} steps, {results.seconds:.0f} s"
    ]
    for name, score, baseline in finetune_report.scores(results):
        beside = f"   (trivial baseline {baseline})" if baseline else ""
        lines.append(f"  {name if ':' in name else f'dev {name}':<28} {score}{beside}")
    if results.scoring:
        lines.append(f"  {results.scoring}")
    lines += [f"  {note}" for note in finetune_report.notes(results)]
    for what, path in results.files.items():
        lines.append(f"  {what}: {path}")
    lines += [f"note: {line}" for line in results.advice]
    return "\n".join(lines)


def _define_flags():
    define_flags(run)
    flags.DEFINE_string(
        "search", "", "values to try, 'FIELD=V,V;FIELD=V,V'; prints one table, the best first"
    )


if __name__ == "__main__":
    _define_flags()
    commands.run(main)
