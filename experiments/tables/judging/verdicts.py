"""Verdicts on the paper's claims from our numbers (`experiments.tables.planning.claims`).

Each comparison of a claim gets an effect with an interval (`intervals.py`) and a verdict. Where the
interval leaves both answers open, the verdict is "not decided at this scale", which is not the same
as "not reproduced". The smallest effect that the design shows 4 times of 5 (`detectable`) says what
the scale could have decided.

A claim is reproduced when all of its comparisons are. It is not reproduced when one of them is
refuted after Holm's correction, which allows for several having been tried. It is reproduced in
part when all comparisons that were tested are, but some were not tested or the table lacks some of
the paper's tasks; the verdict says on how many tasks.

Where one of the plainer methods of `other_methods` would give another verdict, the verdict says
that it depends on the method.

A comparison is "not tested" where its models have learnt nothing that it could be about: one is
still on the masked-LM plateau, or neither is shown to beat random weights. "Shown" means: by the
interval.

A comparison stays open
- where even the row ahead is shown to fall short of the trivial baseline, unless that row beats
  random weights (a baseline that lists all words and their tags may know more than a good model);
- in a column without random weights, unless the row ahead is shown to beat the baseline;
- where the two rows are *alike*, unless the row ahead is shown to beat the baseline: two models
  that both predict the majority class are alike too;
- where two ways to pre-train are compared by one pre-training of each;
- where it rests on one run of each row, unless no seed changes either.

The verdict is about the direction of an effect. Its size is a second answer: the interval holds the
paper's effect, or it does not.
"""

import dataclasses
from collections.abc import Sequence
from statistics import fmean

from experiments.tables.judging import p_values
from experiments.tables.judging.evidence import Evidence
from experiments.tables.judging.intervals import INTERVAL, Effect, average
from experiments.tables.judging.other_methods import METHODS
from experiments.tables.judging.power import detectable
from experiments.tables.planning.claims import AT_MOST, SHARE, Claim, Comparison

REPRODUCED = "reproduced"
NOT_REPRODUCED = "not reproduced"
PARTLY = "reproduced in part"  # of a claim: all that was tested is, but not all was tested
NOT_DECIDED = "not decided at this scale"
NOT_TESTED = "not tested"  # of a comparison: its models have learnt too little for it

# A gain below half a point (or below half of the paper's own gain, where that is smaller) is too
# small for what the paper claims: an interval wholly below it refutes "greater than nothing". A
# claim with a margin of its own sets its own bound.
NEGLIGIBLE = 0.5


@dataclasses.dataclass(frozen=True)
class Finding:
    """A comparison's verdict and why.

    Attributes:
      effect: better minus worse, None where there is none.
      unit: of the effect: "points", "nats" or "percent".
      detectable: the effect beyond the margin that this design would show 4 times of 5.
      paper_effect: the same comparison in the paper, None where it prints no such numbers.
      size_agrees: whether the interval holds the paper's effect; None without either.
      p: two-sided p value of "the effect is the margin".
      refutation: uncorrected p value with which the comparison is refuted.
      holm: `refutation` with Holm's correction over the claim's comparisons.
      footnotes: what a reader must know beside the verdict.
    """

    comparison: Comparison
    verdict: str
    reason: str
    effect: Effect | None = None
    unit: str = "points"
    detectable: float | None = None
    paper_effect: float | None = None
    size_agrees: bool | None = None
    p: float | None = None
    refutation: float | None = None
    holm: float | None = None
    footnotes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Verdict:
    """A claim's verdict.

    Attributes:
      mean_effect: of the tested comparisons; None where they have different units or where the
        columns are not compared by the same rows.
      extent: (m, n, "tasks"): the claim is reproduced in part, on m of n tasks; "comparisons" where
        a task was tested in part.
      depends_on: the other methods by which the verdict would be another.
    """

    claim: Claim
    verdict: str
    findings: tuple[Finding, ...]
    mean_effect: Effect | None
    footnotes: tuple[str, ...]
    extent: tuple[int, int, str] | None = None
    depends_on: tuple[str, ...] = ()


