"""From an `Ablation` to the cells of a grid: the work that a table needs, each piece once.

    sentences -> vocabulary -> records/NAME -> pretrain/VARIANT/SEED
              -> vectors/KIND/SEED
        -> finetune/COLUMN/ROW/SEEDS -> export, cloze/RECORDS/VARIANT/SEED,
           pairs/QUESTION/RECORDS/VARIANT/SEED

A vocabulary file or a model that is given needs no cell.
"""

import dataclasses
from collections.abc import Callable
from pathlib import Path

from data_prep.jobs.outputs import members
from experiments.tables.planning import data_cells, question_cells
from experiments.tables.planning.ablation import Ablation, Export
from experiments.tables.planning.finetune_cells import FinetuneCells
from experiments.tables.planning.pretrain_cells import PretrainCells
from experiments.tables.planning.repetitions import PlannedRun
from experiments.tables.planning.work import Work
from experiments.tables.run.grid import Cell
from experiments.training.folder.inputs import forget_examples
from experiments.training.settings.config import FinetuneConfig, PretrainConfig, path_values
from experiments.training.settings.options import classes_for, replaced


@dataclasses.dataclass(frozen=True)
class TablePlan:
    """The cells and where their results belong.

    Attributes:
      cells: of the whole table.
      runs: {(row label, column label): its runs}.
      pretrains: {(variant name, seed): cell}, where the table pre-trains.
      exports: cells of exports.
      data: {column label: (training examples, dev examples)}.
      work: {cell of a training: its Work}.
      left_out: {label of a row that is left out: what it lacks}.
    """

    cells: tuple[Cell, ...]
    runs: dict[tuple[str, str], tuple[PlannedRun, ...]]
    pretrains: dict[tuple[str, int], str]
    exports: tuple[str, ...]
    data: dict[str, tuple[int, int]]
    work: dict[str, Work]
    left_out: dict[str, str]


def plan(ablation: Ablation, look: Callable = lambda column, config: None) -> TablePlan:
    """Return the cells of an ablation.

    Args:
      look: called with each column whose data are there, and its FinetuneConfig, while these are in
        memory (`inputs.read_task`).

    Raises:
      UserError: data that the ablation names is missing.
    """
    try:
        return _plan(ablation, look)
    finally:
        forget_examples()


def _plan(ablation, look) -> TablePlan:
    data = data_cells.of_table(ablation)
    pretrained = PretrainCells(ablation, data.vocab)
    finetuned = FinetuneCells(ablation, data, pretrained, look)
    cells = {cell.name: cell for cell in (*data.cells, *pretrained.cells.values())}
    runs, left_out = {}, _left_out(ablation)
    for column in ablation.columns:
        for row in (row for row in ablation.rows if row.label not in left_out):
            if column.question:
                variant = ablation.variant(row.variant)
                found = question_cells.runs(row, column.question, variant, pretrained)
            else:
                found = finetuned.runs(row, column) if column.finetune else pretrained.runs(row)
            if found:
                cells |= {cell.name: cell for cell, _ in found}
                runs[row.label, column.label] = tuple(run for _, run in found)
    # A row that is left out has no runs.
    asked = [export for export in ablation.exports if (export.row, export.column) in runs]
    exports = [_export(export, runs[export.row, export.column][0]) for export in asked]
    return TablePlan(
        cells=(*cells.values(), *exports),
        runs=runs,
        pretrains={key: cell.name for key, cell in pretrained.cells.items()},
        exports=tuple(cell.name for cell in exports),
        data=finetuned.examples,
        work=pretrained.work | finetuned.work,
        left_out=left_out,
    )


def _export(export: Export, run: PlannedRun) -> Cell:
    name = f"export/{export.column}/{export.row}"
    config = {"model": f"@{run.cell}//model", "examples": list(export.examples)}
    return Cell(name, "export", config, cost=15, round=run.pretrain_seed)


def _left_out(ablation: Ablation) -> dict[str, str]:
    """Return {label of a row: what it lacks} of rows whose optional files are missing."""
    optional = {v.name: v.checkpoint for v in ablation.variants if v.optional}
    found = {}
    for row in ablation.rows:
        options = replaced(FinetuneConfig(), **row.finetune).model_options
        files = [path for one in options for _, path in path_values(one).values()]
        for path in (*files, optional.get(row.variant, "")):
            if path and not Path(path).exists():
                found[row.label] = f"left out, {path} is missing"
    return found


def files_read(plan: TablePlan) -> list[str]:
    """List the files that a plan's cells read and no cell makes: texts, task files, models and
    such."""
    fields = ["inputs", "train", "heldout", "mnli_dev", "others"]
    for kind in (PretrainConfig, FinetuneConfig):
        for part in (kind, *classes_for(kind)):
            fields += [f.name for f in dataclasses.fields(part) if f.metadata.get("path")]
    found = []
    for cell in plan.cells:
        for value in (cell.config.get(field) or () for field in fields):
            found += [value] if isinstance(value, str) else value
    return [file for path in dict.fromkeys(found) if path[:1] != "@" for file in members(path)]
