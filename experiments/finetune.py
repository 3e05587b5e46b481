"""Fine-tunes a model on a task (section 4 of the paper).

    python -m experiments.finetune --config=glue --config.task=mrpc --config.model=MODEL \\
        --config.data_dir=glue_data/MRPC --workdir=runs/mrpc

leaves in the work folder: results.json, predictions in the task's official format, report.md and
analysis.json (confusion matrix, scores of each class, the most confident mistakes), metrics.jsonl,
TensorBoard events, and model/, a model folder. The same command continues an interrupted run.

A search over hyper-parameters is one flag. Every combination is a run of its own, so an interrupted
search continues. The table of all is printed and kept in search.json:

    --search='learning_rate=5e-5,4e-5,3e-5,2e-5;seed=1,2,3'
"""

from absl import flags

from experiments.training import search
from experiments.training.config import FinetuneConfig
from experiments.training.config_files import config_from_flags, define_flags
from experiments.training.runs import finetune as run
from official_bert.common import commands


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
    """A few lines for a reader."""
    lines = [
        f"{results['task']}: {results['train_examples']} training examples, "
        f"{results['steps']} steps, {results['seconds']:.0f} s"
    ]
    for name, value in results["dev"].items():
        baseline = results["baseline"].get(name)
        beside = f"   (trivial baseline {baseline:.4f})" if baseline is not None else ""
        lines.append(f"  dev {name:<24} {value:.4f}{beside}")
    if results.get("scoring"):
        lines.append(f"  {results['scoring']}")
    for split in ("train", "dev"):
        notes = results.get(f"{split}_notes", {})
        told = {
            "longer than max_seq_length and cut": notes.get("truncated_examples"),
            "left out, answer not in the paragraph": notes.get("answers_not_found"),
            "with an answer stated elsewhere, taken at the nearest place": notes.get(
                "answers_moved_to_the_nearest_place"
            ),
            "with an id that was there before, numbered": notes.get("repeated_ids_numbered"),
        }
        lines += [f"  {split}: {count} texts {what}" for what, count in told.items() if count]
    for name in ("dev_before_tuning", "dev_mismatched"):
        if name in results:
            scores = ", ".join(f"{metric} {value:.4f}" for metric, value in results[name].items())
            lines.append(f"  {name}: {scores}")
    for split, why in results.get("splits_without_predictions", {}).items():
        lines.append(f"  {split}: no predictions, {why}")
    for what, path in results["files"].items():
        lines.append(f"  {what}: {path}")
    lines += [f"note: {line}" for line in results.get("advice", ())]
    return "\n".join(lines)


def _define_flags():
    define_flags(run)
    flags.DEFINE_string(
        "search", "", "values to try, 'FIELD=V,V;FIELD=V,V'; prints one table, the best first"
    )


if __name__ == "__main__":
    _define_flags()
    commands.run(main)
