"""The runs behind one score: pre-training seed, own seed, setting of a search, and fold."""

import dataclasses
import itertools
from typing import NamedTuple

from experiments.tables.planning.ablation import Column, Row
from experiments.training.settings.config import FinetuneConfig
from experiments.training.settings.options import replaced


@dataclasses.dataclass(frozen=True)
class PlannedRun:
    """The cell, seeds and setting of a score of the table; folds of one score share the last
    three."""

    cell: str
    pretrain_seed: int
    finetune_seed: int
    setting: int = 0  # index in Column.search


class Repetition(NamedTuple):
    """One fine-tuning of a row in a column."""

    pretrain_seed: int
    seed: int
    setting: int  # index in Column.search
    fold: int  # from 1; 1 where the column has no folds


def of_column(column: Column, pretrain_seeds: tuple[int, ...], source) -> list[Repetition]:
    """Return the fine-tunings of a row; a `ModelSource` that repeats nothing has one seed."""
    seeds = column.seeds[: None if source.repeats else 1]
    settings, folds = range(max(1, len(column.search))), range(1, max(1, column.folds) + 1)
    return [*map(Repetition._make, itertools.product(pretrain_seeds, seeds, settings, folds))]


def changed(config: FinetuneConfig, column: Column, repetition: Repetition) -> FinetuneConfig:
    """Return a row's FinetuneConfig in a column with the seed, setting and fold of a repetition."""
    fields = {"seed": 1000 * repetition.pretrain_seed + repetition.seed}
    if column.search:
        fields |= column.search[repetition.setting]
    if column.folds:
        options = fields.get("task_options", config.task_options)
        folds = {"folds": column.folds, "fold": repetition.fold}
        fields["task_options"] = {**options, **folds}
    return replaced(config, **fields)


def name(row: Row, column: Column, repetition: Repetition) -> str:
    """Return the name of a fine-tuning's cell."""
    seeds = f"{repetition.pretrain_seed}-{repetition.seed}"
    setting = f"/{repetition.setting + 1}" if column.search else ""
    fold = f"/fold-{repetition.fold}" if column.folds else ""
    return f"finetune/{column.label}/{row.label}/{seeds}{setting}{fold}"
