"""Intervals for differences between models, from analysis of variance.

**The model.** A column of a table scores every row r (a way to pre-train or fine-tune) with every
pre-training seed s, restart f of fine-tuning and evaluation example e:

    y[r,s,f,e] = mean[r] + P[s] + P[r,s] + F[r,s,f] + X[e] + X[r,e] + Z[r,s,f,e]

Rows that share a pre-training seed share order of data and initial weights (P[s]); restarts share
the same within a pre-training; all rows are scored on the same examples (X[e]). All terms but the
mean are random: a conclusion is meant for other seeds and other examples.

**The effect** of a comparison is a weighted sum of rows, "a minus b" with weights 1 and -1:

    D = sum over r of w[r] * mean over s, f, e of y[r,s,f,e]

The parts that the rows share (P[s], X[e]) cancel: that is pairing. Left is

    var(D) = between / S + examples / E

- *between* is the variance between replicates, which are pre-training seeds. (With one
  pre-training only, they are restarts, and the spread between pre-trainings is unknown.) It holds
  the parts that differ between replicates: P[r,s], F[r,s,f] / F, and Z, the interaction of runs
  and examples. S replicates give the sum's own variance S - 1 degrees of freedom; two replicates
  give an interval of 12.7 standard errors. But the rows of a column have much the same recipe, so
  their own variance is **moderated** (Smyth 2004): it is shrunk towards the column's usual
  variance, which counts as _LENT further degrees of freedom,

      between = (_LENT * usual + (S - 1) * own) / (_LENT + S - 1) / S

  Usual is the median of the variances of all differences of two rows. One odd row stands in 2 of R
  of these, so it does not widen the intervals of the others. The degrees of freedom are
  _LENT + S - 1, at most those of all rows together.
- *examples* is the variance of the examples' own differences X[r,e], from the S x E table of
  w-weighted scores d[s,e]: the mean square of examples less that of the interaction Z, which is in
  *between* already and must not be counted twice:

      examples = var over e of d[.,e] - var of (d[s,e] - d[s,.] - d[.,e] + d[.,.]) / S, at least 0

  A single run has no replicates; its variance is that of its examples' scores.

- *between* is at least the part that Z, the interaction of runs and examples, gives it: two to six
  seeds may by chance lie closer together than their own examples let them. Where they do, that part
  takes the place of *between*, with the examples' degrees of freedom.

A metric that is not a mean of examples (F1 of entities, correlations) is linearised: an example's
score is its jackknife influence, see `measures.influence`.

**The interval** is mean +- t * standard error. The degrees of freedom of a sum of two estimated
variances V1 + V2 are Satterthwaite's, (V1 + V2)^2 / (V1^2 / df1 + V2^2 / df2).

A row's own mean and its distance to a constant are effects too, with a single weight of 1. Then
P[s] does not cancel, and usual is the median of the variances of all rows' means.

How often such intervals hold the truth, with rows alike, unequal, and of two kinds of outcome, is
measured in tests/experiments/tables/judging/test_intervals.py.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from experiments.tables.judging import other_methods

INTERVAL = other_methods.INTERVAL
# The degrees of freedom that a column's other rows lend to a comparison. More of them make the
# intervals narrower where the rows are alike, and hide a noisy row. In simulated tables of 5 rows
# and 5 seeds 96 % of the intervals hold the truth where the rows are alike, 91 % for a row three
# times as variable as the others.
_LENT = 3.0


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
    """One fine-tuned (or pre-trained) model's score.

    Attributes:
      value: the metric in printed units (points of 100, or nats).
      influence: float64 [examples], what each example adds to the metric (`measures.influence`);
        None where it is unknown.
    """

    pretrain_seed: int
    finetune_seed: int
    value: float
    influence: np.ndarray | None = None

    @property
    def seeds(self) -> tuple[int, int]:
        return self.pretrain_seed, self.finetune_seed


@dataclasses.dataclass(frozen=True)
class Effect:
    """A weighted sum of rows with its interval.

    Attributes:
      mean: in printed units.
      low, high: the 95 % interval; None, as the next two, without replicates and scores of
        examples.
      standard_error: of `mean`.
      degrees_of_freedom: of Student's distribution.
      variance: the parts of standard_error^2: "pretraining", "restart", "examples" and "residual"
        (runs and examples together). They add up to it.
      pretrain_seeds: number of pre-trainings that all rows of the sum have.
      restarts: number of fine-tunings of each, on average.
      examples: number of evaluation examples, 0 where their scores are unknown.
      pooled_rows: number of rows whose variance between replicates was used, the compared included.
      by_pretrain_seed: the effect for each pre-training seed.
      others: intervals by `other_methods` where they apply: name -> (low, high).
    """

    mean: float
    low: float | None
    high: float | None
    standard_error: float | None
    degrees_of_freedom: float | None
    variance: dict[str, float]
    pretrain_seeds: int
    restarts: float
    examples: int
    pooled_rows: int
    by_pretrain_seed: tuple[float, ...]
    others: dict[str, tuple[float, float]] = dataclasses.field(default_factory=dict)

    def scaled(self, factor: float, mean: float) -> "Effect":
        """Return the effect in units that are `factor` times smaller, around another mean."""
        half = None if self.low is None else abs(factor) * (self.high - self.low) / 2
        return dataclasses.replace(
            self,
            mean=mean,
            low=None if half is None else mean - half,
            high=None if half is None else mean + half,
            standard_error=self.standard_error and abs(factor) * self.standard_error,
            variance={source: factor**2 * part for source, part in self.variance.items()},
            by_pretrain_seed=tuple(
                mean + factor * (value - self.mean) for value in self.by_pretrain_seed
            ),
            others={
                name: tuple(sorted(mean + factor * (bound - self.mean) for bound in bounds))
                for name, bounds in self.others.items()
            },
        )


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float | None]:
    """Return mean and sample standard deviation (n - 1); None for a single value."""
    values = np.asarray(values, np.float64)
    return float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else None


def effect(
    weights: Mapping[str, float],
    column: Mapping[str, Sequence[Run]],
    pool: Sequence[str] = (),
    constant: float = 0.0,
    beside: Sequence[tuple[float, Run]] = (),
) -> Effect | None:
    """Return the effect of the rows' means, each times its weight, less `constant` (see the
    module).

    Args:
      weights: of the rows of the sum.
      column: row -> its runs.
      pool: further rows from which the variance between replicates is taken; those that lack a run
        of the compared ones are left out.
      beside: weights and runs of further rows of the sum, which no seed changes: each seed of the
        others is compared with them. They have nothing of what a seed adds to all rows (P[s]), so
        it does not cancel.

    Returns: None where the rows of the sum share no seeds.
    """
    by_row = {row: {run.seeds: run for run in runs} for row, runs in column.items()}
    shared = sorted(set.intersection(*(set(by_row.get(row, ())) for row in weights)))
    if not shared:
        return None
    by_seed = [[key for key in shared if key[0] == p] for p in sorted({p for p, _ in shared})]
    replicates = by_seed if len(by_seed) > 1 else [[key] for key in shared]
    rows = list(weights) + [
        row for row in pool if row not in weights and set(shared) <= set(by_row.get(row, ()))
    ]
    values = {key: sum(weights[row] * by_row[row][key].value for row in weights) for key in shared}
    constant -= sum(weight * run.value for weight, run in beside)
    seeds_values = [float(np.mean([values[key] for key in keys])) - constant for keys in by_seed]
    scores = _weighted_influence(weights, by_row, shared, beside)

    between, examples, residual, number = (0.0, math.inf), (0.0, math.inf), 0.0, 0
    if len(replicates) > 1:
        runs = [[[by_row[row][key].value for key in keys] for keys in replicates] for row in rows]
        table = np.array([[np.mean(restarts) for restarts in row] for row in runs])
        weight = np.array([weights.get(row, 0.0) for row in rows])
        between = between_replicates(weight, table)
    if scores:
        of_replicates = [np.mean([scores[key] for key in keys], axis=0) for keys in replicates]
        *examples, residual = from_examples(np.array(of_replicates))
        number = len(of_replicates[0])
    between = at_least(between, residual, examples[1])
    restart = between[0] - residual
    if len(by_seed) > 1:
        restart = min(restart, _restart_variance(values, scores, by_seed))
    parts = {
        "pretraining": between[0] - residual - restart,
        "restart": restart,
        "examples": examples[0],
        "residual": residual,
    }
    of_seeds = scores and np.array([np.mean([scores[k] for k in ks], axis=0) for ks in by_seed])
    mean, bounds = float(np.mean(seeds_values)), (None,) * 4
    if min(between[1], examples[1]) < math.inf:
        bounds = map(float, interval(mean, between, examples))
    return Effect(
        mean,
        *bounds,
        {source: float(part) for source, part in parts.items()},
        len(by_seed),
        len(shared) / len(by_seed),
        number,
        len(rows),
        tuple(seeds_values),
        other_methods.intervals(seeds_values, of_seeds),
    )


def between_replicates(weight: np.ndarray, table: np.ndarray):
    """Return what replicates add to the variance of the sum of rows' means.

    Args:
      weight: float64 [rows], 0 for rows that only lend their variance.
      table: float64 [..., rows, replicates], at least 2 replicates.

    Returns: (variance [...], its degrees of freedom [...]).
    """
    from scipy import stats

    rows, replicates = table.shape[-2:]
    seeds, squares = replicates - 1, weight @ weight
    own = (weight @ table).var(axis=-1, ddof=1) / squares
    others, is_difference = np.count_nonzero(weight == 0), abs(weight.sum()) < 1e-9
    degrees = degrees_between(replicates, rows - is_difference, others)
    if not others:
        return own * squares / replicates, np.full_like(own, degrees)
    if is_difference:  # what a replicate adds to all rows cancels
        one, other = np.triu_indices(rows, 1)
        table = (table[..., one, :] - table[..., other, :]) / math.sqrt(2)
    # The lower median: with 4 rows, half of the differences are without an odd row.
    usual = np.quantile(table.var(axis=-1, ddof=1), 0.5, axis=-1, method="lower")
    usual = usual * seeds / stats.chi2.ppf(0.5, seeds)
    variance = (_LENT * usual + seeds * own) / (_LENT + seeds)
    return variance * squares / replicates, np.full_like(variance, degrees)


def at_least(between, residual, degrees):
    """Return (variance [...], degrees of freedom [...]) of replicates, at least those of
    `residual`.

    Args:
      between: the estimate of both.
      residual: variance [...] of the interaction of runs and examples.
      degrees: its degrees of freedom."""
    below = between[0] < residual
    return np.where(below, residual, between[0]), np.where(below, degrees, between[1])


def degrees_between(replicates: float, independent: int, others: int) -> float:
    """Count the degrees of freedom of the variance between replicates; `independent`: rows of the
    column, one less where the sum is a difference; `others`: rows that only lend their variance."""
    seeds = replicates - 1
    return min(_LENT + seeds, independent * seeds) if others else seeds


def from_examples(scores: np.ndarray):
    """Return what evaluation examples add to the variance of the sum of rows' means.

    Args:
      scores: float64 [..., replicates, examples], weighted sums of the rows' influences.

    Returns: (variance [...], its degrees of freedom, variance [...] that comes from runs and
      examples together, which is part of what replicates add).
    """
    replicates, examples = scores.shape[-2:]
    mean = scores.mean(axis=-2, keepdims=True)
    total = mean.var(axis=-1, ddof=1)[..., 0] / examples
    if replicates == 1:
        return total, examples - 1, np.zeros_like(total)
    squares = np.square(scores - mean).sum(axis=(-2, -1))
    residual = squares / ((replicates - 1) * (examples - 1)) / (replicates * examples)
    return np.maximum(0.0, total - residual), examples - 1, residual


def interval(mean, *estimates):
    """Return (low, high, standard error, degrees of freedom) of a mean.

    Args:
      estimates: pairs of a variance and its degrees of freedom; the variances add up.
    """
    from scipy import stats

    error = np.sqrt(sum(variance for variance, _ in estimates))
    degrees = _satterthwaite(*estimates)
    half = stats.t.ppf((1 + INTERVAL) / 2, degrees) * error
    return mean - half, mean + half, error, degrees


def _satterthwaite(*estimates):
    """Return the degrees of freedom of a sum of variances; where all are 0, the fewest of
    theirs."""
    total = np.asarray(sum(variance for variance, _ in estimates), np.float64)
    spread = np.asarray(sum(variance**2 / degrees for variance, degrees in estimates), np.float64)
    fewest = np.broadcast_to(np.minimum(*(d for _, d in estimates)), total.shape)
    return np.divide(total**2, spread, out=np.array(fewest, np.float64), where=spread > 0)


def average(
    columns: Sequence[Mapping[str, Sequence[Run]]], samples: Sequence[str]
) -> dict[str, list[Run]]:
    """Return the column of the rows' mean scores over several columns.

    Args:
      samples: for each column, the name of its set of examples. Influences on the same examples are
        added up, those on different ones are put side by side.

    Returns: row -> runs, one for each pre-training seed that all columns have; one for each restart
      where there is one pre-training. A row whose columns then have different restarts is left out:
      no run of one column belongs to a run of another.
    """
    found = {}
    for row in columns[0]:
        tables = [{run.seeds: run for run in column.get(row, ())} for column in columns]
        seeds = sorted(set.intersection(*({p for p, _ in table} for table in tables)))
        if len(seeds) > 1:
            groups = {(p, 0): [[k for k in table if k[0] == p] for table in tables] for p in seeds}
        elif all(set(table) == set(tables[0]) for table in tables):
            groups = {key: [[key]] * len(tables) for key in sorted(tables[0])}
        else:
            continue
        found[row] = [
            _averaged(
                key, [[t[k] for k in ks] for t, ks in zip(tables, group, strict=True)], samples
            )
            for key, group in groups.items()
        ]
    return found


def _averaged(key, by_column: list[list[Run]], samples) -> Run:
    value = float(np.mean([np.mean([run.value for run in runs]) for runs in by_column]))
    if any(run.influence is None for runs in by_column for run in runs):
        return Run(*key, value)
    parts: dict[tuple[str, int], np.ndarray] = {}
    for sample, runs in zip(samples, by_column, strict=True):
        mean = np.mean([run.influence for run in runs], axis=0) / len(by_column)
        same = sample, len(mean)
        parts[same] = parts[same] + mean if same in parts else mean
    # Scale each part as if it were drawn from all examples, so that it keeps its variance.
    size = sum(map(len, parts.values()))
    return Run(*key, value, np.concatenate([p * size / len(p) for p in parts.values()]))


def _weighted_influence(weights, by_row, shared, beside) -> dict | None:
    """Return seeds -> float64 [examples], the sum of the rows' influences; None where one is
    unknown."""
    influences = [by_row[row][key].influence for row in weights for key in shared]
    influences += [run.influence for _, run in beside]
    if any(i is None for i in influences) or len({len(i) for i in influences}) != 1:
        return None
    if len(influences[0]) < 2:
        return None
    rest = sum(weight * run.influence for weight, run in beside)
    return {
        key: rest + sum(weight * by_row[row][key].influence for row, weight in weights.items())
        for key in shared
    }


def _restart_variance(values, scores, by_seed) -> float:
    """Return the variance of the mean that comes from restarts, without that of their examples."""
    parts = []
    for keys in by_seed:
        if len(keys) > 1:
            part = float(np.var([values[key] for key in keys], ddof=1)) / len(keys)
            if scores is not None:
                part -= from_examples(np.array([scores[key] for key in keys]))[2]
            parts.append(part)
    return max(0.0, float(np.mean(parts))) / len(by_seed) if parts else 0.0
