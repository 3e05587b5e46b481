"""Intervals and power, on data with known answers."""

import numpy as np
import pytest
from scipy import stats

from experiments.tables.judging.evidence import Evidence
from experiments.tables.judging.intervals import (
    Run,
    average,
    between_replicates,
    effect,
    from_examples,
    interval,
    mean_and_deviation,
)
from experiments.tables.judging.measures import MEASURES, influence
from experiments.tables.judging.power import detectable, per_unit, planned

A_MINUS_B = {"a": 1.0, "b": -1.0}


def scores(rng, trials, rows, seeds, restarts, examples, **deviations):
    """Return the module's model with means of 0: float64 [trials, rows, seeds, restarts,
    examples]."""
    sizes = {
        "seed": (seeds, 1, 1),
        "pretraining": (rows, seeds, 1, 1),
        "restart": (rows, seeds, restarts, 1),
        "shared example": (1, 1, examples),
        "example": (rows, 1, 1, examples),
        "residual": (rows, seeds, restarts, examples),
    }
    made = np.zeros((trials, rows, seeds, restarts, examples))
    for name, deviation in ({"seed": 1.0, "shared example": 1.0} | deviations).items():
        shape = sizes[name]
        made += deviation * rng.standard_normal((trials, *(1,) * (4 - len(shape)), *shape))
    return made


def column(made):
    """One trial as row -> runs."""
    values = made.mean(axis=-1)
    pairs = list(np.ndindex(values.shape[1:]))
    return {
        name: [Run(s, f, values[r, s, f], made[r, s, f] - values[r, s, f]) for s, f in pairs]
        for r, name in enumerate("abcdef"[: len(made)])
    }


def intervals(made):
    """(low, high), each [trials], of the first row minus the second."""
    by_seed = made.mean(axis=3)
    weight = np.zeros(made.shape[1])
    weight[:2] = 1, -1
    table = by_seed.mean(axis=-1)
    difference = by_seed[:, 0] - by_seed[:, 1]
    examples, degrees, _ = from_examples(difference - difference.mean(axis=-1, keepdims=True))
    between = between_replicates(weight, table)
    return interval(difference.mean(axis=(1, 2)), between, (examples, degrees))[:2]


SOURCES = {
    "pre-training": {"pretraining": 1.0},
    "restarts": {"pretraining": 0.3, "restart": 0.5},
    "examples": {"pretraining": 0.1, "example": 4.0},
    "interaction": {"pretraining": 0.2, "example": 1.0, "residual": 4.0},
    "interaction alone": {"residual": 4.0},
    "all": {"pretraining": 0.2, "restart": 0.2, "example": 2.0, "residual": 2.0},
}


@pytest.mark.parametrize("restarts", [1, 2])
@pytest.mark.parametrize("seeds", [2, 3, 4, 6])
def test_intervals_hold_the_truth_as_often_as_they_say(seeds, restarts):
    rng = np.random.default_rng([seeds, restarts])
    for name, deviations in SOURCES.items():
        low, high = intervals(scores(rng, 2500, 5, seeds, restarts, 60, **deviations))
        assert 0.93 <= np.mean((low <= 0) & (high >= 0)) <= (0.99 if seeds < 4 else 0.975), name


def test_runs_of_a_table_get_the_interval_that_was_simulated():
    rng = np.random.default_rng(1)
    made = scores(rng, 1, 4, 3, 2, 50, pretraining=0.5, restart=0.3, residual=1.0)
    found = effect(A_MINUS_B, column(made[0]), pool="abcd")
    low, high = intervals(made)
    assert (found.low, found.high) == (pytest.approx(low[0]), pytest.approx(high[0]))
    assert (found.pretrain_seeds, found.restarts, found.examples) == (3, 2, 50)
    assert found.pooled_rows == 4 and len(found.by_pretrain_seed) == 3
    assert sum(found.variance.values()) == pytest.approx(found.standard_error**2)


def test_pairs_of_seeds_alone_are_students():
    a, b = np.array([3.0, 5.0, 10.0]), np.array([2.0, 2.5, 3.0])
    made = {row: [Run(p, 0, x) for p, x in enumerate(xs)] for row, xs in (("a", a), ("b", b))}
    found = effect(A_MINUS_B, made)
    expected = stats.ttest_rel(a, b).confidence_interval(0.95)
    assert found.mean == pytest.approx(3.5)
    assert (found.low, found.high) == (pytest.approx(expected.low), pytest.approx(expected.high))
    assert found.degrees_of_freedom == pytest.approx(2)
    # A row alone, less a constant, is a one-sample test.
    expected = stats.ttest_1samp(a, 4.0).confidence_interval(0.95)
    alone = effect({"a": 1.0}, made, constant=4.0)
    assert alone.mean == pytest.approx(2.0)
    assert alone.high == pytest.approx(expected.high - 4.0)


