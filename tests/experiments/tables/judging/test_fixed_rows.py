"""Rows that no seed changes, and runs without a score: by hand-written formulas, never a traceback
or a sentence that is not so."""

import dataclasses
import re

import numpy as np
import pytest
from scipy import stats

from experiments.tables.judging.evidence import Evidence
from experiments.tables.judging.intervals import Run
from experiments.tables.judging.verdicts import (
    NOT_DECIDED,
    NOT_REPRODUCED,
    REPRODUCED,
    judge,
    judge_comparison,
)
from experiments.tables.planning.claims import AT_MOST, SHARE, Claim, Comparison, each
from experiments.tables.reporting import forest_plots

SEEDS, EXAMPLES = (11, 12, 13), 40
A_OVER_RULE = Comparison("task", "a", "rule")


def row(*values, seeds=SEEDS, examples=EXAMPLES):
    """Return a run a seed; without `examples` their scores are unknown."""
    made = []
    for seed, value in zip(seeds, values, strict=False):
        own = np.random.default_rng([seed, int(10 * value)]).standard_normal(examples or 2)
        made.append(Run(seed, 1, float(value), 20 * (own - own.mean()) if examples else None))
    return made


def rule(value, seed=1, **more):
    return [dataclasses.replace(run, finetune_seed=seed) for run in row(value, seeds=(0,), **more)]


def evidence(columns=("task",), fixed=("rule", "other rule"), **rows):
    fields = {k: rows.pop(k) for k in list(rows) if k in Evidence.__dataclass_fields__}
    rows = {name.replace("_", " "): made for name, made in rows.items()}
    table = {(name, column): made for name, made in rows.items() for column in columns}
    return Evidence(table, fixed=frozenset(fixed), **fields)


@pytest.mark.parametrize("noisy_seeds", [False, True])
def test_an_interval_beside_a_rule_is_that_of_the_written_formula(noisy_seeds):
    spread = 5 if noisy_seeds else 1
    rows = {"a": row(70, 70 + 3 * spread, 71), "b": row(60, 62, 61), "c": row(50, 50, 50 + spread)}
    table = evidence(**rows, rule=rule(64))
    beside = table.runs["rule", "task"][0]
    effects = np.array([run.value - beside.value for run in rows["a"]])
    scores = np.array([run.influence - beside.influence for run in rows["a"]])
    s, e = scores.shape
    # The variance of seeds: the row's own, with s - 1 degrees, and the column's usual one, with 3.
    variances = sorted(np.var([run.value for run in made], ddof=1) for made in rows.values())
    usual = variances[1] * (s - 1) / stats.chi2.ppf(0.5, s - 1)
    seeds = (3 * usual + (s - 1) * effects.var(ddof=1)) / (3 + s - 1) / s
    centred = scores - scores.mean(axis=0)
    both = (centred**2).sum() / ((s - 1) * (e - 1)) / (s * e)
    examples = max(0.0, scores.mean(axis=0).var(ddof=1) / e - both)
    assert bool(seeds > both) is noisy_seeds
    parts = [(seeds, 5) if noisy_seeds else (both, e - 1), (examples, e - 1)]
    error = np.sqrt(sum(variance for variance, _ in parts))
    degrees = error**4 / sum(variance**2 / degrees for variance, degrees in parts)
    half = stats.t.ppf(0.975, degrees) * error
    for sign, comparison in ((1, A_OVER_RULE), (-1, Comparison("task", "rule", "a"))):
        found = judge_comparison(comparison, table).effect
        assert found.mean == pytest.approx(sign * effects.mean())
        assert (found.low, found.high) == pytest.approx((found.mean - half, found.mean + half))
        assert found.by_pretrain_seed == pytest.approx(tuple(sign * effects))
        assert (found.pooled_rows, found.examples) == (3, e)


