"""The evidence of a table: its runs, and the effects between its rows, in comparable units."""

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence

from experiments.tables.judging.intervals import Effect, Run, effect

_GAP = 3.0  # points


@dataclasses.dataclass(frozen=True)
class Evidence:
    """Everything that the claims of one table are judged by.

    Attributes:
      runs: (row, column) -> runs; absent or empty where nothing finished.
      baselines: column -> score of the trivial baseline, in printed units.
      lower_is_better: columns that are losses or perplexities.
      in_logs: columns of perplexities, which are compared by their logarithms, in nats.
      in_nats: columns of losses.
      holes: (row, column) -> why there are no runs.
      random_rows: references with random weights (not systems that are trained from such). They and
        the rows on the plateau lend their variance between seeds to their own comparisons only.
      pretrained: row -> the pre-training of this table that it begins with; random rows are absent.
      fixed: rows that no seed changes, such as a rule: they are run once, and compared with each
        seed of another row, or with one another on the examples alone.
      plateau: masked-LM rows that have not left the plateau -> the loss that shows it, in words.
      samples: column -> name of its set of evaluation examples, where several columns share one.
      paper: (row, column) -> the paper's number.
    """

    runs: Mapping[tuple[str, str], Sequence[Run]]
    baselines: Mapping[str, float] = dataclasses.field(default_factory=dict)
    lower_is_better: frozenset[str] = frozenset()
    in_logs: frozenset[str] = frozenset()
    in_nats: frozenset[str] = frozenset()
    holes: Mapping[tuple[str, str], str] = dataclasses.field(default_factory=dict)
    random_rows: tuple[str, ...] = ()
    pretrained: Mapping[str, str] = dataclasses.field(default_factory=dict)
    fixed: frozenset[str] = frozenset()
    plateau: Mapping[str, str] = dataclasses.field(default_factory=dict)
    samples: Mapping[str, str] = dataclasses.field(default_factory=dict)
    paper: Mapping[tuple[str, str], float] = dataclasses.field(default_factory=dict)

    def column(self, label: str) -> dict[str, list[Run]]:
        """Return row -> runs, in the units that are compared; without rows that have a `hole`."""
        return {
            row: [dataclasses.replace(run, value=self.units(label, run.value)) for run in runs]
            for (row, column), runs in self.runs.items()
            if column == label and not self.hole(row, label)
        }

    def hole(self, row: str, label: str) -> str:
        """Say why a row is not compared in a column; "" if it is."""
        runs = self.runs.get((row, label))
        if not runs:
            return self.holes.get((row, label), "it was not run")
        finite = all(math.isfinite(run.value) for run in runs)
        return "" if finite else "the score of a run is not a finite number"

    def units(self, label: str, value: float) -> float:
        """Return a printed value of a column in the units in which the column's rows are
        compared."""
        return math.log(value) if label in self.in_logs else value

    def unit(self, label: str) -> str:
        return "nats" if label in self.in_logs | self.in_nats else "points"

    def sign(self, label: str) -> int:
        return -1 if label in self.lower_is_better else 1

    def finetuning_plateau(self, row: str, label: str) -> str:
        """Say that some of a row's models are on a column's plateau of fine-tuning; "" if none is.

        They are where the scores fall into two groups: two models or more on either side of a gap
        of at least three points that is more than twice any other (experiments/results/PLAN.md)."""
        scores = sorted(run.value for run in self.runs.get((row, label), ()))
        higher_is_better = self.unit(label) == "points" and self.sign(label) > 0
        if len(scores) < 4 or not higher_is_better or row in self.random_rows:
            return ""
        gaps = [after - before for before, after in itertools.pairwise(scores)]
        widest, *others = sorted(gaps, reverse=True)
        below = gaps.index(widest) + 1
        if widest < _GAP or widest <= 2 * others[0] or not 2 <= below <= len(scores) - 2:
            return ""
        groups = scores[:below], scores[below:]
        means = " and ".join(f"{len(g)} from {g[0]:.1f} to {g[-1]:.1f}" for g in groups)
        return f"{label}: a plateau of fine-tuning that not all models of {row} have left ({means})"

    def pool(self, weights: Mapping[str, float]) -> list[str]:
        """Return the rows that lend their variance: pre-trained ones, others, or both, like the
        compared."""
        kinds = {row in self.pretrained for row in weights}
        rows = dict.fromkeys(row for row, _ in self.runs)
        rows = [row for row in rows if (row in self.pretrained) in kinds]
        return [row for row in rows if row not in self.random_rows and row not in self.plateau]

    def effect(
        self, weights: Mapping[str, float], column: Mapping[str, Sequence[Run]], constant=0.0
    ) -> Effect | None:
        """Return the effect of a weighted sum of the rows of a `column`; None where one has no
        runs."""
        if not all(column.get(row) for row in weights):
            return None
        fixed = {row: weight for row, weight in weights.items() if row in self.fixed}
        others = {row: weight for row, weight in weights.items() if weight and row not in fixed}
        if not others:
            return effect(fixed, column, constant=constant)
        beside = [(weight, column[row][0]) for row, weight in fixed.items()]
        return effect(others, column, self.pool(others), constant, beside)
