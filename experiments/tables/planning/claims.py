"""Claims about a table, the paper's and our own, as data.

A claim is a sentence and the comparisons that it rests on: which rows, which column, which
direction. `experiments.tables.judging.verdicts` says whether our numbers bear it out.
"""

import dataclasses
from collections.abc import Sequence

from official_bert.common.errors import UserError, check_choice, check_once

GREATER, AT_MOST, SHARE = "greater", "at_most", "share"


@dataclasses.dataclass(frozen=True)
class Comparison:
    """`better` against `worse` in one column.

    Attributes:
      column, better, worse: labels of the ablation's column and rows.
      kind: "greater": better - worse exceeds `margin`. "at_most": better - worse is at most
        `margin` (the paper says that something comes close). "share":
        100 * (better - worse) / (whole - worse) exceeds `margin`. A loss changes the sign of both
        differences.
      margin: in points, nats or percent of the way.
      whole: the row at the end of the way, for "share".
    """

    column: str
    better: str
    worse: str
    kind: str = GREATER
    margin: float = 0.0
    whole: str = ""

    def __post_init__(self):
        where = f"comparison of {self.better} and {self.worse}"
        check_choice("kind", self.kind, (GREATER, AT_MOST, SHARE), where)
        if (self.kind == SHARE) != bool(self.whole):
            raise UserError(f"{where}: kind={SHARE} and the row `whole` go together")
        check_once(self.rows, where)

    @property
    def rows(self) -> tuple[str, ...]:
        return (self.better, self.worse, *filter(None, [self.whole]))


@dataclasses.dataclass(frozen=True)
class Claim:
    """A sentence about a table, the paper's or our own.

    Attributes:
      name: short and unique.
      text: the claim, in our words.
      section: where the paper makes it.
      left_out: columns of the paper's claim that this table lacks.
      own: the claim is this table's own; the paper does not make it.
      exploratory: asked without a plan, so it is counted apart from planned claims.
    """

    name: str
    text: str
    section: str
    comparisons: tuple[Comparison, ...]
    left_out: tuple[str, ...] = ()
    own: bool = False
    exploratory: bool = False


def each(columns: Sequence[str], better: str, worse: str, **fields) -> tuple[Comparison, ...]:
    """Return the same comparison in several columns."""
    return tuple(Comparison(column, better, worse, **fields) for column in columns)
