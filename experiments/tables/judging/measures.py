"""Metrics as functions of sums over examples, and what each example adds to one."""

from collections.abc import Callable

import numpy as np

from official_bert.extension import find

# Sums over examples [..., k] -> metric [...], in points of 100 unless said otherwise.
MEASURES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    # k = 2: score, 1
    "mean": lambda s: 100 * s[..., 0] / s[..., 1],
    # k = 2: loss, number of predictions; in nats
    "nats": lambda s: s[..., 0] / s[..., 1],
    # k = 3: true positives, false positives, false negatives
    "f1": lambda s: 200 * s[..., 0] / np.maximum(2 * s[..., 0] + s[..., 1] + s[..., 2], 1e-12),
    # k = 4: true positives, true negatives, false positives, false negatives
    "matthews": lambda s: 100 * _matthews(*np.moveaxis(s, -1, 0)),
    # k = 6: 1, x, y, xx, yy, xy
    "pearson": lambda s: 100 * _pearson(*np.moveaxis(s, -1, 0)),
}


def measured(measure: str) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function of a measure, of MEASURES or an extension's."""
    return find("measures", measure, MEASURES)


def influence(measure: str, statistics: np.ndarray) -> np.ndarray:
    """Return the jackknife influence of each example: (n - 1) (metric - metric without it).

    The variance of these values, divided by n, is that of the metric over draws of n examples. For
    the mean of the examples' scores they are just the scores less their mean.

    Args:
      measure: key of MEASURES.
      statistics: float64 [n, k], whose sums over examples give the metric.

    Returns: float64 [n] of mean 0.
    """
    metric, total = measured(measure), statistics.sum(axis=0)
    if len(statistics) == 1:
        return np.zeros(1)
    values = (len(statistics) - 1) * (metric(total) - metric(total - statistics))
    return values - values.mean()


def _matthews(tp, tn, fp, fn):
    product = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return (tp * tn - fp * fn) / np.sqrt(np.maximum(product, 1e-12))


def _pearson(n, x, y, xx, yy, xy):
    covariance = xy - x * y / n
    spread = (xx - x * x / n) * (yy - y * y / n)
    return covariance / np.sqrt(np.maximum(spread, 1e-12))
