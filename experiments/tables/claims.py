"""What the paper concludes from its tables, as data, and whether our numbers bear it out.

A claim is a sentence of the paper and the comparisons that it rests on: which rows, which column,
which direction. Each comparison gets an effect with an interval (`experiments.tables.intervals`)
and one of three verdicts; a claim is reproduced when all of its comparisons are.

Five guards keep a verdict honest. A model that does not beat the trivial baseline has learnt
nothing that the comparison could be about, so it decides nothing. Nor do two pre-trained models of
which neither beats a randomly initialised one: their pre-training does not show. A masked-LM model
that is still on the plateau of its loss, where it knows word frequencies and little else, says
nothing about masked against left-to-right pre-training. An effect counts only when every
pre-training seed shows its direction. And an interval that leaves both answers open is "not decided
at this scale", which is not "not reproduced".
"""

import dataclasses
from collections.abc import Mapping, Sequence

from experiments.tables.intervals import Effect, Run, paired_effect

REPRODUCED = "reproduced"
NOT_REPRODUCED = "not reproduced"
NOT_DECIDED = "not decided at this scale"

GREATER, AT_MOST = "greater", "at_most"


@dataclasses.dataclass(frozen=True)
class Comparison:
    """`better` against `worse` in one column.

    Attributes:
      column, better, worse: labels of the ablation's column and rows.
      kind: "greater": better - worse exceeds `margin`. "at_most": better - worse is at most
        `margin` (the paper says that something does not help, or comes close).
      margin: in printed units, points for scores.
      negligible: "greater" is also refuted by an interval wholly below `margin + negligible`: a
        gain too small to be what the paper speaks of.
    """

    column: str
    better: str
    worse: str
    kind: str = GREATER
    margin: float = 0.0
    negligible: float = 0.5


@dataclasses.dataclass(frozen=True)
class Claim:
    """A sentence that the paper draws from a table.

    Attributes:
      name: short and unique.
      text: the claim, in our words.
      section: where the paper makes it.
    """

    name: str
    text: str
    section: str
    comparisons: tuple[Comparison, ...]


@dataclasses.dataclass(frozen=True)
class Finding:
    """A comparison's verdict, its effect where there is one, and why."""

    comparison: Comparison
    verdict: str
    effect: Effect | None
    reason: str


@dataclasses.dataclass(frozen=True)
class Verdict:
    claim: Claim
    verdict: str
    findings: tuple[Finding, ...]


@dataclasses.dataclass(frozen=True)
class Evidence:
    """Everything that the claims of one table are judged by.

    Attributes:
      runs: (row, column) -> runs; absent or empty where nothing finished.
      baselines: column -> score of the trivial baseline, in printed units.
      lower_is_better: columns that are losses or perplexities.
      holes: (row, column) -> why there are no runs.
      random_rows: rows of randomly initialised models.
      plateau: masked-LM rows that have not left the plateau -> the loss that shows it, in words.
      left_to_right: rows of left-to-right models.
    """

    runs: Mapping[tuple[str, str], Sequence[Run]]
    baselines: Mapping[str, float]
    lower_is_better: frozenset[str] = frozenset()
    holes: Mapping[tuple[str, str], str] = dataclasses.field(default_factory=dict)
    random_rows: tuple[str, ...] = ()
    plateau: Mapping[str, str] = dataclasses.field(default_factory=dict)
    left_to_right: frozenset[str] = frozenset()


def judge(claim: Claim, evidence: Evidence) -> Verdict:
    """The verdict on a claim: reproduced if every comparison is, refuted if one is."""
    findings = tuple(judge_comparison(c, evidence) for c in claim.comparisons)
    verdicts = {finding.verdict for finding in findings}
    if NOT_REPRODUCED in verdicts:
        verdict = NOT_REPRODUCED
    elif verdicts == {REPRODUCED}:
        verdict = REPRODUCED
    else:
        verdict = NOT_DECIDED
    return Verdict(claim, verdict, findings)


