"""Scores between which those of a table will lie: known from its data, before it is run."""

from pathlib import Path

from data_prep.tasks.batches import sample
from experiments.training.inputs import read_task
from official_bert.common.json_files import read_json

BEST = "best.json"  # beside data that were made: the scores of whoever knows how


def before_the_run(column, config) -> tuple[float | None, float | None]:
    """(score of the trivial baseline, best possible score) of a column, in printed units, each None
    where it is not known; `config`: a FinetuneConfig of the column's."""
    task, train, dev = read_task(config)
    limits = config.max_train_examples, config.max_dev_examples
    scores = task.baseline(*map(sample, (train, dev), limits))
    path = Path(config.data_dir, BEST)
    best = read_json(path) if path.is_file() else {}
    metric, scale = column.metric or next(iter(scores)), 100 if column.percent else 1
    found = (known.get(metric) for known in (scores, best.get("dev", best)))
    score, best = (None if value is None else scale * value for value in found)
    return score, None if score is None else best
