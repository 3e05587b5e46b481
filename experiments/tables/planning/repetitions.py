"""The runs behind one score: pre-training seed, own seed, setting of a search, and fold."""

import dataclasses
import itertools

from experiments.tables.planning.ablation import RESTARTS, Column, Row
from experiments.training.settings.config import FinetuneConfig
from experiments.training.settings.options import replaced


@dataclasses.dataclass(frozen=True)
class Repetition:
    """One of the runs behind a score.

    Attributes:
      pretrain_seed: of the pre-trained model.
      finetune_seed: of `Column.seeds`; 0 where nothing is fine-tuned.
      setting: index in `Column.search`, from 0.
      fold: number of the fold, from 1 as in `task_options`; 1 where the column has no folds.
    """

    pretrain_seed: int
    finetune_seed: int = 0
    setting: int = 0
    fold: int = 1


@dataclasses.dataclass(frozen=True)
class PlannedRun:
    """The name of a cell whose result enters a score, and which of the score's runs it is."""

    cell: str
    repetition: Repetition


def of_column(column: Column, pretrain_seeds: tuple[int, ...], source) -> list[Repetition]:
    """Return the fine-tunings of a row in a column.

    Args:
      source: ModelSource of the row; where its runs do not depend on the seed, the first seed alone
        is used.
    """
    seeds = column.seeds if source.repeats else column.seeds[:1]
    settings, folds = range(max(1, len(column.search))), range(1, max(1, column.folds) + 1)
    product = itertools.product(pretrain_seeds, seeds, settings, folds)
    return [Repetition(*one) for one in product]


def changed(config: FinetuneConfig, column: Column, repetition: Repetition) -> FinetuneConfig:
    """Return a row's FinetuneConfig in a column with the seed, setting and fold of a repetition.

    A setting of `Column.search` replaces the row's own."""
    fields = {"seed": RESTARTS * repetition.pretrain_seed + repetition.finetune_seed}
    if column.search:
        fields |= column.search[repetition.setting]
    if column.folds:
        options = fields.get("task_options", config.task_options)
        folds = {"folds": column.folds, "fold": repetition.fold}
        fields["task_options"] = {**options, **folds}
    return replaced(config, **fields)


def name(row: Row, column: Column, repetition: Repetition) -> str:
    """Return the name of a fine-tuning's cell."""
    seeds = f"{repetition.pretrain_seed}-{repetition.finetune_seed}"
    setting = f"/{repetition.setting + 1}" if column.search else ""
    fold = f"/fold-{repetition.fold}" if column.folds else ""
    return f"finetune/{column.label}/{row.label}/{seeds}{setting}{fold}"
