"""The fine-tunings of a table: a cell for each, which columns that ask the same share."""

import dataclasses
import json
from collections.abc import Callable
from typing import Any

from experiments.tables.planning import key_fields, places, repetitions, work
from experiments.tables.planning.ablation import Ablation, Column, Row, Variant
from experiments.tables.planning.data_cells import TableData
from experiments.tables.planning.pretrain_cells import PretrainCells
from experiments.tables.planning.repetitions import PlannedRun
from experiments.tables.run.grid import Cell
from experiments.training.finetuning import example_scores
from experiments.training.folder.inputs import read_task, task_digest
from experiments.training.settings.config import FinetuneConfig
from experiments.training.settings.config_values import changes_dict
from experiments.training.settings.options import replaced
from experiments.training.start import initialization
from experiments.training.start.initialization import ModelSource


@dataclasses.dataclass(frozen=True)
class _Finetuning:
    """One fine-tuning with all that it reads.

    Attributes:
      config: FinetuneConfig with the paths of its data and its model.
      source: its ModelSource.
      bert: BertConfig of its model.
      digest: of its examples; "" where another cell makes them.
      examples: numbers of training and dev examples.
    """

    config: FinetuneConfig
    source: ModelSource
    bert: Any
    digest: str
    examples: tuple[int, int]


class FinetuneCells:
    """The fine-tunings of a table.

    Attributes:
      work: {name of a cell: its Work}.
      examples: {column: numbers of training and dev examples}.

    Args:
      look: called with each column whose data are there, and its FinetuneConfig.
    """

    def __init__(
        self, ablation: Ablation, data: TableData, pretrained: PretrainCells, look: Callable
    ):
        self.work: dict[str, work.Work] = {}
        self.examples: dict[str, tuple[int, int]] = {}
        self._ablation, self._data, self._pretrained = ablation, data, pretrained
        self._look = look
        self._cells: dict[str, Cell] = {}  # by configuration and data

    def runs(self, row: Row, column: Column) -> list[tuple[Cell, PlannedRun]]:
        """Return the fine-tunings of a row in a column."""
        variant = self._ablation.variant(row.variant)
        config = self._config(row, column, variant)
        source = initialization.of(config)
        bert = variant.pretrain.bert_config if variant.pretrain else places.shape_of(config.model)
        models = self._pretrained.models(variant, row.snapshot)
        # A checkpoint is the same for all seeds of a table's pre-trainings.
        seeds = variant.seeds if variant.pretrain or source.has_seeds else (0,)
        found = []
        for repetition in repetitions.of_column(column, seeds, source):
            seed = repetition.pretrain_seed
            changed = repetitions.changed(config, column, repetition)
            digest, examples = self._read(column, changed)
            changed = self._begun(changed, source, variant, seed, models.get(seed, ""))
            finetuning = _Finetuning(changed, source, bert, digest, examples)
            name = repetitions.name(row, column, repetition)
            cell = self._cell(finetuning, name, column.label, seed)
            seeds_of_run = seed, repetition.seed, repetition.setting
            found.append((cell, PlannedRun(cell.name, *seeds_of_run)))
        return found

    def _config(self, row: Row, column: Column, variant: Variant) -> FinetuneConfig:
        """Return a row's FinetuneConfig in a column, but for what differs between its runs."""
        config = replaced(column.finetune, **row.finetune)
        if not variant.pretrain:
            config = dataclasses.replace(config, model=places.checkpoint(variant.checkpoint))
        exports = ((export.row, export.column) for export in self._ablation.exports)
        return dataclasses.replace(
            config,
            data_dir=places.task_folder(config.data_dir, self._ablation.data_dir),
            save_model=(row.label, column.label) in exports,
        )

    def _begun(
        self, config: FinetuneConfig, source: ModelSource, variant: Variant, seed: int, model: str
    ) -> FinetuneConfig:
        """Return a FinetuneConfig with the start that a variant gives it.

        Args:
          seed: of the pre-training.
          model: folder of the pre-trained model, if there is one.
        """
        if variant.learnt:
            vectors = self._data.vectors[variant.name, seed]
            config = source.given(config, {"learnt": f"@{vectors}"})
        if variant.random_init:
            return dataclasses.replace(
                config,
                bert=variant.pretrain.bert,
                initial_seed=seed,
                vocab=self._data.vocab,
                do_lower_case=self._ablation.corpus.do_lower_case,
            )
        return source.given(config, {"model": model}) if model else config

    def _read(self, column: Column, config: FinetuneConfig) -> tuple[str, tuple[int, int]]:
        """Return (digest of a column's examples, their numbers in training and dev)."""
        if config.data_dir.startswith("@"):  # its cell's key is in the keys of those that read it
            digest, (train, dev) = "", self._data.nli_examples
        else:
            digest, train, dev = task_digest(config)
            if column.label not in self.examples:
                if column.folds:
                    example_scores.check_folds(read_task(config)[0], column.metric)
                self._look(column, config)
        limits = config.max_train_examples or train, config.max_dev_examples or dev
        self.examples[column.label] = min(train, limits[0]), min(dev, limits[1])
        return digest, self.examples[column.label]

    def _cell(self, finetuning: _Finetuning, name: str, column: str, seed: int) -> Cell:
        """Return the cell of a fine-tuning: another column's, where that one runs the same."""
        config, bert = finetuning.config, finetuning.bert
        files = key_fields.fingerprints(config)
        prints = files | {"data": finetuning.digest}
        question = changes_dict(config) | {"save_model": None}, prints
        same = json.dumps(question, sort_keys=True)
        known = self._cells.get(same)
        if known and not config.save_model:
            return known
        name = known.name if known else name
        examples = finetuning.examples
        self.work[name] = work.of_finetuning(config, finetuning.source, bert, examples)
        self._cells[same] = Cell(
            name,
            "finetune",
            changes_dict(config),
            ignored=(*key_fields.ignored(config, keep="save_model"), "data_dir", *files),
            fingerprints=prints,
            cost=self.work[name].usual_seconds,
            scored=True,
            affinity=f"finetune {column} {bert} {config.bilstm} {config.features}",
            round=seed,
        )
        return self._cells[same]