def test_two_rules_are_judged_by_their_examples():
    one, other = rule(70), rule(55)
    pair = Comparison("task", "rule", "other rule")
    found = judge(Claim("c", "", "", (pair,)), evidence(rule=one, other_rule=other))
    expected = stats.ttest_rel(70 + one[0].influence, 55 + other[0].influence)
    low, high = expected.confidence_interval(0.95)
    effect = found.findings[0].effect
    assert (effect.low, effect.high) == pytest.approx((low, high)) and low > 0
    assert (found.verdict, found.footnotes) == (REPRODUCED, ())
    mean = found.mean_effect
    assert (mean.low, mean.high) == (effect.low, effect.high)
    unknown = evidence(rule=rule(70, examples=0), other_rule=rule(55, examples=0))
    finding = judge_comparison(pair, unknown)
    assert (finding.verdict, finding.effect.low) == (NOT_DECIDED, None)
    assert finding.reason.startswith("one run each")
    # One run of a row that seeds change says nothing of its other runs.
    single = judge_comparison(A_OVER_RULE, evidence(a=row(70), rule=one))
    assert (single.verdict, single.effect.low) == (NOT_DECIDED, None)
    assert "one pre-training a row" in single.footnotes[0]


@pytest.mark.parametrize(
    "better, worse, whole, share",
    [
        ("a", "rule", "b", 100 * 10 / 30),
        ("rule", "a", "b", -100 * 10 / 20),
        ("a", "b", "rule", 100 * 20 / 30),
        ("rule", "other rule", "b", 100 * 10 / 40),
        ("rule", "same", "b", 0),  # nothing is left of b
        ("rule", "a", "other rule", None),  # which is not ahead
    ],
)
def test_shares_of_a_way_beside_rules(better, worse, whole, share):
    rows = {"a": row(69, 70, 71), "b": row(88, 90, 92), "same": row(59, 60, 61)}
    if whole == "rule":
        rows |= {"rule": rule(100), "a": row(89, 90, 91), "b": row(69, 70, 71)}
    table = evidence(**({"rule": rule(60), "other_rule": rule(50)} | rows))
    found = judge_comparison(Comparison("task", better, worse, SHARE, 99.0, whole), table)
    if share is None:
        assert found.reason == f"{whole} is not clearly ahead of {worse}"
    else:
        assert found.effect.mean == pytest.approx(share)
        assert found.verdict == NOT_REPRODUCED and found.effect.low < share < found.effect.high


def test_a_way_between_rows_without_examples_or_shared_seeds_decides_nothing():
    unknown = {"rule": rule(80, examples=0), "other_rule": rule(50, examples=0)}
    asked = Comparison("task", "a", "other rule", SHARE, 50.0, whole="rule")
    found = judge_comparison(asked, evidence(a=row(69, 70, 71), **unknown))
    assert found.reason == "rule is not clearly ahead of other rule"
    apart = {"a": row(65, 66, seeds=(1, 2)), "b": row(60, 61, 60, 61, seeds=(1, 2, 3, 4))}
    asked = Comparison("task", "a", "b", SHARE, 50.0, whole="c")
    found = judge_comparison(asked, evidence(**apart, c=row(90, 91, seeds=(3, 4))))
    assert (found.verdict, found.reason) == (NOT_DECIDED, "the rows share no seeds")
    level = evidence(**apart, c=row(60, 61, 60, 61, seeds=(1, 2, 3, 4)))
    assert judge_comparison(asked, level).reason == "c is not clearly ahead of b"


def test_losses_beside_a_rule_count_the_other_way():
    rows = {"a": row(3.0, 3.1, 3.3, examples=0), "rule": rule(4.0, examples=0)}
    lower = {"lower_is_better": frozenset({"task"}), "in_nats": frozenset({"task"})}
    finding = judge_comparison(A_OVER_RULE, evidence(**rows, **lower))
    assert finding.effect.by_pretrain_seed == pytest.approx((1.0, 0.9, 0.7))
    assert finding.verdict == REPRODUCED and finding.effect.examples == 0
    asked = Comparison("task", "a", "rule", SHARE, 10.0, whole="best")
    best = row(2.0, 2.0, 2.0, examples=0)
    share = judge_comparison(asked, evidence(**rows, best=best, **lower))
    assert share.effect.mean == pytest.approx(100 * (4 - 9.4 / 3) / 2)
    assert share.effect.by_pretrain_seed == pytest.approx((50, 45, 35))


