"""Verdicts on claims: what decides them, what does not, and what is said beside them."""

import dataclasses
import math

import numpy as np
import pytest

from experiments.tables.judging.intervals import Run
from experiments.tables.judging.judgement import _standing
from experiments.tables.judging.verdicts import (
    NOT_DECIDED,
    NOT_REPRODUCED,
    NOT_TESTED,
    PARTLY,
    REPRODUCED,
    Evidence,
    above_baseline,
    judge,
    judge_comparison,
)
from experiments.tables.planning.claims import AT_MOST, SHARE, Claim, Comparison, each

A_OVER_B = Comparison("task", "a", "b")


def runs(rate, pretrain_seeds=2, restarts=2, examples=2000, spread=0.0):
    """Return runs that answer a share `rate` of the examples rightly, the easy ones first."""
    difficulty = np.random.default_rng(7).random(examples)
    made = []
    for p in range(pretrain_seeds):
        for s in range(restarts):
            noise = np.random.default_rng([p, s, int(rate * 1e6)])
            own = rate + spread * noise.standard_normal()
            right = 100.0 * (difficulty + 0.05 * noise.standard_normal(examples) < own)
            made.append(Run(p, s, right.mean(), right - right.mean()))
    return made


def values(*numbers):
    """Return runs of one score a pre-training seed, without examples."""
    return [Run(seed, 0, number) for seed, number in enumerate(numbers)]


def evidence(columns=("task",), **rows):
    fields = {k: rows.pop(k) for k in list(rows) if k in Evidence.__dataclass_fields__}
    return Evidence({(row, c): made for row, made in rows.items() for c in columns}, **fields)


def verdict(comparison, **rows):
    return judge_comparison(comparison, evidence(**rows))


def test_clear_differences_are_decided_both_ways():
    up = verdict(A_OVER_B, a=runs(0.80), b=runs(0.70))
    assert up.verdict == REPRODUCED
    assert up.effect.low < up.effect.mean < up.effect.high
    assert up.effect.mean == pytest.approx(10, abs=1.5)
    assert up.p < 0.05 and up.refutation == 1
    down = verdict(A_OVER_B, a=runs(0.70), b=runs(0.80))
    assert down.verdict == NOT_REPRODUCED
    assert down.refutation < 0.05


def test_what_the_interval_holds_is_not_decided():
    finding = verdict(A_OVER_B, a=runs(0.71, examples=80), b=runs(0.70, examples=80))
    assert finding.verdict == NOT_DECIDED
    assert finding.reason == "the interval holds 0"
    assert finding.p > 0.05 and finding.refutation > 0.05
    # The effect that it would have shown is wider than the interval.
    assert finding.detectable > finding.effect.high - finding.effect.mean


def test_a_gain_too_small_for_the_paper_is_not_reproduced():
    same = runs(0.7, examples=20000)
    finding = verdict(A_OVER_B, a=same, b=same)
    assert finding.verdict == NOT_REPRODUCED and "below 0.5" in finding.reason
    rows = {"a": values(70.1, 70.0, 70.2), "b": values(70.0, 70.1, 69.9)}
    assert verdict(A_OVER_B, **rows).verdict == NOT_DECIDED
    rows = {"a": values(70.01, 70.0, 70.02), "b": values(70.0, 70.01, 69.99)}
    assert verdict(A_OVER_B, **rows).verdict == NOT_REPRODUCED
    # Where the paper's own gain is a tenth of a point, a twentieth is not too small.
    paper = {("a", "task"): 80.1, ("b", "task"): 80.0}
    finding = verdict(A_OVER_B, paper=paper, **rows)
    assert finding.paper_effect == pytest.approx(0.1)
    assert finding.verdict == NOT_DECIDED
    # It may be negligible only where the claim sets no bound.
    over_two = Comparison("task", "a", "b", margin=2.0)
    rows["a"] = values(72.01, 72.0, 72.02)
    assert verdict(over_two, **rows).verdict == NOT_DECIDED  # the interval holds 2