def judge_comparison(comparison: Comparison, evidence: Evidence) -> Finding:
    """The verdict on one comparison, with its effect "better minus worse"."""
    runs = {}
    for row in (comparison.better, comparison.worse):
        runs[row] = list(evidence.runs.get((row, comparison.column), ()))
        if not runs[row]:
            why = evidence.holes.get((row, comparison.column), "it was not run")
            return Finding(comparison, NOT_DECIDED, None, f"no result for {row}: {why}")
    better, worse = runs[comparison.better], runs[comparison.worse]
    if comparison.worse in evidence.random_rows:
        worse = _for_every_pretraining(worse, better)
    if comparison.better in evidence.random_rows:
        better = _for_every_pretraining(better, worse)
    effect = paired_effect(better, worse)
    if effect is None:
        return Finding(comparison, NOT_DECIDED, None, "the two rows share no seeds")
    if comparison.column in evidence.lower_is_better:
        effect = _negated(effect)
    for row in runs:
        if at_baseline(runs[row], comparison.column, evidence):
            reason = f"{row} does not beat the trivial baseline, so the comparison decides nothing"
            return Finding(comparison, NOT_DECIDED, effect, reason)
    if unbeaten := _unbeaten(runs, comparison.column, evidence):
        reason = f'neither row clearly beats "{unbeaten[0]}": pre-training itself does not show'
        return Finding(comparison, NOT_DECIDED, effect, reason)
    stuck = [row for row in runs if row in evidence.plateau]
    if stuck and any(row in evidence.left_to_right for row in runs):
        reason = f"{stuck[0]} is still on the masked-LM plateau ({evidence.plateau[stuck[0]]})"
        return Finding(comparison, NOT_DECIDED, effect, reason)
    verdict, reason = _decide(comparison, effect)
    return Finding(comparison, verdict, effect, reason + _remarks(effect))


def at_baseline(runs: Sequence[Run], column: str, evidence: Evidence) -> bool:
    """Whether the runs fail to beat the column's trivial baseline beyond their interval."""
    if column not in evidence.baselines:
        return False
    effect = paired_effect(runs, evidence.baselines[column])
    if column in evidence.lower_is_better:
        effect = _negated(effect)
    return (effect.mean if effect.low is None else effect.low) <= 0


def _decide(comparison: Comparison, effect: Effect) -> tuple[str, str]:
    if effect.low is None:
        return NOT_DECIDED, "one run each: nothing says how much of the effect is chance"
    margin = comparison.margin
    if comparison.kind == AT_MOST:
        bound = f"{margin:g}"
        if effect.high <= margin:
            return REPRODUCED, f"the interval lies at or below {bound}"
        if effect.low > margin:
            return NOT_REPRODUCED, f"the interval lies above {bound}"
        return NOT_DECIDED, f"the interval holds {bound}"
    bound = f"{margin:g}"
    if effect.low > margin:
        if all(difference > margin for difference in effect.by_pretrain_seed):
            return REPRODUCED, f"the interval lies above {bound}"
        return NOT_DECIDED, "the pre-training seeds disagree about the direction"
    if effect.high < margin:
        return NOT_REPRODUCED, f"the interval lies below {bound}"
    if effect.high < margin + comparison.negligible:
        limit = f"{margin + comparison.negligible:g}"
        return NOT_REPRODUCED, f"whatever effect there is lies below {limit}"
    return NOT_DECIDED, f"the interval holds {bound}"


def _remarks(effect: Effect) -> str:
    remarks = []
    if effect.pretrain_seeds == 1:
        remarks.append("one pre-training a row, so the spread between pre-trainings is not in it")
    if not effect.examples:
        remarks.append("drawn over seeds only")
    return "".join(f"; {remark}" for remark in remarks)


def _unbeaten(runs: Mapping[str, Sequence[Run]], column: str, evidence: Evidence) -> list[str]:
    """Random rows that none of the compared rows clearly beats; none where one is compared."""
    if any(row in evidence.random_rows for row in runs):
        return []
    found = {row: list(evidence.runs.get((row, column), ())) for row in evidence.random_rows}
    return [
        row
        for row, random in found.items()
        if random and not any(_beats(compared, random) for compared in runs.values())
    ]


def _beats(runs: Sequence[Run], random: Sequence[Run]) -> bool:
    effect = paired_effect(runs, _for_every_pretraining(random, runs))
    return effect is not None and effect.low is not None and effect.low > 0


def _for_every_pretraining(random: Sequence[Run], others: Sequence[Run]) -> list[Run]:
    """A random initialisation has no pre-training seed: it is set against every pre-training."""
    return [
        dataclasses.replace(run, pretrain_seed=seed)
        for seed in sorted({run.pretrain_seed for run in others})
        for run in random
    ]


def _negated(effect: Effect) -> Effect:
    return dataclasses.replace(
        effect,
        mean=-effect.mean,
        low=None if effect.high is None else -effect.high,
        high=None if effect.low is None else -effect.low,
        by_pretrain_seed=tuple(-d for d in effect.by_pretrain_seed),
    )


def each(columns: Sequence[str], better: str, worse: str, **fields) -> tuple[Comparison, ...]:
    """The same comparison in several columns."""
    return tuple(Comparison(column, better, worse, **fields) for column in columns)