def test_a_row_that_no_seed_changes_is_compared_with_each_seed():
    """The interval by its written formula is in test_fixed_rows.py."""
    rng = np.random.default_rng(3)
    made = column(scores(rng, 1, 3, 4, 1, 50, pretraining=0.5, example=1.0, residual=1.0)[0])
    rows = {**made, "rule": [Run(0, 1, 0.4, rng.standard_normal(50))]}
    found = Evidence({}, fixed=frozenset({"rule"})).effect({"a": -1.0, "rule": 1.0}, rows)
    less = 0.4 - np.array([run.value for run in made["a"]])
    expected = stats.ttest_1samp(less, 0.0).confidence_interval(0.95)
    assert found.others["paired t"] == pytest.approx((expected.low, expected.high))
    # Without the word that it is such a row the same rows share no seeds.
    assert Evidence({}).effect({"a": 0.5, "b": 0.5, "rule": -1.0}, rows) is None


def test_intervals_beside_a_rule_hold_the_truth_as_often_as_they_say():
    seeds, held, evidence = 4, [], Evidence({}, fixed=frozenset({"rule"}))
    rng = np.random.default_rng(4)
    for _ in range(300):
        shared, own, of_rule = rng.standard_normal((3, 60))
        noise = 0.3 * rng.standard_normal((seeds, 1)) + rng.standard_normal((seeds, 60))
        made = column((shared + own + noise)[None, :, None])
        values = shared + of_rule
        made["rule"] = [Run(0, 1, values.mean(), values - values.mean())]
        found = evidence.effect({"a": 1.0, "rule": -1.0}, made)
        held.append(found.low <= 0 <= found.high)
    assert 0.92 <= np.mean(held) <= 0.985


def test_pairs_of_examples_alone_are_students():
    rng = np.random.default_rng(2)
    x, y = rng.random(40), rng.random(40)
    made = {n: [Run(0, 0, v.mean(), v - v.mean())] for n, v in (("a", x), ("b", y))}
    found = effect(A_MINUS_B, made)
    expected = stats.ttest_rel(x, y).confidence_interval(0.95)
    assert (found.low, found.high) == (pytest.approx(expected.low), pytest.approx(expected.high))
    assert found.variance["examples"] == pytest.approx(found.standard_error**2)


def test_other_rows_lend_variance_but_do_not_hide_a_noisy_one():
    values = {"a": [0, 1, 0, 1], "b": [1, 0, 0, 1], "c": [5, 6, 6, 5], "d": [2, 3, 3, 2]}

    def effects(**changed):
        made = {
            r: [Run(s, 0, float(v)) for s, v in enumerate(x)] for r, x in (values | changed).items()
        }
        return effect(A_MINUS_B, made), effect(A_MINUS_B, made, pool="abcd")

    alone, lent = effects()
    assert (alone.degrees_of_freedom, lent.degrees_of_freedom) == (3, 6)
    assert lent.high - lent.low < alone.high - alone.low
    noisy, lent = effects(a=[-9, 9, 9, -9])
    assert lent.high - lent.low > 0.4 * (noisy.high - noisy.low)
    # A row on a plateau does not widen what is said of the others.
    quiet, beside = effects(d=[2, 300, 30, -200])
    assert beside.high - beside.low < 3 * (quiet.high - quiet.low)


@pytest.mark.parametrize(
    ("deviations", "apart", "least"),
    [
        ((1, 1, 1, 1, 1), 0, 0.94),
        ((1, 1, 10, 1, 1), 0, 0.94),  # a row that is not compared
        ((3, 1, 1, 1, 1), 0, 0.87),
        ((3, 3, 1, 1, 1), 0, 0.88),
        ((1, 1, 1, 1, 1), 6, 0.81),  # three in ten seeds of the first row fall 6 deviations
    ],
)
@pytest.mark.parametrize("seeds", [3, 5, 6])
def test_coverage_with_unequal_rows_and_two_kinds_of_outcome(deviations, apart, least, seeds):
    rng = np.random.default_rng(seeds)
    table = rng.standard_normal((8000, 5, seeds)) * np.array(deviations)[:, None]
    table += rng.standard_normal((8000, 1, seeds))
    table[:, 0] += apart * (0.3 - (rng.random((8000, seeds)) < 0.3))
    weight = np.array([1.0, -1.0, 0, 0, 0])
    between = between_replicates(weight, table)
    low, high, *_ = interval(table.mean(-1) @ weight, between, (0.0, 1e9))
    assert np.mean((low <= 0) & (high >= 0)) > least


