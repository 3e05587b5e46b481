"""From an `Ablation` to the cells of a grid: the work that a table needs, each piece once.

    records/NAME -> pretrain/VARIANT/SEED -> finetune/COLUMN/ROW/SEEDS -> export/COLUMN/ROW
                                          -> QUESTION/RECORDS/VARIANT/SEED

`data_cells` draws what stands before the records. A vocabulary or a model that is given needs no
cell.
"""

import dataclasses

from data_prep.jobs.outputs import members
from experiments.tables.planning import data_cells, places
from experiments.tables.planning.ablation import Ablation, Export
from experiments.tables.planning.cost import Steps
from experiments.tables.planning.finetune_cells import FinetuneCells
from experiments.tables.planning.pretrain_cells import PretrainCells
from experiments.tables.planning.question_cells import QuestionCells
from experiments.tables.planning.repetitions import PlannedRun
from experiments.tables.run.grid import Cell, reference
from experiments.training.folder.inputs import forget_examples
from experiments.training.settings.config import FinetuneConfig, path_values
from experiments.training.settings.options import replaced
from official_bert.common.errors import UserError


@dataclasses.dataclass(frozen=True)
class TablePlan:
    """The cells and where their results belong.

    Attributes:
      cells: of the whole table.
      runs: {(row label, column label): its runs}.
      pretrains: {(variant name, seed): name of the cell}, where the table pre-trains.
      exports: names of the cells.
      configs: {column label: FinetuneConfig of its first run, before its model is filled in}.
      examples: {column label: (training examples, dev examples)}.
      steps: {name of a training's cell: its Steps}.
      left_out: {label of a row that is left out: what it lacks}.
    """

    cells: tuple[Cell, ...]
    runs: dict[tuple[str, str], list[PlannedRun]]
    pretrains: dict[tuple[str, int], str]
    exports: tuple[str, ...]
    configs: dict[str, FinetuneConfig]
    examples: dict[str, tuple[int, int]]
    steps: dict[str, list[Steps]]
    left_out: dict[str, str]


def plan_table(ablation: Ablation) -> TablePlan:
    """Return the cells of an ablation.

    Raises:
      UserError: it has no rows or no columns, data that it names are missing, or a run that it
        needs would be refused.
    """
    if not (ablation.rows and ablation.columns):
        raise UserError(f"{ablation.full_name}: a table has rows and columns; give at least one")
    data = data_cells.table_data(ablation)
    pretrained = PretrainCells(ablation, data.vocab)
    finetuned = FinetuneCells(ablation, data, pretrained)
    asked = QuestionCells(ablation, pretrained)
    runs, left_out = {}, _left_out(ablation)
    for column in ablation.columns:
        planner = finetuned if column.finetune else asked if column.question else pretrained
        for row in ablation.rows:
            planned = [] if row.label in left_out else planner.runs(row, column)
            if planned:
                runs[row.label, column.label] = planned
    forget_examples()
    cells = [*data.cells, *pretrained.cells, *finetuned.cells, *asked.cells]
    exports = _exports(ablation.exports, runs, {cell.name: cell for cell in cells})
    return TablePlan(
        cells=(*cells, *exports),
        runs=runs,
        pretrains={
            (variant, seed): cell.name
            for variant, of_variant in pretrained.by_variant.items()
            for seed, cell in of_variant.items()
        },
        exports=tuple(cell.name for cell in exports),
        configs=finetuned.configs,
        examples=finetuned.examples,
        steps=pretrained.steps | finetuned.steps,
        left_out=left_out,
    )


def _exports(exports: tuple[Export, ...], runs, cells: dict[str, Cell]) -> list[Cell]:
    """Return the cells that export the model of a row's first run in a column."""
    pairs = [(export, runs.get((export.row, export.column))) for export in exports]
    # A row that is left out has no runs.
    first = [(export, planned[0]) for export, planned in pairs if planned]
    return [_export(export, run, cells[run.cell]) for export, run in first]


def _export(export: Export, run: PlannedRun, finetuning: Cell) -> Cell:
    return Cell(
        f"export/{export.column}/{export.row}",
        "export",
        {"model": reference(run.cell, "model"), "examples": list(export.examples)},
        cost=15,
        bytes=finetuning.bytes + 1e6,  # the weights, and about a megabyte of graphs
        round=run.repetition.pretrain_seed,
    )


def _left_out(ablation: Ablation) -> dict[str, str]:
    """Return {label of a row: what it lacks} of rows whose optional files are missing.

    A variant says that its checkpoint is optional; the paths of a row's own options always are."""
    optional = {v.name: v.checkpoint for v in ablation.variants if v.optional}
    left_out = {}
    for row in ablation.rows:
        options = replaced(FinetuneConfig(), **row.finetune).model_options
        paths = [path for one in options for _, path in path_values(one).values()]
        paths.append(optional.get(row.variant, ""))
        if why := [*filter(None, map(places.why_missing, filter(None, paths)))]:
            left_out[row.label] = f"left out, {', '.join(why)}"
    return left_out


def files_read(plan: TablePlan) -> list[str]:
    """List the files that a plan's cells read and no cell makes: texts, task files, models and
    such."""
    paths = dict.fromkeys(path for cell in plan.cells for path in cell.inputs.paths)
    return [file for path in paths for file in members(path)]
