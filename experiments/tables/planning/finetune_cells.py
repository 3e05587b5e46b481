"""The fine-tunings of a table, a cell for each; columns that ask the same share them."""

import dataclasses
import json
from typing import Any

from data_prep.tasks import get_task
from experiments.tables.planning import cell_inputs, places, repetitions
from experiments.tables.planning.ablation import Ablation, Column, Row, Variant
from experiments.tables.planning.cost import Steps, finetuning_steps, seconds
from experiments.tables.planning.data_cells import TableData
from experiments.tables.planning.pretrain_cells import PretrainCells
from experiments.tables.planning.repetitions import PlannedRun, Repetition
from experiments.tables.run.grid import Cell, reference, referred
from experiments.training.finetuning import example_scores
from experiments.training.folder.inputs import TaskExamples, read_task, task_examples
from experiments.training.settings.config import FinetuneConfig
from experiments.training.settings.config_values import changes_dict
from experiments.training.settings.options import replaced
from experiments.training.start import finetuning_preflight, initialization
from experiments.training.start.initialization import ModelSource
from official_bert.common.errors import UserError, check_choice

_RESULTS = 1e5  # bytes of results, metrics and scores


class FinetuneCells:
    """The fine-tunings of a table.

    Attributes:
      steps: {name of a cell: its Steps}.
      configs: {column: FinetuneConfig of its first run, before its model is filled in}.
      examples: {column: numbers of training and dev examples of its first run}.
    """

    def __init__(self, ablation: Ablation, data: TableData, pretrained: PretrainCells):
        self.steps: dict[str, list[Steps]] = {}
        self.configs: dict[str, FinetuneConfig] = {}
        self.examples: dict[str, tuple[int, int]] = {}
        self._ablation, self._data, self._pretrained = ablation, data, pretrained
        self._exported = {(export.row, export.column) for export in ablation.exports}
        self._cells: dict[str, Cell] = {}  # by what they ask (`_add`)
        # Of the first run of a column and fold: what it is scored against.
        self._golds: dict[tuple[str, int], str] = {}

    @property
    def cells(self) -> list[Cell]:
        return [*self._cells.values()]

    def runs(self, row: Row, column: Column) -> list[PlannedRun]:
        """Return the fine-tunings of a row in a column; their cells are added to `cells`.

        Raises:
          UserError: data are missing, the row's runs would be refused, or their dev examples are
            not those of the column's first row.
        """
        variant = self._ablation.variant(row.variant)
        config = self._config(row, column, variant)
        source = initialization.of(config)
        bert = variant.pretrain.bert_config if variant.pretrain else source.planned_bert(config)
        for setting in range(max(1, len(column.search))):
            first = repetitions.changed(config, column, Repetition(0, setting=setting))
            self._check(first, variant, row, column)
        models = self._pretrained.models(variant, row.snapshot)
        # A checkpoint is the same for all seeds of a table's pre-trainings.
        seeds = variant.seeds if variant.pretrain or source.has_seeds else (0,)
        runs = []
        for repetition in repetitions.of_column(column, seeds, source):
            seed = repetition.pretrain_seed
            tuning = repetitions.changed(config, column, repetition)
            # The first run's model is exported.
            saves = not runs and (row.label, column.label) in self._exported
            tuning = dataclasses.replace(tuning, save_model=saves)
            examples = self._examples(tuning, column)
            scored_on = column.label, repetition.fold
            if self._golds.setdefault(scored_on, examples.golds) != examples.golds:
                raise UserError(
                    f"column {column.label}, row {row.label}: with task_options="
                    f"{tuning.task_options} it is scored on other dev examples than the column's "
                    "first run, so their scores do not compare"
                )
            if column.label not in self.configs:
                _check_folds(column, tuning)
                self.configs[column.label] = tuning
                self.examples[column.label] = examples.train, examples.dev
            tuning = self._with_start(tuning, source, variant, seed, models.get(seed, ""))
            steps = finetuning_steps(tuning, source, bert, examples.train, examples.dev)
            cell = Cell(
                repetitions.name(row, column, repetition),
                "finetune",
                changes_dict(tuning),
                inputs=cell_inputs.of_training(tuning, examples.digest),
                cost=seconds(steps),
                bytes=_RESULTS + (4 * bert.num_parameters if bert and saves else 0),
                leaves_model=saves,
                scored=True,
                affinity=f"finetune {column.label} {bert} {tuning.bilstm} {tuning.features}",
                round=seed,
            )
            runs.append(PlannedRun(self._add(cell, steps), repetition))
        return runs

    def _config(self, row: Row, column: Column, variant: Variant) -> FinetuneConfig:
        """Return a row's FinetuneConfig in a column, but for what differs between its runs."""
        config = replaced(column.finetune, **row.finetune)
        if not variant.pretrain:
            config = dataclasses.replace(config, model=places.checkpoint(variant.checkpoint))
        folder = places.task_folder(config.data_dir, self._ablation.data_dir)
        return dataclasses.replace(config, data_dir=folder)

    def _check(self, config: FinetuneConfig, variant: Variant, row: Row, column: Column) -> None:
        """Raise the UserErrors of a row's runs that show before its model is there."""
        try:
            finetuning_preflight.check_kind(config, initialization.of(config))
            if referred(config.data_dir)[0]:  # without its files a task knows no labels
                get_task(config.task, config.data_dir, **config.task_options)
                return
            task, _, _ = read_task(config)
            known = variant.pretrain and variant.pretrain.bert_config
            finetuning_preflight.check_model(config, task, known)
            check_choice("metric", column.metric or task.metrics[0], task.metrics)
            head, exported = task.head["head"], (row.label, column.label) in self._exported
            if exported and head != "classification":
                raise UserError(f"a table exports classifiers; {config.task} is {head}")
        except UserError as error:
            raise UserError(f"column {column.label}, row {row.label}: {error}") from None

    def _with_start(
        self, config: FinetuneConfig, source: ModelSource, variant: Variant, seed: int, model: str
    ) -> FinetuneConfig:
        """Return a FinetuneConfig with the model, the vectors or the random weights of a variant.

        Args:
          seed: of the pre-training.
          model: folder of the pre-trained model, "" where there is none.
        """
        if variant.learnt:
            vectors = reference(self._data.vectors[variant.name, seed])
            config = source.given(config, {"learnt": vectors})
        if variant.random_init:
            return dataclasses.replace(
                config,
                bert=variant.pretrain.bert,
                initial_seed=seed,
                vocab=self._data.vocab,
                do_lower_case=self._ablation.corpus.do_lower_case,
            )
        return source.given(config, {"model": model}) if model else config

    def _examples(self, config: FinetuneConfig, column: Column) -> TaskExamples:
        """Describe the examples of a fine-tuning, whose folder is known.

        The key of the cell that makes them stands for the digests."""
        maker, _ = referred(config.data_dir)
        if not maker:
            found = task_examples(config)
        elif maker in self._data.examples:
            found = TaskExamples("", "", *self._data.examples[maker])
        else:
            raise UserError(
                f"column {column.label}: data_dir={config.data_dir}, and the table makes no "
                f"{maker} (nli is made of nli_mixture)"
            )
        train = min(found.train, config.max_train_examples or found.train)
        dev = min(found.dev, config.max_dev_examples or found.dev)
        return dataclasses.replace(found, train=train, dev=dev)

    def _add(self, cell: Cell, steps: list[Steps]) -> str:
        """Add a cell, and return its name: another column's, where that one runs the same.

        A run that keeps its model takes the place of one that keeps none."""
        asked: dict[str, Any] = {**cell.config, "save_model": None}
        same = json.dumps([asked, cell.inputs.fingerprints], sort_keys=True)
        known = self._cells.get(same, cell)
        kept = cell if cell.leaves_model else known
        self._cells[same] = dataclasses.replace(kept, name=known.name)
        self.steps[known.name] = steps
        return known.name


def _check_folds(column: Column, config: FinetuneConfig) -> None:
    if column.folds and referred(config.data_dir)[0]:
        raise UserError(f"column {column.label}: folds are of data that are there, not made")
    if column.folds:
        example_scores.check_folds(read_task(config)[0], column.metric)