def test_sources_of_the_variance_are_told_apart():
    rng = np.random.default_rng(3)
    for source, deviation in (("pretraining", 2.0), ("restart", 2.0), ("residual", 9.0)):
        made = scores(rng, 1, 5, 60, 3, 40, **{source: deviation})[0]
        found = effect(A_MINUS_B, column(made), pool="abcde")
        units = per_unit(found.variance, 60, 3, 40)
        assert units[source] == pytest.approx(2 * deviation**2, rel=0.4)
        assert found.variance[source] > 0.8 * found.standard_error**2
    # One pre-training: restarts are the replicates.
    made = scores(rng, 1, 5, 1, 9, 40, restart=2.0)[0]
    found = effect(A_MINUS_B, column(made), pool="abcde")
    assert found.variance["pretraining"] == 0 and found.variance["restart"] > 0.2


def test_seeds_must_be_shared_and_lent_rows_complete():
    made = {"a": [Run(1, 1, 3.0), Run(2, 1, 4.0)], "b": [Run(1, 1, 2.0), Run(2, 1, 4.0)]}
    assert effect(A_MINUS_B, {"a": made["a"][:1], "b": made["b"][1:]}) is None
    lent = effect(A_MINUS_B, made | {"c": [Run(1, 1, 0.0)]}, pool="abc")
    assert lent == effect(A_MINUS_B, made)
    single = effect(A_MINUS_B, {row: runs[:1] for row, runs in made.items()})
    assert (single.mean, single.low, single.standard_error) == (1.0, None, None)
    same = effect(A_MINUS_B, {"a": made["a"], "b": made["a"]})
    assert (same.low, same.mean, same.high) == (0, 0, 0)


def test_averages_of_columns_keep_what_seeds_and_examples_share():
    rng = np.random.default_rng(4)
    one = column(scores(rng, 1, 3, 4, 2, 30, pretraining=1.0, example=3.0)[0])
    same = effect(A_MINUS_B, average([one, one], ["x", "x"]), pool="abc")
    expected = effect(A_MINUS_B, one, pool="abc")
    assert (same.low, same.high) == (pytest.approx(expected.low), pytest.approx(expected.high))
    # Other examples, same seeds: the part of examples halves.
    apart = effect(A_MINUS_B, average([one, one], ["x", "y"]), pool="abc")
    assert apart.variance["examples"] == pytest.approx(expected.variance["examples"] / 2, rel=0.1)
    assert sum(apart.by_pretrain_seed) == pytest.approx(sum(expected.by_pretrain_seed))


@pytest.mark.parametrize(
    "measure, width", [("mean", 2), ("f1", 3), ("matthews", 4), ("pearson", 6)]
)
def test_influences_give_the_variance_over_examples(measure, width):
    rng = np.random.default_rng(5)

    def draw(n):
        x, y = rng.random(n) < 0.4, rng.random(n)
        truth = x ^ (rng.random(n) < 0.2)
        tables = {
            "mean": [y, np.ones(n)],
            "f1": [x & truth, x & ~truth, ~x & truth],
            "matthews": [x & truth, ~x & ~truth, x & ~truth, ~x & truth],
            "pearson": [np.ones(n), x, y + x, x * x, (y + x) ** 2, x * (y + x)],
        }
        return np.stack(tables[measure], axis=1).astype(float)

    drawn = [MEASURES[measure](draw(400).sum(axis=0)) for _ in range(400)]
    table = draw(400)
    assert table.shape == (400, width)
    values = influence(measure, table)
    assert values.mean() == pytest.approx(0, abs=1e-9)
    assert np.sqrt(values.var() / 400) == pytest.approx(np.std(drawn), rel=0.15)
    if measure == "mean":
        assert values == pytest.approx(100 * (table[:, 0] - table[:, 0].mean()))


