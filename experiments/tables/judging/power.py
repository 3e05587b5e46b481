"""The power of a design: the smallest effect that it finds, from the variances of a pilot.

For plans that are written before the work is done (experiments/results/PLAN.md):

    pilot = per_unit(finding["variance"], pretrain_seeds=2, restarts=3, examples=5463)
    planned(pilot, pretrain_seeds=5, restarts=3, examples=5463, rows=4)["detectable"]
"""

import math
from collections.abc import Mapping

from experiments.tables.judging.intervals import degrees_between, interval

POWER = 0.8
LEVEL = 0.05


def detectable(
    standard_error: float, degrees_of_freedom: float, power: float = POWER, level: float = LEVEL
) -> float:
    """Return the smallest true effect that a two-sided test at `level` finds with probability
    `power`.

    Args:
      standard_error: of the estimated effect; the answer has its units.
    """
    from scipy import optimize, stats

    # Beyond ten thousand degrees Student's distribution is the normal one to four digits.
    degrees = min(max(degrees_of_freedom, 1.0), 1e4)
    threshold = stats.t.ppf(1 - level / 2, degrees)

    def missing(shift):
        return stats.nct.sf(threshold, degrees, shift) - power

    return standard_error * optimize.brentq(missing, 0.0, 3 * threshold + 3)


def per_unit(
    variance: Mapping[str, float], pretrain_seeds: int, restarts: float, examples: int
) -> dict[str, float]:
    """Return variances of single pre-trainings, restarts, examples and runs on an example.

    Args:
      variance: parts of an effect's squared standard error (`intervals.Effect.variance`).
      pretrain_seeds, restarts, examples: of the design that they were measured with.
    """
    return {
        source: variance[source] * size
        for source, size in _sizes(pretrain_seeds, restarts, examples).items()
    }


def planned(
    units: Mapping[str, float],
    pretrain_seeds: int,
    restarts: float,
    examples: int,
    rows: int = 2,
) -> dict[str, float]:
    """Return a design's "standard_error", "degrees_of_freedom" and "detectable" effect.

    Args:
      units: variances of `per_unit`.
      rows: of the column, the two compared ones among them.
    """
    sizes = _sizes(pretrain_seeds, restarts, examples)
    parts = {source: units[source] / size for source, size in sizes.items() if size}
    of_examples = parts.pop("examples", 0.0), max(examples - 1.0, 1.0)
    replicates = pretrain_seeds if pretrain_seeds > 1 else restarts
    # One run tells nothing of the variance between runs.
    between_df = degrees_between(replicates, rows - 1, rows - 2) if replicates > 1 else math.inf
    *_, error, degrees = interval(0.0, (sum(parts.values()), between_df), of_examples)
    return {
        "standard_error": float(error),
        "degrees_of_freedom": float(degrees),
        "detectable": detectable(error, degrees),
    }


def _sizes(pretrain_seeds, restarts, examples) -> dict[str, float]:
    runs = pretrain_seeds * restarts
    return {
        "pretraining": pretrain_seeds,
        "restart": runs,
        "examples": examples,
        "residual": runs * examples,
    }
