"""From an `Ablation` to the cells of a grid: the work that a table needs, each piece once.

    records/NAME -> pretrain/VARIANT/SEED -> finetune/COLUMN/ROW/SEEDS -> export/COLUMN/ROW
                                          -> KIND OF QUESTION/RECORDS/VARIANT/SEED

`data_cells` has those before them. A vocabulary file or a model that is given needs no cell.
"""

import dataclasses

from data_prep.jobs.outputs import members
from experiments.tables.planning import data_cells, places
from experiments.tables.planning.ablation import Ablation, Export
from experiments.tables.planning.finetune_cells import FinetuneCells
from experiments.tables.planning.pretrain_cells import PretrainCells
from experiments.tables.planning.question_cells import QuestionCells
from experiments.tables.planning.repetitions import PlannedRun
from experiments.tables.planning.steps import Steps
from experiments.tables.run.grid import Cell
from experiments.training.folder.inputs import forget_examples
from experiments.training.settings.config import FinetuneConfig, path_values
from experiments.training.settings.options import replaced


@dataclasses.dataclass(frozen=True)
class TablePlan:
    """The cells and where their results belong.

    Attributes:
      cells: of the whole table.
      runs: {(row label, column label): its runs}.
      pretrains: {(variant name, seed): cell}, where the table pre-trains.
      exports: cells of exports.
      configs: {column label: FinetuneConfig of its first run}.
      examples: {column label: (training examples, dev examples)}.
      steps: {cell of a training: its Steps}.
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
      UserError: data that the ablation names are missing.
    """
    data = data_cells.of_table(ablation)
    pretrained = PretrainCells(ablation, data.vocab)
    finetuned = FinetuneCells(ablation, data, pretrained)
    asked = QuestionCells(ablation, pretrained)
    runs, left_out = {}, _left_out(ablation)
    for column in ablation.columns:
        kind = finetuned if column.finetune else asked if column.question else pretrained
        for row in ablation.rows:
            found = [] if row.label in left_out else kind.runs(row, column)
            if found:
                runs[row.label, column.label] = found
    forget_examples()
    pretrains = {(v, s): cell for v, cells in pretrained.cells.items() for s, cell in cells.items()}
    cells = [*data.cells, *pretrains.values(), *finetuned.cells, *asked.cells]
    exports = _exports(ablation.exports, runs, {cell.name: cell for cell in cells})
    return TablePlan(
        cells=(*cells, *exports),
        runs=runs,
        pretrains={key: cell.name for key, cell in pretrains.items()},
        exports=tuple(cell.name for cell in exports),
        configs=finetuned.configs,
        examples=finetuned.examples,
        steps=pretrained.steps | finetuned.steps,
        left_out=left_out,
    )


def _exports(exports: tuple[Export, ...], runs, cells: dict[str, Cell]) -> list[Cell]:
    """Return the cells that export the model of a row's first run in a column."""
    found = []
    for export in exports:
        if (export.row, export.column) in runs:  # a row that is left out has none
            run = runs[export.row, export.column][0]
            name = f"export/{export.column}/{export.row}"
            config = {"model": f"@{run.cell}//model", "examples": list(export.examples)}
            # A SavedModel has the weights and about a megabyte of graphs.
            estimates = {"cost": 15, "bytes": cells[run.cell].bytes + 1e6}
            found.append(Cell(name, "export", config, round=run.pretrain_seed, **estimates))
    return found


def _left_out(ablation: Ablation) -> dict[str, str]:
    """Return {label of a row: what it lacks} of rows whose optional files are missing.

    A variant says that its checkpoint is optional; the paths of a row's own options always are."""
    optional = {v.name: places.lacks(v.checkpoint) for v in ablation.variants if v.optional}
    found = {}
    for row in ablation.rows:
        options = replaced(FinetuneConfig(), **row.finetune).model_options
        paths = [path for one in options for _, path in path_values(one).values() if path]
        missing = [f"{path} is missing" for path in paths if not places.is_there(path)]
        if why := [*missing, *filter(None, [optional.get(row.variant)])]:
            found[row.label] = f"left out, {why[-1]}"
    return found


def files_read(plan: TablePlan) -> list[str]:
    """List the files that a plan's cells read and no cell makes: texts, task files, models and
    such."""
    paths = dict.fromkeys(path for cell in plan.cells for path in cell.reads)
    return [file for path in paths for file in members(path)]