def test_the_trivial_baseline_is_asked_of_the_row_that_is_ahead():
    # BERT at 80 against a random model at chance is the clearest case of all.
    table = {"a": runs(0.80), "b": runs(0.50), "baselines": {"task": 50.5}}
    assert verdict(A_OVER_B, **table).verdict == REPRODUCED
    assert verdict(Comparison("task", "b", "a"), **table).verdict == NOT_REPRODUCED
    # Two models that both fall short of the majority class decide nothing.
    finding = verdict(A_OVER_B, a=runs(0.60), b=runs(0.50), baselines={"task": 70.0})
    assert finding.verdict == NOT_DECIDED
    assert finding.reason.startswith("not even a beats the trivial baseline")
    near = dict(a=runs(0.70), b=runs(0.60), baselines={"task": runs(0.70)[0].value})
    assert verdict(A_OVER_B, **near).verdict == NOT_DECIDED
    none = {"none": runs(0.4), "random_rows": ("none",)}
    assert verdict(A_OVER_B, **near, **none).verdict == REPRODUCED


@pytest.mark.parametrize("random, learnt", [(0.40, True), (0.60, False)])
def test_below_a_strong_baseline_a_row_has_learnt_what_random_weights_have_not(random, learnt):
    table = {"a": runs(0.60), "b": runs(0.50), "random": runs(random)}
    finding = verdict(A_OVER_B, baselines={"task": 70.0}, random_rows=("random",), **table)
    assert finding.verdict == (REPRODUCED if learnt else NOT_TESTED)
    assert (finding.reason == "neither row is shown to beat random") is not learnt


def test_rows_are_alike_only_where_they_have_learnt_something():
    # Both say the majority class, which is 70 of 100 examples.
    majority = runs(0.7, examples=100)
    table = {"a": majority, "b": majority, "none": runs(0.4), "random_rows": ("none",)}
    finding = verdict(A_OVER_B, baselines={"task": majority[0].value}, **table)
    assert finding.verdict == NOT_DECIDED and finding.reason.startswith("the rows are alike")
    near = Comparison("task", "a", "b", AT_MOST, margin=1.0)
    assert verdict(near, baselines={"task": 70.0}, **table).verdict == NOT_DECIDED
    assert verdict(near, baselines={"task": 30.0}, **table).verdict == REPRODUCED


def test_above_a_baseline_or_not_only_where_an_interval_says_so():
    table = evidence(a=runs(0.80), b=runs(0.70, examples=80), baselines={"task": 70.0})
    assert above_baseline("a", "task", table) is True
    assert above_baseline("b", "task", table) is None
    low = evidence(a=runs(0.60), b=runs(0.5), baselines={"task": 70.0})
    assert above_baseline("a", "task", low) is False
    assert above_baseline("a", "task", evidence(a=runs(0.8))) is None
    losses = evidence(a=values(4.0, 4.1, 4.05), baselines={"task": 7.0}, lower_is_better={"task"})
    assert above_baseline("a", "task", losses) is True


def test_pretrainings_that_disagree_or_one_without_examples_decide_nothing():
    worse = [*runs(0.6, 1), *(Run(1, r.finetune_seed, r.value, r.influence) for r in runs(0.82, 1))]
    finding = verdict(A_OVER_B, a=runs(0.8), b=worse)
    assert finding.effect.by_pretrain_seed[0] > 15 > 0 > finding.effect.by_pretrain_seed[1]
    assert finding.verdict == NOT_DECIDED
    finding = verdict(A_OVER_B, a=[Run(1, 1, 90.0)], b=[Run(1, 1, 60.0)])
    assert (finding.effect.mean, finding.effect.low) == (30.0, None)
    assert finding.verdict == NOT_DECIDED and "one run each" in finding.reason


def test_missing_rows_are_named_with_their_reason():
    finding = verdict(A_OVER_B, a=runs(0.8), holes={("b", "task"): "the loss became NaN"})
    assert finding.verdict == NOT_DECIDED
    assert finding.reason == "no result for b: the loss became NaN"
    finding = verdict(A_OVER_B, a=[Run(1, 1, 3.0)], b=[Run(2, 1, 3.0)])
    assert finding.reason == "the rows share no seeds"


def test_at_most():
    near = Comparison("task", "b", "a", AT_MOST, margin=3.0)
    assert verdict(near, a=runs(0.80, 4), b=runs(0.805, 4)).verdict == REPRODUCED
    assert verdict(near, a=runs(0.80, 4), b=runs(0.90, 4)).verdict == NOT_REPRODUCED
    small = verdict(near, a=runs(0.80, examples=60), b=runs(0.82, examples=60))
    assert small.verdict == NOT_DECIDED