def judge(claim: Claim, evidence: Evidence) -> Verdict:
    """Return the verdict on a claim, by the rules of this module's docstring."""
    findings = [judge_comparison(c, evidence) for c in claim.comparisons]
    adjusted = p_values.holm(f.refutation for f in findings if f.refutation is not None)
    findings = tuple(dataclasses.replace(f, holm=adjusted.get(f.refutation)) for f in findings)
    tested = [f for f in findings if f.verdict != NOT_TESTED]
    whole = len(tested) == len(findings) and not claim.left_out
    if any(map(_is_refuted, tested)):
        verdict = NOT_REPRODUCED
    elif tested and all(f.verdict == REPRODUCED for f in tested):
        verdict = REPRODUCED if whole else PARTLY
    else:
        verdict = NOT_DECIDED
    footnotes = dict.fromkeys(note for finding in findings for note in finding.footnotes)
    if claim.left_out:
        footnotes[f"not asked here: {', '.join(claim.left_out)}"] = None
    mean = mean_effect(tuple(f.comparison for f in tested), evidence)
    extent = _extent(claim, findings) if verdict == PARTLY else None
    others = _depends_on(verdict, tested)
    return Verdict(claim, verdict, findings, mean, tuple(footnotes), extent, others)


def _is_refuted(finding: Finding) -> bool:
    """Return whether a comparison refutes its claim, after Holm's correction."""
    return finding.verdict == NOT_REPRODUCED and finding.holm < 1 - INTERVAL


def _extent(claim: Claim, findings: Sequence[Finding]) -> tuple[int, int, str]:
    """Return on how many tasks a claim is reproduced in part: (reproduced, all, "tasks" or so)."""
    by_task: dict[str, list[bool]] = {}
    for finding in findings:
        borne_out = finding.verdict == REPRODUCED
        by_task.setdefault(finding.comparison.column, []).append(borne_out)
    if all(all(task) or not any(task) for task in by_task.values()):
        tasks = sum(map(all, by_task.values()))
        return tasks, len(by_task) + len(claim.left_out), "tasks"
    asked = len(findings) * (1 + len(claim.left_out) / len(by_task))
    return sum(map(sum, by_task.values())), round(asked), "comparisons"


def _depends_on(verdict: str, tested: Sequence[Finding]) -> tuple[str, ...]:
    """Return the other methods by which a decided claim would have another verdict."""
    if verdict == NOT_DECIDED:
        return ()
    hangs_on = filter(_is_refuted, tested) if verdict == NOT_REPRODUCED else tested
    hangs_on = [f for f in hangs_on if f.effect is not None]
    same = any if verdict == NOT_REPRODUCED else all
    return tuple(method for method in METHODS if not same(_stands_by(f, method) for f in hangs_on))


def _stands_by(finding: Finding, method: str) -> bool:
    """Return whether a method's interval gives a comparison the same verdict; True where it has
    none."""
    bounds = finding.effect.others.get(method)
    return bounds is None or _of_interval(*bounds, finding)[0] == finding.verdict


def judge_comparison(comparison: Comparison, evidence: Evidence) -> Finding:
    """Return the verdict on one comparison, with its effect "better minus worse"."""
    for row in comparison.rows:
        if why := evidence.hole(row, comparison.column):
            return Finding(comparison, NOT_DECIDED, f"no result for {row}: {why}")
    found = _effect(comparison, evidence)
    if found is None:
        why = _no_way(comparison, evidence) or "the rows share no seeds"
        return Finding(comparison, NOT_DECIDED, why)
    paper = _paper_effect(comparison, evidence)
    finding = Finding(
        comparison,
        NOT_DECIDED,
        "one run each: nothing says how much of the effect is chance",
        found,
        "percent" if comparison.kind == SHARE else evidence.unit(comparison.column),
        paper_effect=paper,
        footnotes=_footnotes(comparison, found, evidence),
    )
    one_run = found.pretrain_seeds * found.restarts == 1
    if found.low is None or one_run and not evidence.fixed.issuperset(comparison.rows):
        nothing = dataclasses.replace(found, low=None, high=None)
        return dataclasses.replace(finding, effect=nothing)
    finding = dataclasses.replace(
        finding,
        detectable=detectable(found.standard_error, found.degrees_of_freedom),
        size_agrees=None if paper is None else found.low <= paper <= found.high,
    )
    guard = _guard(comparison, found, evidence)
    if guard:
        verdict, reason = guard
        return dataclasses.replace(finding, verdict=verdict, reason=reason)
    decided = _decide(finding)
    alike = decided.verdict != NOT_DECIDED and found.low <= 0 <= found.high
    ahead = _ahead(comparison, evidence)
    alike = alike and comparison.column in evidence.baselines
    if alike and not above_baseline(ahead, comparison.column, evidence):
        reason = f"the rows are alike, but not even {ahead} is shown to beat the baseline"
        return dataclasses.replace(finding, verdict=NOT_DECIDED, reason=reason)
    return decided