def test_means_over_columns_beside_a_rule():
    asked = each(("x", "y"), "a", "rule")
    table = evidence(("x", "y"), a=row(70, 72, 71), rule=rule(60))
    found = judge(Claim("c", "", "", asked), table)
    assert found.mean_effect.mean == pytest.approx(11) and found.verdict == REPRODUCED
    # The rule's runs of the two columns do not belong together: there is no mean.
    other = dataclasses.replace(table, runs={**table.runs, ("rule", "y"): rule(60, seed=2)})
    found = judge(Claim("c", "", "", asked, left_out=("z",)), other)
    assert found.mean_effect is None and found.extent == (2, 3, "tasks")
    restarts = [Run(11, restart, 70.0 + restart) for restart in (1, 2, 3)]
    once = {**table.runs, ("a", "y"): restarts, ("a", "x"): restarts[:1]}
    found = judge(Claim("c", "", "", asked), dataclasses.replace(table, runs=once))
    assert found.mean_effect is None
    # Rows of other seeds: what they share decides.
    uneven = evidence(a=row(70, 72, 71), b=row(60, 61), rule=rule(50))
    both = (A_OVER_RULE, Comparison("task", "b", "rule"))
    mean = judge(Claim("c", "", "", both), uneven).mean_effect
    assert mean.by_pretrain_seed == pytest.approx((15, 16.5)) and mean.pretrain_seeds == 2


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_run_whose_score_is_no_number_is_named_and_disturbs_no_other_row(bad):
    rows = {"a": row(70, 72, 71), "b": row(60, 61, 60), "c": row(50, 52, 51), "rule": rule(55)}
    whole = judge_comparison(Comparison("task", "a", "b"), evidence(**rows))
    broken = row(50, 52, 51)
    broken[1] = dataclasses.replace(broken[1], value=bad)
    for name, made in (("c", broken), ("rule", rule(55))):
        made = [dataclasses.replace(run, value=bad) for run in made] if name == "rule" else made
        table = evidence(**(rows | {name: made}))
        found = judge_comparison(Comparison("task", "a", name), table)
        why = f"no result for {name}: the score of a run is not a finite number"
        assert (found.verdict, found.reason, found.effect) == (NOT_DECIDED, why, None)
    others = judge_comparison(Comparison("task", "a", "b"), evidence(**(rows | {"c": broken})))
    without = judge_comparison(
        Comparison("task", "a", "b"), evidence(**{n: r for n, r in rows.items() if n != "c"})
    )
    assert others == without and others.effect.pooled_rows == whole.effect.pooled_rows - 1
    # Nothing is told of models by random weights without a score.
    random = evidence(**(rows | {"c": broken}), random_rows=("c",), baselines={"task": 30.0})
    assert judge_comparison(Comparison("task", "a", "b"), random).verdict == REPRODUCED


def test_at_most_beside_a_rule():
    near = dataclasses.replace(A_OVER_RULE, kind=AT_MOST, margin=20.0)
    table = evidence(a=row(70, 70.1, 70.2), rule=rule(60))
    assert judge_comparison(near, table).verdict == REPRODUCED
    assert judge_comparison(dataclasses.replace(near, margin=1.0), table).verdict == NOT_REPRODUCED


def test_drawings_have_a_circle_for_each_seed_on_the_side_of_the_effect():
    """Beside a rule too, and where a lower score is better."""
    lower = {"lower_is_better": frozenset({"task"})}
    rows = {"a": row(9, 10, 14, examples=0), "rule": rule(40, examples=0)}

    def circles(comparison, **fields):
        table = evidence(**rows, **fields)
        found = judge_comparison(comparison, table)
        drawn = forest_plots._forest([found])
        return re.findall(r'<use [^>]*x="([0-9.]+)"', drawn), found

    up, found = circles(A_OVER_RULE, **lower)
    assert found.effect.by_pretrain_seed == (31, 30, 26) and found.effect.mean == 29
    down, _ = circles(Comparison("task", "rule", "a"))
    assert up == down
