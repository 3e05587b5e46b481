"""Per-example statistics of a fine-tuned model, from which intervals over examples are made.

Each metric of a task becomes an array [examples, k] whose column sums give the metric
(`tables/judging/intervals.py`), so that the metric without an example is quickly computed. The file
also holds the clusters of examples that are not independent (`Task.clusters`): `load` returns one
row a cluster, the sum of its examples.
"""

import os

import numpy as np

from data_prep.jobs import array_files
from official_bert.common.errors import UserError

_OF_FOLDS = {
    "single_label": ("accuracy",),
    "multi_label": ("exact_match",),
    "regression": ("mean_squared_error",),
}


def statistics(task, examples: list, predictions: list[dict]) -> dict[str, tuple[str, np.ndarray]]:
    """Return {metric: (measure, float64 [examples, k])} of the task's metrics that are such
    sums."""
    found = task.statistics(examples, predictions)
    whole = task.score(examples, predictions)
    for metric in task.metrics:
        if metric not in found and metric in whole:
            rows = _means(task, examples, predictions, metric)
            if rows is not None and abs(rows[:, 0].sum() / rows[:, 1].sum() - whole[metric]) < 1e-6:
                found[metric] = "mean", rows
    return found


def check_folds(task, metric: str) -> None:
    """Check that a metric over all folds can be made from the statistics of single folds.

    Raises:
      UserError: the metric ("": the main one) is not made of sums over examples, or it needs ranks
        or means that differ between folds.
    """
    problem, metric = task.head["problem"], metric or task.metrics[0]
    two = ("f1", "matthews") if len(task.head["labels"]) == 2 else ()
    known = [m for m in task.metrics if m in (*_OF_FOLDS[problem], *two)]
    if metric not in known:
        raise UserError(
            f"folds of {task.name} have no {metric} of all examples together; they have "
            f"{', '.join(known)}"
        )


def save(path, task, examples: list, predictions: list[dict]) -> None:
    """Write the `statistics` of predictions."""
    found = statistics(task, examples, predictions)
    write(path, found, np.unique(task.clusters(examples), return_inverse=True)[1])


def write(path, found: dict[str, tuple[str, np.ndarray]], clusters=None) -> None:
    """Write metric -> (measure, [examples, k]) as one .npz file of arrays "METRIC:MEASURE", and
    int32 [examples] "clusters", where examples have any."""
    arrays = {
        f"{metric}:{measure}": array.astype(np.float32)
        for metric, (measure, array) in found.items()
    }
    if clusters is not None:
        arrays["clusters"] = np.asarray(clusters, np.int32)
    array_files.write(path, arrays, compressed=True)


def load(path, metric: str) -> tuple[str, np.ndarray] | None:
    """Return (measure, float64 [clusters, k]) of one metric; None where it was not kept.

    Raises:
      UserError: the file is damaged.
    """
    arrays = array_files.read(path) if os.path.exists(path) else {}
    for name, array in arrays.items():
        if name.rpartition(":")[0] == metric:
            rows = array.astype(np.float64)
            if "clusters" in arrays:
                cluster = arrays["clusters"]
                rows = np.zeros((cluster.max() + 1, rows.shape[1]))
                np.add.at(rows, cluster, array)
            return name.rpartition(":")[2], rows
    return None


def _means(task, examples, predictions, metric) -> np.ndarray | None:
    """Return [examples, 2] of a metric that is a mean over examples; None for other metrics.

    A row is (the metric of the example alone, 1), or (0, 0) where the metric skips the example."""
    try:
        alone = (
            task.score([example], [prediction])
            for example, prediction in zip(examples, predictions, strict=True)
        )
        return np.array([(s[metric], 1.0) if metric in s else (0.0, 0.0) for s in alone])
    except (ValueError, ZeroDivisionError):
        return None
