"""Verdicts: the bootstrap on data with known answers, and the guards against empty victories."""

import numpy as np
import pytest
from scipy import stats

from experiments.tables.claims import (
    AT_MOST,
    NOT_DECIDED,
    NOT_REPRODUCED,
    REPRODUCED,
    Claim,
    Comparison,
    Evidence,
    each,
    judge,
    judge_comparison,
)
from experiments.tables.intervals import MEASURES, Run, mean_and_deviation, paired_effect


def runs(rate, pretrain_seeds=2, finetune_seeds=2, examples=2000, spread=0.0, shared=7):
    """Runs that answer a share `rate` of the examples rightly, the easy ones first."""
    difficulty = np.random.default_rng(shared).random(examples)
    made = []
    for p in range(pretrain_seeds):
        for s in range(finetune_seeds):
            noise = np.random.default_rng([p, s, int(rate * 1e6)])
            own = rate + spread * noise.standard_normal()
            right = (difficulty + 0.05 * noise.standard_normal(examples) < own).astype(float)
            statistics = np.stack([right, np.ones(examples)], axis=1)
            made.append(Run(p, s, 100 * right.mean(), statistics))
    return made


def evidence(**rows):
    baselines = rows.pop("baselines", {"task": 50.0})
    return Evidence({(row, "task"): made for row, made in rows.items()}, baselines)


def verdict(comparison, **rows):
    return judge_comparison(comparison, evidence(**rows))


A_OVER_B = Comparison("task", "a", "b")


def test_clear_differences_are_decided_both_ways():
    up = verdict(A_OVER_B, a=runs(0.80), b=runs(0.70))
    assert up.verdict == REPRODUCED
    assert up.effect.low < up.effect.mean < up.effect.high
    assert up.effect.mean == pytest.approx(10, abs=1.5)
    down = verdict(A_OVER_B, a=runs(0.70), b=runs(0.80))
    assert down.verdict == NOT_REPRODUCED


def test_small_samples_are_not_decided():
    finding = verdict(A_OVER_B, a=runs(0.71, examples=80), b=runs(0.70, examples=80))
    assert finding.verdict == NOT_DECIDED
    assert "interval holds 0" in finding.reason


def test_no_gain_within_a_narrow_interval_is_not_reproduced():
    same = runs(0.7, examples=20000)
    finding = verdict(A_OVER_B, a=same, b=same)
    assert finding.verdict == NOT_REPRODUCED
    assert "below 0.5" in finding.reason


def test_a_model_at_the_trivial_baseline_decides_nothing():
    # The trap of section 5.1: a left-to-right model that only says the majority class.
    finding = verdict(A_OVER_B, a=runs(0.80), b=runs(0.50), baselines={"task": 50.5})
    assert finding.effect.mean > 25
    assert finding.verdict == NOT_DECIDED
    assert "b does not beat the trivial baseline" in finding.reason


def test_pretraining_seeds_must_agree():
    better = runs(0.8, examples=3000)
    worse = [r for r in runs(0.6, examples=3000) if r.pretrain_seed == 0]
    worse += [r for r in runs(0.82, examples=3000) if r.pretrain_seed == 1]
    finding = verdict(A_OVER_B, a=better, b=worse)
    assert finding.effect.by_pretrain_seed[0] > 15 > 0 > finding.effect.by_pretrain_seed[1]
    assert finding.verdict == NOT_DECIDED


def test_one_run_each_without_examples_is_not_decided():
    a, b = [Run(1, 1, 90.0)], [Run(1, 1, 60.0)]
    finding = verdict(A_OVER_B, a=a, b=b)
    assert finding.effect.low is None
    assert finding.verdict == NOT_DECIDED


def test_missing_rows_are_named_with_their_reason():
    made = evidence(a=runs(0.8))
    made = Evidence(made.runs, made.baselines, holes={("b", "task"): "the loss became NaN"})
    finding = judge_comparison(A_OVER_B, made)
    assert finding.verdict == NOT_DECIDED
    assert finding.reason == "no result for b: the loss became NaN"


def test_at_most():
    near = Comparison("task", "b", "a", AT_MOST, margin=3.0)
    assert verdict(near, a=runs(0.80, 4), b=runs(0.805, 4)).verdict == REPRODUCED
    assert verdict(near, a=runs(0.80, 4), b=runs(0.90, 4)).verdict == NOT_REPRODUCED
    assert verdict(near, a=runs(0.80, examples=60), b=runs(0.82, examples=60)).verdict == (
        NOT_DECIDED
    )


def test_losses_count_the_other_way():
    a = [Run(p, 0, 4.0 + 0.01 * p) for p in range(3)]
    b = [Run(p, 0, 5.0 - 0.01 * p) for p in range(3)]
    table = Evidence(
        {("a", "task"): a, ("b", "task"): b}, {"task": 7.0}, lower_is_better=frozenset({"task"})
    )
    finding = judge_comparison(A_OVER_B, table)
    assert finding.verdict == REPRODUCED
    assert finding.effect.mean == pytest.approx(0.98)
    assert "drawn over seeds only" in finding.reason
    plateau = Evidence(table.runs, {"task": 4.5}, table.lower_is_better)
    assert judge_comparison(A_OVER_B, plateau).verdict == NOT_DECIDED


