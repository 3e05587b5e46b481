"""The p values of an effect, and Holm's correction of several."""

from collections.abc import Iterable

from experiments.tables.judging.intervals import Effect


def above(found: Effect, value: float) -> float:
    """Return the two-sided p value of the effect being above `value`; small where it clearly is."""
    return _p(found.mean - value, found)


def below(found: Effect, value: float) -> float:
    return _p(value - found.mean, found)


def _p(distance: float, found: Effect) -> float:
    from scipy import stats

    if not found.standard_error:
        return 0.0 if distance > 0 else 1.0
    one_sided = stats.t.sf(distance / found.standard_error, found.degrees_of_freedom)
    return float(min(1.0, 2 * one_sided))


def holm(values: Iterable[float]) -> dict[float, float]:
    """Return {p value: p value with Holm's correction}.

    In rising order each is multiplied by the number of those not yet corrected."""
    adjusted, largest, values = {}, 0.0, sorted(values)
    for rank, p in enumerate(values):
        largest = max(largest, min(1.0, (len(values) - rank) * p))
        adjusted[p] = largest
    return adjusted
