"""Intervals for differences between models: a paired bootstrap over seeds and examples.

Two models fine-tuned with the same seeds and scored on the same examples share much of their luck,
so both are drawn together: a draw takes pre-training seeds, fine-tuning seeds and evaluation
examples with replacement, the same for both models, and looks at the difference of the means.

Seeds are few, and the bootstrap flatters few. With n of them it shows only (n - 1) / n of the
variance between seeds, so the part of each draw that comes from seeds is stretched by
sqrt(n / (n - 1)). And that two seeds agree is often luck, so the draws give the standard error, and
the interval is Student's: its degrees of freedom are n - 1 where all the variance is between seeds,
many where it is between examples, and in between by Welch and Satterthwaite's formula. A single
seed shows no variance at all; the effect carries the numbers of seeds, so that a reader is told.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np

DRAWS = 2000
INTERVAL = 0.95


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
    """One fine-tuned (or pre-trained) model's score.

    Attributes:
      value: the metric in printed units (points of 100, or a loss).
      statistics: float64 [examples, k], sums of which give the metric; None where unknown.
      measure: key of MEASURES that turns the sums into the metric.
    """

    pretrain_seed: int
    finetune_seed: int
    value: float
    statistics: np.ndarray | None = None
    measure: str = "mean"

    @property
    def seeds(self) -> tuple[int, int]:
        return self.pretrain_seed, self.finetune_seed


@dataclasses.dataclass(frozen=True)
class Effect:
    """A difference of two models (or of a model and a constant) with its interval.

    Attributes:
      mean: the difference of the means over the seeds that both have.
      low, high: the 95 % interval; None where nothing was known to draw from.
      pretrain_seeds, finetune_seeds: how many seeds both models share.
      examples: how many evaluation examples were drawn from; 0 for none.
      by_pretrain_seed: the difference for each shared pre-training seed.
    """

    mean: float
    low: float | None
    high: float | None
    pretrain_seeds: int
    finetune_seeds: int
    examples: int
    by_pretrain_seed: tuple[float, ...]


# Sums over examples [..., k] -> metric [...], in points of 100.
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


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and sample standard deviation (n - 1); None for a single value."""
    values = np.asarray(values, np.float64)
    return float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else None


def paired_effect(
    first: Sequence[Run], second: Sequence[Run] | float, draws: int = DRAWS, seed: int = 0
) -> Effect | None:
    """The effect "first minus second" in printed units, or None where they share no seed.

    Args:
      first: runs of one model.
      second: runs of another, or a constant such as the trivial baseline.
      draws: bootstrap draws.
      seed: of the draws; equal arguments give equal intervals.
    """
    ones = {run.seeds: run for run in first}
    if isinstance(second, (int, float)):
        twos = {key: Run(*key, float(second)) for key in ones}
    else:
        twos = {run.seeds: run for run in second}
    shared = sorted(set(ones) & set(twos))
    if not shared:
        return None
    pretrain_seeds = sorted({p for p, _ in shared})
    constant = isinstance(second, (int, float))
    pairs = [(ones[key], twos[key]) for key in shared]
    differences = {key: ones[key].value - twos[key].value for key in shared}
    by_seed = tuple(
        float(np.mean([d for (p, _), d in differences.items() if p == s])) for s in pretrain_seeds
    )
    # Every pre-training counts the same, also where one of them lost a fine-tuning run.
    mean = float(np.mean(by_seed))
    examples = _drawable_examples(pairs, constant)
    finetune_seeds = len({s for _, s in shared})
    low = high = None
    if examples or len(shared) > 1:
        rng = np.random.default_rng(seed)
        levels = len(pretrain_seeds) if len(pretrain_seeds) > 1 else len(shared)
        of_examples, of_seeds = _draw(
            shared, pairs, differences, pretrain_seeds, levels, constant, examples, draws, rng
        )
        half = _half_width(of_examples, of_seeds, levels)
        low, high = mean - half, mean + half
    return Effect(mean, low, high, len(pretrain_seeds), finetune_seeds, examples, by_seed)


def _drawable_examples(pairs, constant) -> int:
    """Number of examples that all runs were scored on, 0 where one is unknown or they differ."""
    sizes = set()
    for one, two in pairs:
        for run in (one,) if constant else (one, two):
            sizes.add(0 if run.statistics is None else len(run.statistics))
    return sizes.pop() if len(sizes) == 1 else 0