def test_losses_count_the_other_way_and_perplexities_in_nats():
    a, b = [4.0, 4.01, 4.02], [5.0, 4.99, 4.98]
    lower = {"lower_is_better": frozenset({"task"})}
    finding = verdict(A_OVER_B, a=values(*a), b=values(*b), in_nats=frozenset({"task"}), **lower)
    assert finding.verdict == REPRODUCED and finding.unit == "nats"
    assert finding.effect.mean == pytest.approx(0.98)
    assert "about seeds" in finding.footnotes[0]
    perplexities = evidence(
        a=values(*map(math.exp, a)),
        b=values(*map(math.exp, b)),
        in_logs=frozenset({"task"}),
        baselines={"task": math.exp(7)},
        paper={("a", "task"): 4.0, ("b", "task"): 5.0},
        **lower,
    )
    same = judge_comparison(A_OVER_B, perplexities)
    assert (same.effect.low, same.effect.high, same.unit) == (
        pytest.approx(finding.effect.low), pytest.approx(finding.effect.high), "nats"
    )  # fmt: skip
    assert same.paper_effect == pytest.approx(math.log(5 / 4))
    shown = _standing("a", "task", perplexities).interval
    assert shown["low"] < math.exp(4.01) < shown["high"]
    assert shown["effect"] == pytest.approx(math.exp(4.01))


def test_a_claim_needs_all_of_its_comparisons():
    table = {("a", "x"): runs(0.8), ("b", "x"): runs(0.7)}
    table |= {("a", "y"): runs(0.71, examples=80), ("b", "y"): runs(0.70, examples=80)}
    table |= {("a", "z"): runs(0.7), ("b", "z"): runs(0.8)}

    def on(*columns):
        claim = Claim("c", "a is better", "5.1", each(columns, "a", "b"))
        return judge(claim, Evidence(table))

    assert on("x").verdict == REPRODUCED
    assert on("x", "y").verdict == NOT_DECIDED
    assert on("x", "y", "z").verdict == NOT_REPRODUCED
    assert on("x", "z").mean_effect.mean == pytest.approx(0, abs=1.5)
    assert on("x", "y").mean_effect.pretrain_seeds == 2


def test_one_refuted_comparison_of_many_must_pass_holms_correction():
    rng = np.random.default_rng(0)
    good = {f"c{i}": rng.normal(2.0, 0.1, 4) for i in range(5)}
    bad = np.array([-1.5, -0.5, -1.3, -0.1])  # p = .06 with three degrees of freedom
    bad -= 0.15

    def judged(columns):
        table = {("b", name): values(0, 0, 0, 0) for name in columns}
        table |= {("a", name): values(*numbers) for name, numbers in columns.items()}
        return judge(Claim("c", "", "", each(tuple(columns), "a", "b")), Evidence(table))

    alone = judged({"bad": bad})
    assert alone.verdict == NOT_REPRODUCED
    assert alone.findings[0].holm == alone.findings[0].refutation < 0.05
    among = judged({"bad": bad, **good})
    assert among.findings[0].verdict == NOT_REPRODUCED
    assert among.findings[0].holm == pytest.approx(6 * among.findings[0].refutation)
    assert among.verdict == NOT_DECIDED
    assert max(f.holm for f in among.findings) == 1


def test_mean_effect_needs_the_same_rows_and_units_in_all_columns():
    table = evidence(("x", "y"), a=runs(0.8), b=runs(0.7), in_nats=frozenset({"y"}))
    assert judge(Claim("c", "", "", each(("x", "y"), "a", "b")), table).mean_effect is None
    mixed = (Comparison("x", "a", "b"), Comparison("x", "b", "a"), Comparison("z", "a", "b"))
    assert judge(Claim("c", "", "", mixed), table).mean_effect is None
    # From row to row: the mean is the first and the last row's difference, shared out.
    table = evidence(a=runs(0.9), b=runs(0.7), c=runs(0.6))
    steps = (Comparison("task", "a", "b"), Comparison("task", "b", "c"))
    found = judge(Claim("c", "", "", steps), table)
    expected = sum(f.effect.mean for f in found.findings) / 2
    assert found.mean_effect.mean == pytest.approx(expected)


