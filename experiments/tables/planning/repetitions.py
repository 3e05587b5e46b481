"""Fine-tunings behind one score: pre-training seed, own seed, setting of a search, and fold."""

import itertools
from typing import NamedTuple

from experiments.tables.planning.ablation import Column, Row
from experiments.training.settings.config import FinetuneConfig
from experiments.training.settings.options import replaced


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


def changed(row: Row, column: Column, one: Repetition) -> FinetuneConfig:
    """Return a column's FinetuneConfig with the fields of the row, and seed, setting and fold."""
    changes = dict(row.finetune) | {"seed": 1000 * one.pretrain_seed + one.seed}
    if column.search:
        changes |= column.search[one.setting]
    if column.folds:
        options = changes.get("task_options", column.finetune.task_options)
        changes["task_options"] = {**options, "folds": column.folds, "fold": one.fold}
    return replaced(column.finetune, **changes)


def name(row: Row, column: Column, one: Repetition) -> str:
    """Return the name of a fine-tuning's cell."""
    setting = f"/{one.setting + 1}" if column.search else ""
    fold = f"/fold-{one.fold}" if column.folds else ""
    return f"finetune/{column.label}/{row.label}/{one.pretrain_seed}-{one.seed}{setting}{fold}"
