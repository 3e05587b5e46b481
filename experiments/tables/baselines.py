"""Scores between which those of a table will lie: known from its data, before it is run."""

from pathlib import Path

from data_prep.tasks import get_task
from experiments.training.config import FinetuneConfig
from experiments.training.config_values import from_dict
from experiments.training.examples import read_examples
from official_bert.common.json_files import read_json

BEST = "best.json"  # beside data that were made: the scores of whoever knows how


def before_the_run(ablation, plan, say) -> dict[str, tuple[float, float | None]]:
    """Column -> (score of the trivial baseline, best possible score or None), in printed units.

    Columns whose data are made by a cell, or that ask pre-trained models, are left out.

    Args:
      ablation, plan: an `Ablation` and its `Plan`.
      say: takes a line for each task that is read.
    """
    cells, found, read = {cell.name: cell for cell in plan.cells}, {}, {}
    for (_, label), runs in plan.runs.items():
        cell, column = cells[runs[0].cell], ablation.column(label)
        if label in found or cell.kind != "finetune":
            continue
        config = from_dict(FinetuneConfig, cell.config)
        if config.data_dir.startswith("@"):
            continue
        limits = config.max_train_examples, config.max_dev_examples
        key = config.task, config.data_dir, str(config.task_options), limits
        if key not in read:
            say(f"  reads {label} for its trivial baseline")
            read[key] = _scores(config)
        scores, best = read[key]
        metric, scale = column.metric or next(iter(scores)), 100 if column.percent else 1
        if metric in scores:
            found[label] = scale * scores[metric], scale * best[metric] if metric in best else None
    return found


def _scores(config) -> tuple[dict, dict]:
    task = get_task(config.task, config.data_dir, **config.task_options)
    train, dev = (read_examples(task, split, config) for split in ("train", "dev"))
    path = Path(config.data_dir, BEST)
    best = read_json(path) if path.is_file() else {}
    return task.baseline(train, dev), best.get("dev", best)
