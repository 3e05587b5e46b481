"""Claims that follow from other claims of a table, so that nothing is counted twice."""

import dataclasses
from collections.abc import Sequence

from experiments.tables.judging.verdicts import Verdict
from experiments.tables.planning.claims import GREATER, Claim, Comparison


def drop_implied(verdicts: list[Verdict]) -> list[Verdict]:
    """Return a table's claims without those that another one of the same verdict implies.

    So nothing is counted twice: that the largest model beats the smallest follows from a gain at
    every step in size."""
    kept = list(verdicts)
    for one in reversed(verdicts):
        others = [v for v in kept if v is not one and v.verdict == one.verdict]
        if one.findings and any(_implies(other.claim, one.claim) for other in others):
            kept = [v for v in kept if v is not one]
    return kept


def _implies(other: Claim, one: Claim) -> bool:
    """Return whether a claim follows from another one's comparisons of rows."""
    return all(
        any(_same(step, asked) for step in other.comparisons) or _leads(other.comparisons, asked)
        for asked in one.comparisons
    )


def _same(step: Comparison, asked: Comparison) -> bool:
    """Return whether a comparison is the asked one, with the same margin or (for gains) a higher
    one."""
    is_enough = step.kind == GREATER and step.margin > asked.margin
    return step == (dataclasses.replace(asked, margin=step.margin) if is_enough else asked)


def _leads(steps: Sequence[Comparison], asked: Comparison) -> bool:
    """Return whether gains lead step by step from the worse row of the asked comparison to the
    better."""
    if asked.kind != GREATER or asked.margin:
        return False
    reached = {asked.worse}
    for _ in steps:
        reached |= {
            step.better
            for step in steps
            if step.kind == GREATER and step.column == asked.column and step.worse in reached
        }
    return asked.better in reached