def test_share_of_the_way():
    rng = np.random.default_rng(1)
    low, high = 60 + rng.normal(0, 0.1, 5), 70 + rng.normal(0, 0.1, 5)
    near = low + 0.94 * (high - low)
    table = {"worst": values(*low), "best": values(*high), "near": values(*near)}

    def share(margin, **rows):
        comparison = Comparison("task", "near", "worst", SHARE, margin, whole="best")
        paper = {("near", "task"): 96.1, ("best", "task"): 96.4, ("worst", "task"): 91.0}
        return verdict(comparison, paper=paper, **(table | rows))

    finding = share(80.0)
    assert finding.effect.mean == pytest.approx(94, abs=0.5) and finding.unit == "percent"
    assert finding.verdict == REPRODUCED
    assert finding.paper_effect == pytest.approx(94.4, abs=0.1)
    assert share(99.0).verdict == NOT_REPRODUCED
    noisy = share(80.0, near=values(66, 71, 62, 72, 68))
    assert noisy.verdict == NOT_DECIDED
    no_way = share(80.0, best=values(*(low + rng.normal(0, 0.5, 5))))
    assert no_way.verdict == NOT_DECIDED and "not clearly ahead" in no_way.reason


def test_shares_hold_the_truth_as_often_as_they_say():
    rng = np.random.default_rng(2)
    comparison = Comparison("task", "near", "worst", SHARE, 80.0, whole="best")
    covered = 0
    for _ in range(200):
        means = {"near": 69.4, "worst": 60.0, "best": 70.0}
        table = {row: values(*(mean + rng.normal(0, 0.5, 4))) for row, mean in means.items()}
        found = verdict(comparison, **table).effect
        covered += found.low <= 94 <= found.high
    assert 0.91 <= covered / 200 <= 0.985


def test_what_a_reader_must_know_is_a_footnote():
    several = evidence(a=runs(0.8), b=runs(0.7), none=runs(0.6), random_rows=("none",))
    assert judge(Claim("c", "", "", (A_OVER_B,)), several).footnotes == ()
    part = judge(Claim("c", "", "", (A_OVER_B,), ("MNLI-m", "MRPC")), several)
    assert part.footnotes == ("not asked here: MNLI-m, MRPC",)
    single = evidence(a=runs(0.8, 1), b=runs(0.7, 1))
    assert judge(Claim("c", "", "", (A_OVER_B,)), single).footnotes == (
        "one pre-training a row: the spread between pre-trainings is in no interval",
    )


def test_models_that_have_learnt_nothing_test_nothing():
    table = {"a": runs(0.8), "b": runs(0.7), "none": runs(0.6), "random_rows": ("none",)}
    stuck = verdict(A_OVER_B, plateau={"b": "held-out loss 5.9"}, **table)
    assert stuck.verdict == NOT_TESTED and "plateau (held-out loss 5.9)" in stuck.reason
    alike = verdict(A_OVER_B, **(table | {"none": runs(0.9)}))
    assert alike.verdict == NOT_TESTED and alike.reason == "neither row is shown to beat none"
    against = verdict(Comparison("task", "a", "none"), **table)
    assert against.verdict == REPRODUCED
    # A claim is what its tested comparisons say, and open where there is none.
    both = {("a", "x"): runs(0.8), ("b", "x"): runs(0.7), ("c", "x"): runs(0.6)}
    claim = Claim("c", "", "", (Comparison("x", "a", "b"), Comparison("x", "b", "c")))
    assert judge(claim, Evidence(both, plateau={"c": ""})).verdict == PARTLY
    assert judge(claim, Evidence(both, plateau={"b": ""})).verdict == NOT_DECIDED


def test_one_pretraining_a_row_decides_nothing_about_ways_to_pretrain():
    table = {"a": runs(0.8, 1), "b": runs(0.7, 1)}
    ways = verdict(A_OVER_B, pretrained={"a": "BERT", "b": "No NSP"}, **table)
    assert ways.verdict == NOT_DECIDED and "one pre-training" in ways.reason
    same = verdict(A_OVER_B, pretrained={"a": "LTR", "b": "LTR"}, **table)  # + BiLSTM
    assert same.verdict == REPRODUCED
    one_run = verdict(A_OVER_B, a=runs(0.8, 1, 1), b=runs(0.7, 1, 1))
    assert one_run.verdict == NOT_DECIDED and one_run.p is None and one_run.effect.low is None