def test_measures_agree_with_their_definitions():
    rng = np.random.default_rng(3)
    x, y = rng.random(50), rng.random(50)
    sums = np.stack([np.ones(50), x, y, x * x, y * y, x * y], axis=1).sum(axis=0)
    assert MEASURES["pearson"](sums) == pytest.approx(100 * np.corrcoef(x, y)[0, 1])
    assert MEASURES["f1"](np.array([6.0, 2.0, 4.0])) == pytest.approx(100 * 12 / 18)
    assert MEASURES["nats"](np.array([6.0, 2.0])) == 3.0
    tp, tn, fp, fn = 6.0, 8.0, 2.0, 4.0
    expected = (tp * tn - fp * fn) / np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    assert MEASURES["matthews"](np.array([tp, tn, fp, fn])) == pytest.approx(100 * expected)
    assert mean_and_deviation([1.0, 3.0]) == (2.0, pytest.approx(2**0.5))
    assert mean_and_deviation([4.0]) == (4.0, None)


@pytest.mark.parametrize("degrees", [2, 8, 1e9])
def test_detectable_effects_are_found_four_times_of_five(degrees):
    shift = detectable(0.5, degrees) / 0.5
    rng = np.random.default_rng(6)
    spread = np.sqrt(rng.chisquare(min(degrees, 1e6), 20_000) / min(degrees, 1e6))
    found = (rng.standard_normal(20_000) + shift) / spread > stats.t.ppf(0.975, degrees)
    assert found.mean() == pytest.approx(0.8, abs=0.01)


def test_plans_agree_with_what_comes_of_them():
    rng = np.random.default_rng(4)
    for rows in (2, 3, 5):
        found = effect(A_MINUS_B, column(scores(rng, 1, rows, 4, 2, 40)[0]), pool="abcde"[:rows])
        made = planned(per_unit(found.variance, 4, 2, 40), 4, 2, 40, rows=rows)
        for name in ("standard_error", "degrees_of_freedom"):
            assert made[name] == pytest.approx(getattr(found, name))
    units = {"pretraining": 0.5, "restart": 0.8, "examples": 900.0, "residual": 400.0}
    made = planned(units, pretrain_seeds=4, restarts=2, examples=1000, rows=5)
    expected = 0.5 / 4 + 0.8 / 8 + 900 / 1000 + 400 / 8000
    assert made["standard_error"] ** 2 == pytest.approx(expected)
    parts = {"pretraining": 0.125, "restart": 0.1, "examples": 0.9, "residual": 0.05}
    assert per_unit(parts, 4, 2, 1000) == pytest.approx(units)
    more = planned(units, pretrain_seeds=8, restarts=2, examples=1000, rows=5)
    assert more["detectable"] < made["detectable"]
    few, many = planned(units, 2, 1, 1000, rows=2), planned(units, 2, 1, 10**6, rows=5)
    assert few["detectable"] > 3 * many["standard_error"]


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_few_seeds_do_not_hide_the_noise_of_their_examples(seeds):
    rng = np.random.default_rng(seeds)
    held = 0
    for made in scores(rng, 400, 2, seeds, 1, 60, residual=4.0):
        found = effect(A_MINUS_B, column(made), pool="ab")
        assert sum(found.variance.values()) == pytest.approx(found.standard_error**2)
        assert min(found.variance.values()) >= 0
        held += found.low <= 0 <= found.high
    assert held / 400 >= 0.93  # two seeds as alike as chance made them: .86 without the floor


def test_other_methods_are_students_and_a_bootstrap_of_seeds_and_examples():
    rng = np.random.default_rng(3)
    a, b = (70 + 10 * rng.standard_normal((4, 300)) + rng.standard_normal((4, 1)) for _ in "ab")
    made = {
        row: [Run(p, 0, x.mean(), x - x.mean()) for p, x in enumerate(values)]
        for row, values in {"a": a, "b": b}.items()
    }
    others = effect(A_MINUS_B, made).others
    by_seed = a.mean(axis=1) - b.mean(axis=1)
    expected = stats.ttest_1samp(by_seed, 0).confidence_interval(0.95)
    assert others["paired t"] == pytest.approx((expected.low, expected.high))
    drawn = [
        (a - b)[np.ix_(rng.integers(0, 4, 4), rng.integers(0, 300, 300))].mean()
        for _ in range(4000)
    ]
    assert others["bootstrap"] == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.12)
    unknown = {row: [Run(r.pretrain_seed, 0, r.value) for r in runs] for row, runs in made.items()}
    assert list(effect(A_MINUS_B, unknown).others) == ["paired t"]
    assert effect(A_MINUS_B, {row: runs[:1] for row, runs in made.items()}).others == {}