def _guard(comparison: Comparison, found: Effect, evidence: Evidence) -> tuple[str, str] | None:
    """Return (verdict, reason) of a comparison that no interval could decide; None for others."""
    rows, column = comparison.rows, comparison.column
    for row in rows:
        if row in evidence.plateau:
            why = f"{row} is still on the masked-LM plateau ({evidence.plateau[row]})"
            return NOT_TESTED, why
    compared = {evidence.pretrained.get(row) for row in rows} - {None}
    if found.pretrain_seeds == 1 and len(compared) > 1:
        return NOT_DECIDED, "one pre-training a row says nothing of other pre-trainings"
    if no_way := _no_way(comparison, evidence):
        return NOT_DECIDED, no_way
    random = [r for r in evidence.random_rows if not evidence.hole(r, column)]
    learnt = [r for r in rows if any(_beats(r, other, column, evidence) for other in random)]
    if random and not learnt and not set(random) & set(rows):
        return NOT_TESTED, f"neither row is shown to beat {random[0]}"
    ahead = _ahead(comparison, evidence)
    above = above_baseline(ahead, column, evidence)
    if above is False and ahead not in learnt:
        return NOT_DECIDED, f"not even {ahead} beats the trivial baseline"
    if not random and column in evidence.baselines and not above:
        return NOT_DECIDED, f"no row is random, and not even {ahead} is shown to beat the baseline"
    return None


def _no_way(comparison: Comparison, evidence: Evidence) -> str:
    """Say that the way of a share is not shown to be one; "" if it is, or if none is asked of."""
    whole, worse = comparison.whole, comparison.worse
    way = _difference(comparison.column, whole, worse, evidence) if whole else None
    ahead = not way or way.low is not None and way.low > 0
    return "" if ahead else f"{whole} is not clearly ahead of {worse}"


def _ahead(comparison: Comparison, evidence: Evidence) -> str:
    """Return the row with the best mean."""
    column, sign = evidence.column(comparison.column), evidence.sign(comparison.column)
    return max(comparison.rows, key=lambda row: sign * fmean(run.value for run in column[row]))


def row_effect(row: str, column: str, evidence: Evidence, constant: float = 0.0) -> Effect | None:
    """Return a row's mean less a constant, in the units that are compared; None where it has no
    runs."""
    if not evidence.runs.get((row, column)):
        return None
    return evidence.effect({row: 1.0}, evidence.column(column), constant)


def above_baseline(row: str, column: str, evidence: Evidence) -> bool | None:
    """Return whether a row beats the trivial baseline: True or False where its interval says so,
    None where the interval holds the baseline or there is none."""
    if column not in evidence.baselines:
        return None
    found = row_effect(row, column, evidence, evidence.units(column, evidence.baselines[column]))
    if found is None or found.low is None:
        return None
    low, high = sorted(evidence.sign(column) * bound for bound in (found.low, found.high))
    return True if low > 0 else False if high <= 0 else None


def mean_effect(comparisons: Sequence[Comparison], evidence: Evidence) -> Effect | None:
    """Return the mean of the effects of comparisons, over columns and rows, with its interval."""
    columns = list(dict.fromkeys(c.column for c in comparisons))
    pairs = [
        sorted((c.better, c.worse) for c in comparisons if c.column == column) for column in columns
    ]
    alike = {(evidence.unit(column), evidence.sign(column)) for column in columns}
    shares = any(c.kind == SHARE for c in comparisons)
    if not columns or shares or len(alike) > 1 or any(p != pairs[0] for p in pairs):
        return None
    weights: dict[str, float] = {}
    share = evidence.sign(columns[0]) / len(pairs[0])
    for better, worse in pairs[0]:
        weights[better] = weights.get(better, 0.0) + share
        weights[worse] = weights.get(worse, 0.0) - share
    weights = {row: weight for row, weight in weights.items() if abs(weight) > 1e-9}
    tables = [evidence.column(column) for column in columns]
    if not weights or any(row not in table for row in weights for table in tables):
        return None
    if len(columns) == 1:
        return evidence.effect(weights, tables[0])
    samples = [evidence.samples.get(column, column) for column in columns]
    return evidence.effect(weights, average(tables, samples))


