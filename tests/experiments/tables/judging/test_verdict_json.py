"""Verdicts as JSON values, and back."""

import numpy as np
import pytest
from scipy import stats

from experiments.tables.judging.evidence import Evidence
from experiments.tables.judging.intervals import Run
from experiments.tables.judging.verdict_json import of_json, to_json
from experiments.tables.judging.verdicts import judge
from experiments.tables.planning.claims import Claim, Comparison
from official_bert.common.errors import UserError

A_OVER_B = Comparison("task", "a", "b")


def runs(mean, examples=500):
    """Return two runs of each of two pre-training seeds."""
    own = np.random.default_rng(mean).standard_normal((4, examples))
    own -= own.mean(axis=1, keepdims=True)
    return [Run(i // 2, i % 2, mean + i / 9 + i % 2 / mean, scores) for i, scores in enumerate(own)]


def evidence(**rows):
    return Evidence({(row, "task"): made for row, made in rows.items()})


def test_results_hold_all_that_a_verdict_takes():
    found = judge(Claim("c", "text", "5.1", (A_OVER_B,)), evidence(a=runs(80), b=runs(70)))
    made = to_json([found])[0]["findings"][0]
    half = stats.t.ppf(0.975, made["degrees_of_freedom"]) * made["standard_error"]
    assert made["effect"] - half == pytest.approx(made["low"])
    assert sum(made["variance"].values()) == pytest.approx(made["standard_error"] ** 2)
    t = (made["effect"] - made["margin"]) / made["standard_error"]
    assert 2 * stats.t.sf(t, made["degrees_of_freedom"]) == pytest.approx(made["p"])
    nothing = judge(Claim("c", "", "", (A_OVER_B,)), evidence(a=runs(80)))
    [empty] = to_json([nothing])
    assert empty["findings"][0]["effect"] is None and empty["mean_effect"] is None
    assert of_json([empty], "results.json") == [nothing]


@pytest.mark.parametrize(
    "place, change, message",
    [
        ((), {"findings": 3}, "findings must be a list"),
        ((), {"depends_on": None}, "depends_on: expected a list"),
        ((), {"extent": [1, 2]}, "extent: expected a list of 3"),
        (("mean_effect",), {"low": "x"}, "mean_effect: low: expected a number"),
        (("findings", 0), {"better": 3}, "comparisons: better: expected a text"),
        (("findings", 0), {"effect": "x"}, "effect must be a number or nothing"),
        (("findings", 0), {"others": {"paired t": [1]}}, "paired t: expected a list of 2"),
    ],
)
def test_a_verdict_that_was_changed_by_hand_is_refused(place, change, message):
    made = to_json([judge(Claim("c", "t", "5", (A_OVER_B,)), evidence(a=runs(4), b=runs(3)))])
    part = made[0]
    for key in place:
        part = part[key]
    part |= change
    with pytest.raises(UserError, match=f"run/results.json: .*{message}"):
        of_json(made, "run/results.json")