def test_a_claim_needs_all_of_its_comparisons():
    table = {
        ("a", "x"): runs(0.8),
        ("b", "x"): runs(0.7),
        ("a", "y"): runs(0.71, examples=80),
        ("b", "y"): runs(0.70, examples=80),
        ("a", "z"): runs(0.7),
        ("b", "z"): runs(0.8),
    }
    made = Evidence(table, {})

    def on(*columns):
        return judge(Claim("c", "a is better", "5.1", each(columns, "a", "b")), made).verdict

    assert on("x") == REPRODUCED
    assert on("x", "y") == NOT_DECIDED
    assert on("x", "y", "z") == NOT_REPRODUCED


def test_models_that_do_not_beat_a_random_one_decide_nothing():
    random = [Run(0, r.finetune_seed, r.value, r.statistics) for r in runs(0.70, 1)]
    table = {("a", "task"): runs(0.70), ("b", "task"): runs(0.60), ("none", "task"): random}
    assert judge_comparison(A_OVER_B, Evidence(table, {})).verdict == REPRODUCED
    finding = judge_comparison(A_OVER_B, Evidence(table, {}, random_rows=("none",)))
    assert finding.verdict == NOT_DECIDED and finding.effect.low > 0
    assert 'neither row clearly beats "none"' in finding.reason
    table = {**table, ("a", "task"): runs(0.9)}
    finding = judge_comparison(A_OVER_B, Evidence(table, {}, random_rows=("none",)))
    assert finding.verdict == REPRODUCED
    # A comparison with the random row itself is about just that.
    worse = judge_comparison(
        Comparison("task", "b", "none"), Evidence(table, {}, random_rows=("none",))
    )
    assert worse.verdict == NOT_REPRODUCED


@pytest.mark.parametrize("seeds", [2, 3, 4])
@pytest.mark.parametrize("spread", [0.001, 0.01, 0.05])
def test_interval_covers_the_truth_about_as_often_as_it_says(seeds, spread):
    covered = 0
    rng = np.random.default_rng(seeds)
    for trial in range(100):
        rates = rng.normal([0.75, 0.70], spread, size=(seeds, 2))
        made = [[], []]
        difficulty = rng.random(400)
        for p, pair in enumerate(rates):
            for model, rate in enumerate(pair):
                right = (difficulty < rate).astype(float)
                statistics = np.stack([right, np.ones(400)], axis=1)
                made[model].append(Run(p, 0, 100 * right.mean(), statistics))
        effect = paired_effect(*made, draws=400, seed=trial)
        covered += effect.low <= 5.0 <= effect.high
    assert covered >= 88  # of 100, where 95 are meant


def test_interval_of_seeds_alone_is_students():
    a, b = np.array([3.0, 5.0, 10.0]), np.array([2.0, 2.5, 3.0])
    effect = paired_effect(*([Run(p, 0, x) for p, x in enumerate(v)] for v in (a, b)))
    expected = stats.ttest_rel(a, b).confidence_interval(0.95)
    assert effect.mean == pytest.approx(3.5)
    assert effect.low == pytest.approx(expected.low, rel=0.1)
    assert effect.high == pytest.approx(expected.high, rel=0.1)


def test_measures_agree_with_their_definitions():
    rng = np.random.default_rng(3)
    x, y = rng.random(50), rng.random(50)
    sums = np.stack([np.ones(50), x, y, x * x, y * y, x * y], axis=1).sum(axis=0)
    assert MEASURES["pearson"](sums) == pytest.approx(100 * np.corrcoef(x, y)[0, 1])
    assert MEASURES["f1"](np.array([6.0, 2.0, 4.0])) == pytest.approx(100 * 12 / 18)
    tp, tn, fp, fn = 6.0, 8.0, 2.0, 4.0
    expected = (tp * tn - fp * fn) / np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    assert MEASURES["matthews"](np.array([tp, tn, fp, fn])) == pytest.approx(100 * expected)


def test_a_masked_model_on_its_plateau_says_nothing_about_left_to_right():
    table = {("a", "task"): runs(0.7), ("b", "task"): runs(0.8), ("c", "task"): runs(0.6)}
    made = Evidence(table, {}, plateau={"a": "held-out loss 5.9"}, left_to_right=frozenset({"b"}))
    finding = judge_comparison(A_OVER_B, made)
    assert finding.verdict == NOT_DECIDED
    assert finding.reason == "a is still on the masked-LM plateau (held-out loss 5.9)"
    # Two masked models can be compared: both are on it, or the task does not need more.
    assert judge_comparison(Comparison("task", "a", "c"), made).verdict == REPRODUCED


def test_unpaired_seeds_give_no_effect_and_constants_do():
    assert paired_effect([Run(1, 1, 3.0)], [Run(2, 1, 2.0)]) is None
    effect = paired_effect(runs(0.8), 50.0)
    assert effect.low > 25
    assert mean_and_deviation([1.0, 3.0]) == (2.0, pytest.approx(2**0.5))
    assert mean_and_deviation([4.0]) == (4.0, None)