def test_whether_the_size_agrees_is_a_second_answer():
    table = {"a": runs(0.8), "b": runs(0.7)}
    paper = {("a", "task"): 88.0, ("b", "task"): 78.0}
    agrees = verdict(A_OVER_B, paper=paper, **table)
    assert agrees.verdict == REPRODUCED and agrees.size_agrees is True
    smaller = verdict(A_OVER_B, paper=paper | {("a", "task"): 79.0}, **table)
    assert smaller.verdict == REPRODUCED and smaller.size_agrees is False


def test_rows_on_the_plateau_and_random_ones_lend_no_variance_to_others():
    table = {"a": values(8, 9, 8), "b": values(7, 7, 8), "c": values(6, 1, 9)}
    assert verdict(A_OVER_B, **table).effect.pooled_rows == 3
    assert verdict(A_OVER_B, plateau={"c": ""}, **table).effect.pooled_rows == 2
    table |= {"none": values(1, 9, 1), "random_rows": ("none",)}
    assert verdict(A_OVER_B, **table).effect.pooled_rows == 3
    assert verdict(Comparison("task", "a", "none"), **table).effect.pooled_rows == 4


def test_with_tasks_left_out_or_untested_a_claim_is_reproduced_in_part():
    ahead, behind = runs(0.8), runs(0.7)
    both = evidence(("x", "y"), a=ahead, b=behind)
    whole = Claim("c", "", "", each(("x", "y"), "a", "b"))
    assert judge(whole, both).verdict == REPRODUCED and judge(whole, both).extent is None
    lacking = dataclasses.replace(whole, left_out=("MNLI", "MRPC"))
    found = judge(lacking, both)
    assert (found.verdict, found.extent) == (PARTLY, (2, 4, "tasks"))
    # One of three steps is not tested: the task is reproduced in two comparisons.
    steps = tuple(Comparison("x", *pair) for pair in (("a", "b"), ("b", "c"), ("c", "d")))
    rows = {"a": ahead, "b": behind, "c": runs(0.6), "d": runs(0.5)}
    stuck = evidence(("x",), **rows, plateau={"d": "on it"})
    found = judge(Claim("c", "", "", steps), stuck)
    assert (found.verdict, found.extent) == (PARTLY, (2, 3, "comparisons"))
    # Comparisons that were not tested are in no mean.
    assert found.mean_effect.mean == pytest.approx((80 - 60) / 2, abs=1.5)
    apart = evidence(("x", "y"), a=ahead, b=behind, random_rows=("r",), r=runs(0.75))
    assert judge(whole, apart).verdict == REPRODUCED
    refuted = Claim("c", "", "", each(("x",), "b", "a"), ("MNLI",))
    assert judge(refuted, both).verdict == NOT_REPRODUCED


def test_a_verdict_that_falls_by_a_plainer_method_says_so():
    rows = {"a": values(80.0, 81.0, 83.0), "b": values(79.0, 79.4, 79.5)}
    lent = {name: values(*(70.0 + 0.1 * n for n in range(3))) for name in "cdef"}
    found = judge(Claim("c", "", "", (A_OVER_B,)), evidence(**rows, **lent))
    low, high = found.findings[0].effect.others["paired t"]
    assert found.verdict == REPRODUCED and low < 0 < high
    assert found.depends_on == ("paired t",)
    plain = judge(Claim("c", "", "", (A_OVER_B,)), evidence(a=runs(0.8), b=runs(0.7)))
    assert plain.verdict == REPRODUCED and plain.depends_on == ()


def test_a_plateau_of_fine_tuning_is_told():
    scores = values(34.5, 36.2, 36.2, 43.1, 43.3, 43.7)
    found = judge_comparison(A_OVER_B, evidence(a=scores, b=values(42, 42.1, 42.2, 42.4, 42.5, 43)))
    assert found.footnotes[-1].startswith("task: a plateau of fine-tuning that not all models of a")
    assert found.footnotes[-1].endswith("have left (3 from 34.5 to 36.2 and 3 from 43.1 to 43.7)")
    for alike in (values(34, 36, 38, 40), values(30, 36, 36.1, 36.2), values(30, 40)):
        assert not evidence(a=alike).finetuning_plateau("a", "task")
