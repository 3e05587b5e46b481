"""The results of a table, as results.json holds them: scores, verdicts, facts of what was run.

`experiments.tables.reporting.assemble` makes them from finished cells. A report is written from
them alone, when the table has just been run and years later.
"""

import dataclasses
from pathlib import Path
from typing import Any

from data_prep.jobs import checked_json
from experiments.tables.judging import verdict_json
from experiments.tables.judging.verdicts import Verdict
from experiments.training.folder.dataclass_json import in_form, inline, of_json, optional
from official_bert.common.errors import UserError


@dataclasses.dataclass(frozen=True)
class Scores:
    """The runs of one row in one column.

    Attributes:
      mean, deviation: in printed units; None for the deviation of a single run.
      values: (pre-training seed, fine-tuning seed, score) of each run.
      folders: name of each run's cell, or list of the names of its folds' cells.
      pretrainings: number of pre-training seeds.
    """

    mean: float
    deviation: float | None
    values: list
    folders: list
    pretrainings: int


@dataclasses.dataclass(frozen=True)
class Standing:
    """A row's own mean with its interval.

    Attributes:
      above_baseline: whether it beats the trivial baseline; None where the interval does not say.
      interval: `intervals.Effect` of the mean, `others` left out.
    """

    above_baseline: bool | None
    interval: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class CellResult:
    """One row in one column.

    Attributes:
      paper: the number that the paper prints.
      setting: the hyper-parameters that a search chose.
      hole: why there are no runs, or fewer than planned.
    """

    paper: float | None
    scores: Scores | None = inline()
    setting: dict | None = optional()
    hole: str = optional("")
    standing: Standing | None = inline()


@dataclasses.dataclass(frozen=True)
class RowResult:
    """`planning.ablation.Row` with its scores.

    Attributes:
      differs: the fields in which its configuration differs from the first row's, a line each.
      cells: label of a column -> score.
    """

    label: str
    variant: str
    paper_row: str | None
    reference: bool
    differs: list[str]
    cells: dict[str, CellResult]


@dataclasses.dataclass(frozen=True)
class Finetuning:
    """A column's task.

    Attributes:
      dev_examples: of all folds together, where there are folds.
      sample: the name of the evaluation examples, equal for columns that share them.
      folds: number of parts that take turns as the dev set; 0: one dev set.
    """

    train_examples: int
    dev_examples: int
    max_seq_length: int
    batch_size: int
    learning_rate: float
    epochs: float
    seeds: int
    sample: str
    folds: int = optional(0)


@dataclasses.dataclass(frozen=True)
class ColumnResult:
    """`planning.ablation.Column`, with facts of its data.

    Attributes:
      heldout: whether it scores the pre-training, on held-out text.
    """

    label: str
    paper_column: str | None
    metric: str
    heldout: bool
    percent: bool
    lower_is_better: bool
    note: str
    finetuning: Finetuning | None = inline()


@dataclasses.dataclass(frozen=True)
class Pretraining:
    """The pre-training of a model; `minutes` and `heldout` hold a value a finished seed.

    Attributes:
      batch_sizes: of the phases; None in results of versions that had `batch_size` alone.
      heldout_baseline: the scores of word frequencies alone.
      checkpoints: names of the seeds' checkpoints, where they were not pre-trained here.
    """

    steps: int
    batch_size: int
    learning_rate: float
    lengths: list[int]
    records: list[str]
    seeds: int
    tokens: int | None
    minutes: list[float]
    heldout: list[dict]
    heldout_baseline: dict | None
    checkpoints: list[str] | None = optional()
    batch_sizes: list[int] | None = optional()


@dataclasses.dataclass(frozen=True)
class Shape:
    """The size of a model."""

    layers: int
    hidden: int
    heads: int
    vocabulary: int
    direction: str
    parameters: int


@dataclasses.dataclass(frozen=True)
class Model:
    """`planning.ablation.Variant`: its size, and what was spent on it.

    Attributes:
      repeats: whether runs differ with the seed.
    """

    name: str
    checkpoint: str
    random_init: bool = optional(False)
    pretraining: Pretraining | None = inline()
    shape: Shape | None = inline()
    repeats: bool = optional(True)


@dataclasses.dataclass(frozen=True)
class Facts:
    """Models, text and records, for the caption; `records`: name -> counts."""

    models: list[Model]
    corpus: str
    records: dict[str, dict]


@dataclasses.dataclass(frozen=True)
class Point:
    """A row's mean after some steps of pre-training; `less`: the row that it is compared with."""

    steps: int
    mean: float
    deviation: float | None
    row: str
    less: str = optional("")


@dataclasses.dataclass(frozen=True)
class CurveResult:
    """A line of Figure 5."""

    label: str
    column: str
    points: list[Point]


@dataclasses.dataclass(frozen=True)
class LossCurve:
    """The losses of one pre-training: (step, nats a piece) on training and on held-out text."""

    label: str
    seed: int
    training: list
    heldout: list


@dataclasses.dataclass(frozen=True)
class Printed:
    """The numbers that the paper prints: row -> column -> number."""

    title: str
    columns: list[str]
    rows: dict[str, dict]


@dataclasses.dataclass(kw_only=True)
class Results:
    """Everything that a table's report needs.

    Attributes:
      command: how to run it again.
      date: of the report.
      origins: see `run.origins`; None in results of earlier versions, which have the `machine` and
        the package `versions` of the process that wrote the report.
      seconds: of all cells together; `wall_seconds`: while at least one cell was at work.
      cells: "finished", "failed", "pending", "running" -> number of cells.
      failures: name of a cell -> why it failed.
      baselines: column -> score of the trivial baseline, in printed units.
      exports: "saved_model" and "answers" of each exported model.
    """

    name: str
    title: str
    scale: str
    section: str
    command: str
    date: str
    origins: list[dict] | None = optional()
    machine: dict | None = optional()
    versions: dict | None = optional()
    seconds: float
    wall_seconds: float
    cells: dict[str, int]
    failures: dict[str, str]
    columns: list[ColumnResult]
    rows: list[RowResult]
    baselines: dict[str, float]
    paper: Printed | None
    scale_facts: Facts
    notes: list[str]
    curves: list[CurveResult]
    pretraining_curves: list[LossCurve]
    exports: list[dict]
    verdicts: list[Verdict] = in_form(
        verdict_json.to_json, verdict_json.of_json, default_factory=list
    )

    @property
    def made_by(self) -> list[dict]:
        """Return the `origins`; in results of earlier versions those of the report."""
        if self.origins is not None:
            return self.origins
        of_report = {"packages": self.versions, **(self.machine or {})}
        return [{"cells": self.cells["finished"], **of_report}]

    def row(self, label: str) -> RowResult:
        return next(row for row in self.rows if row.label == label)

    def model(self, row: RowResult) -> Model:
        return next(model for model in self.scale_facts.models if model.name == row.variant)


def read(path: Path) -> Results:
    """Read results.json.

    Raises:
      UserError: it is damaged, or not a table's.
    """
    values = checked_json.read(path, finite=False)
    try:
        return of_json(Results, values, str(path))
    except UserError as error:
        raise UserError(
            f"{error}; a table's results.json is what experiments.ablate writes"
        ) from None
