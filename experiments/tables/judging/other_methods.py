"""Intervals of an effect by plainer methods than `intervals`, to check a verdict.

- **paired t**: Student's interval of the effects of single pre-training seeds. It is about other
  seeds on these same examples, and borrows nothing from other rows.
- **bootstrap**: the multi-bootstrap of MultiBERTs (Sellam et al., 2022, section 3): seeds, which
  both rows share, and examples are drawn anew with replacement, both at once; the 2.5th and the
    97.5th percentile of the effects. The mean over thousands of examples drawn anew is normal, with
  the variance of their scores divided by their number, so it is drawn from that distribution. With
  few seeds such intervals are too narrow.
"""

import numpy as np

INTERVAL = 0.95
METHODS = ("paired t", "bootstrap")
_DRAWS = 4000


def intervals(by_seed, scores=None) -> dict[str, tuple[float, float]]:
    """Return {method: (low, high)} of the mean over seeds, for the methods that apply.

    Args:
      by_seed: the effect of each pre-training seed, [S].
      scores: what each example adds to it, float64 [S, E] of mean 0; None where it is unknown.
    """
    values = np.asarray(by_seed, np.float64)
    if len(values) < 2:
        return {}
    found = {"paired t": paired_t(values)}
    if scores is not None:
        found["bootstrap"] = bootstrap(values, scores)
    return found


def paired_t(values) -> tuple[float, float]:
    """Return Student's interval of the mean of values [S]."""
    from scipy import stats

    half = stats.t.ppf((1 + INTERVAL) / 2, len(values) - 1) * values.std(ddof=1)
    half /= np.sqrt(len(values))
    return float(values.mean() - half), float(values.mean() + half)


def bootstrap(values, scores) -> tuple[float, float]:
    """Return the interval of the mean of values [S] over draws of seeds and examples, scores [S,
    E]."""
    draws = np.random.default_rng(0)
    seeds, examples = scores.shape
    share = draws.multinomial(seeds, np.full(seeds, 1 / seeds), _DRAWS) / seeds  # [draws, S]
    of_examples = scores @ scores.T / examples**2  # [S, S]
    variance = np.einsum("ds,st,dt->d", share, of_examples, share)
    effects = share @ values + np.sqrt(np.maximum(variance, 0)) * draws.standard_normal(_DRAWS)
    low, high = np.quantile(effects, [(1 - INTERVAL) / 2, (1 + INTERVAL) / 2])
    return float(low), float(high)