def _half_width(of_examples: np.ndarray, of_seeds: np.ndarray, levels: int) -> float:
    """Of the interval around the mean, from the deviations of the draws and the number of seeds."""
    from scipy import stats

    between_seeds = float(of_seeds.var())
    variance = float((of_examples + of_seeds).var())
    if levels < 2 or not between_seeds:
        degrees = math.inf
    else:
        degrees = max(1.0, (variance / between_seeds) ** 2) * (levels - 1)
    return float(stats.t.ppf((1 + INTERVAL) / 2, degrees)) * math.sqrt(variance)


def _draw(shared, pairs, differences, pretrain_seeds, levels, constant, examples, draws, rng):
    """Deviations of the drawn mean difference from the observed one, each float64 [draws]: those
    that come from examples, and those that come from seeds."""
    values = np.array([differences[key] for key in shared])  # [runs]
    if examples:
        scored = [run for pair in pairs for run in (pair[:1] if constant else pair)]
        scores = iter(_resampled(scored, draws, rng))
        drawn = np.stack(
            [next(scores) - (two.value if constant else next(scores)) for _, two in pairs]
        )  # [runs, draws]
    else:
        drawn = np.repeat(values[:, None], draws, axis=1)
    flat = _seed_weights(shared, pretrain_seeds, None, draws, rng)  # [runs, draws]
    seeds = _seed_weights(shared, pretrain_seeds, rng, draws, rng)
    base = np.sum(flat * drawn, axis=0)
    stretch = math.sqrt(levels / (levels - 1)) if levels > 1 else 0.0
    observed = np.sum(flat[:, 0] * values)
    return base - observed, stretch * (np.sum(seeds * drawn, axis=0) - base)


def _seed_weights(shared, pretrain_seeds, resample, draws, rng) -> np.ndarray:
    """Weight of each run in each draw, [runs, draws]: pre-training seeds, then runs within one."""
    weights = np.zeros((len(shared), draws))
    groups = [[i for i, (p, _) in enumerate(shared) if p == s] for s in pretrain_seeds]
    n = len(groups)
    if resample is None:
        for group in groups:
            weights[group] = 1 / (n * len(group))
        return weights
    counts = rng.multinomial(n, np.full(n, 1 / n), size=draws)  # [draws, groups]
    for g, group in enumerate(groups):
        inner = rng.multinomial(len(group), np.full(len(group), 1 / len(group)), size=draws)
        weights[group] = (counts[:, g] / n)[None, :] * inner.T / len(group)
    return weights


def _resampled(runs: list[Run], draws: int, rng) -> list[np.ndarray]:
    """Each run's metric when examples are drawn with replacement, the same for all runs.

    Examples that all runs answered alike are the same to every metric: what is drawn is how often
    each such pattern occurs, exactly as a draw of examples would give, and there are few of them.

    Returns: float64 [draws] for each run, shifted so that it is centred on the run's value.
    """
    stacked = np.concatenate([run.statistics for run in runs], axis=1)
    examples = len(stacked)
    patterns, counts = np.unique(stacked, axis=0, return_counts=True)
    sums = np.empty((draws, stacked.shape[1]))
    for block in np.array_split(np.arange(draws), max(1, draws * len(patterns) // 2_000_000)):
        drawn = rng.multinomial(examples, counts / examples, size=len(block))
        sums[block] = drawn.astype(np.float64) @ patterns
    scores, first = [], 0
    for run in runs:
        last = first + run.statistics.shape[1]
        measure = MEASURES[run.measure]
        observed = measure(run.statistics.sum(axis=0))
        scores.append(run.value + measure(sums[:, first:last]) - observed)
        first = last
    return scores


def _matthews(tp, tn, fp, fn):
    product = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return (tp * tn - fp * fn) / np.sqrt(np.maximum(product, 1e-12))


def _pearson(n, x, y, xx, yy, xy):
    covariance = xy - x * y / n
    spread = (xx - x * x / n) * (yy - y * y / n)
    return covariance / np.sqrt(np.maximum(spread, 1e-12))
