"""The power of a design: the smallest effect that it finds, from the variances of a pilot.

For plans that are written before the work is done (experiments/results/PLAN.md):

    pilot = per_unit(finding["variance"], pretrain_seeds=2, restarts=3, examples=5463)
    planned(pilot, pretrain_seeds=5, restarts=3, examples=5463, rows=4)["detectable"]
"""

import math
from collections.abc import Mapping

POWER = 0.8
LEVEL = 0.05


def detectable(
    standard_error: float, degrees_of_freedom: float, power: float = POWER, level: float = LEVEL
) -> float:
    """The smallest true effect that a two-sided test at `level` finds with probability `power`.

    Args:
      standard_error: of the estimated effect; the answer has its units.
    """
    from scipy import optimize, stats

    # Beyond ten thousand Student's distribution is the normal one to four digits.
    degrees = min(max(degrees_of_freedom, 1.0), 1e4)
    threshold = stats.t.ppf(1 - level / 2, degrees)

    def missing(shift):
        return stats.nct.sf(threshold, degrees, shift) - power

    return standard_error * optimize.brentq(missing, 0.0, 3 * threshold + 3)


def per_unit(
    variance: Mapping[str, float], pretrain_seeds: int, restarts: float, examples: int
) -> dict[str, float]:
    """Variances of single pre-trainings, restarts, examples and runs on an example.

    Args:
      variance: the parts of an effect's squared standard error (`intervals.Effect.variance`).
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
    """What a design gives: its "standard_error", "degrees_of_freedom" and "detectable" effect.

    Args:
      units: variances of `per_unit`.
      rows: how many rows of the column the variance between pre-trainings is pooled over.
    """
    sizes = _sizes(pretrain_seeds, restarts, examples)
    parts = {source: units[source] / size for source, size in sizes.items() if size}
    of_examples = parts.pop("examples", 0.0)
    between = sum(parts.values())
    replicates = pretrain_seeds if pretrain_seeds > 1 else restarts
    between_df = (rows - 1) * (replicates - 1)
    variance = between + of_examples
    degrees = max(examples - 1.0, 1.0)
    if between_df and variance:
        degrees = variance**2 / (between**2 / between_df + of_examples**2 / degrees)
    error = math.sqrt(variance)
    return {
        "standard_error": error,
        "degrees_of_freedom": degrees,
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