def _difference(column: str, better: str, worse: str, evidence: Evidence) -> Effect | None:
    sign = evidence.sign(column)
    return evidence.effect({better: sign, worse: -sign}, evidence.column(column))


def _beats(row: str, other: str, column: str, evidence: Evidence) -> bool:
    """Return whether an interval says that a row is better than another one."""
    if row == other or other not in evidence.column(column):
        return False
    gain = _difference(column, row, other, evidence)
    return gain is not None and gain.low is not None and gain.low > 0


def _effect(comparison: Comparison, evidence: Evidence) -> Effect | None:
    part = _difference(comparison.column, comparison.better, comparison.worse, evidence)
    if comparison.kind != SHARE or part is None:
        return part
    whole = _difference(comparison.column, comparison.whole, comparison.worse, evidence)
    if whole is None or not whole.mean:
        return None
    # Delta method: near the share t, part / whole varies like (part - t * whole) / whole.
    share, sign = part.mean / whole.mean, evidence.sign(comparison.column)
    weights = {
        comparison.better: sign,
        comparison.whole: -sign * share,
        comparison.worse: sign * (share - 1.0),
    }
    rest = evidence.effect(weights, evidence.column(comparison.column))
    return rest and rest.scaled(100 / whole.mean, 100 * share)


def _paper_effect(comparison: Comparison, evidence: Evidence) -> float | None:
    column = comparison.column
    numbers = [evidence.paper.get((row, column)) for row in comparison.rows]
    if None in numbers:
        return None
    better, worse, *whole = (evidence.units(column, number) for number in numbers)
    if whole:
        return 100 * (better - worse) / (whole[0] - worse)
    return evidence.sign(column) * (better - worse)


def _decide(finding: Finding) -> Finding:
    """Add the verdict, its reason and the p values to a finding that has an interval."""
    found, margin = finding.effect, finding.comparison.margin
    p = min(p_values.above(found, margin), p_values.below(found, margin))
    if finding.comparison.kind == AT_MOST:
        refutation = p_values.above(found, margin)
    else:
        refutation = p_values.below(found, margin or _negligible(finding))
    verdict, reason = _of_interval(found.low, found.high, finding)
    return dataclasses.replace(finding, verdict=verdict, reason=reason, p=p, refutation=refutation)


def _of_interval(low: float, high: float, finding: Finding) -> tuple[str, str]:
    """Return (verdict, reason) of a comparison whose effect has this interval."""
    margin = finding.comparison.margin
    if finding.comparison.kind == AT_MOST:
        if high <= margin:
            return REPRODUCED, f"the interval lies at or below {margin:g}"
        if low > margin:
            return NOT_REPRODUCED, f"the interval lies above {margin:g}"
        return NOT_DECIDED, f"the interval holds {margin:g}"
    bound = margin or _negligible(finding)
    if low > margin:
        return REPRODUCED, f"the interval lies above {margin:g}"
    if high < margin:
        return NOT_REPRODUCED, f"the interval lies below {margin:g}"
    if high < bound:
        return NOT_REPRODUCED, f"whatever effect there is lies below {bound:.2g}"
    return NOT_DECIDED, f"the interval holds {margin:g}"


def _negligible(finding: Finding) -> float:
    if finding.unit != "points":
        return 0.0
    if finding.paper_effect is None:
        return NEGLIGIBLE
    return min(NEGLIGIBLE, max(0.0, finding.paper_effect / 2))


def _footnotes(comparison: Comparison, found: Effect, evidence: Evidence) -> tuple[str, ...]:
    notes = []
    if found.pretrain_seeds == 1 and not evidence.fixed.issuperset(comparison.rows):
        notes.append("one pre-training a row: the spread between pre-trainings is in no interval")
    if not found.examples:
        notes.append(f"{comparison.column}: the intervals are about seeds, on these examples only")
    plateaus = (evidence.finetuning_plateau(row, comparison.column) for row in comparison.rows)
    return (*notes, *filter(None, plateaus))
