"""From an `Ablation` to the cells of a grid: the work that a table needs, each piece once.

    sentences -> vocabulary -> records/NAME -> pretrain/VARIANT/SEED
              -> vectors/KIND/SEED
        -> finetune/COLUMN/ROW/SEEDS -> export, cloze/RECORDS/VARIANT/SEED,
           pairs/QUESTION/RECORDS/VARIANT/SEED

Rows that fine-tune the same variant share its pre-training. A vocabulary file or a model that is
given needs no cell.
"""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from data_prep.jobs.outputs import members
from experiments.tables.planning import checkpoints, cost, data_cells, key_fields, repetitions
from experiments.tables.planning.ablation import Ablation, Column, Row, Variant
from experiments.tables.run.grid import Cell
from experiments.training.finetuning import example_scores
from experiments.training.folder.inputs import (
    checkpoint_digest,
    forget_examples,
    read_task,
    task_digest,
)
from experiments.training.settings.config import FinetuneConfig, PretrainConfig, path_values
from experiments.training.settings.config_values import changes_dict
from experiments.training.settings.flops import RATE, pretrain_flops
from experiments.training.settings.options import classes_for, replaced
from experiments.training.start import initialization
from official_bert.common.errors import UserError
from official_bert.objectives import check_direction, parse_spec


@dataclasses.dataclass(frozen=True)
class PlannedRun:
    """The cell, seeds and setting of a score of the table; folds of one score share the last
    three."""

    cell: str
    pretrain_seed: int
    finetune_seed: int
    setting: int = 0  # index in Column.search


@dataclasses.dataclass(frozen=True)
class TablePlan:
    """The cells and where their results belong.

    Attributes:
      cells: of the whole table.
      runs: (row label, column label) -> its runs.
      pretrains: (variant name, seed) -> cell, where the table pre-trains.
      exports: cells of exports.
      data: column label -> (training examples, dev examples).
      shapes: fine-tuning cell -> (BertConfig whose step tells the rate, or None; FLOPs).
      beside: pre-training cell -> function of the FLOPs beside its model (`Options.planned`).
      left_out: label of a row that is left out -> what it lacks.
    """

    cells: tuple[Cell, ...]
    runs: dict[tuple[str, str], tuple[PlannedRun, ...]]
    pretrains: dict[tuple[str, int], str]
    exports: tuple[str, ...]
    data: dict[str, tuple[int, int]]
    shapes: dict[str, Any]
    beside: dict[str, Callable[..., float]] = dataclasses.field(default_factory=dict)
    left_out: dict[str, str] = dataclasses.field(default_factory=dict)


def files_read(plan) -> list[str]:
    """List the files that a plan's cells read and no cell makes: texts, task files, models and
    such."""
    names = ["inputs", "train", "heldout", "mnli_dev", "others"]
    for kind in (PretrainConfig, FinetuneConfig):
        parts = (kind, *classes_for(kind))
        fields = (field for part in parts for field in dataclasses.fields(part))
        names += [field.name for field in fields if field.metadata.get("path")]
    found = []
    for cell in plan.cells:
        for value in (cell.config.get(name) or () for name in names):
            found += [value] if isinstance(value, str) else value
    return [file for path in dict.fromkeys(found) if path[:1] != "@" for file in members(path)]


def plan(ablation: Ablation, look: Callable = lambda column, config: None) -> TablePlan:
    """Return the cells of an ablation.

    Args:
      look: called with each column whose data are there, and its FinetuneConfig, while these are in
        memory (`inputs.read_task`).

    Raises:
      UserError: data that the ablation names is missing.
    """
    try:
        return _Planner(ablation, look).plan()
    finally:
        forget_examples()


class _Planner:
    """Adds the cells of a table in the order of the drawing above.

    Attributes:
      cells: name -> cell.
      vocab: the vocabulary's file, or a reference to it.
      pretrains: (variant, seed) -> name of its cell.
      models: (variant, seed) -> reference to its run, or a checkpoint that was there before.
      same: configuration and data of a fine-tuning -> name of its cell, which columns may share.
      data, shapes, beside: as of `TablePlan`.
    """

    def __init__(self, ablation, look):
        self.ablation, self.look = ablation, look
        self.cells: dict[str, Cell] = {}
        self.vocab = ""
        self.pretrains: dict[tuple[str, int], str] = {}
        self.models: dict[tuple[str, int], str] = {}
        self.same: dict[str, str] = {}
        self.data: dict[str, tuple[int, int]] = {}
        self.shapes: dict[str, Any] = {}
        self.beside: dict[str, Callable[..., float]] = {}

    def plan(self) -> TablePlan:
        ablation = self.ablation
        if any(v.pretrain or v.learnt for v in ablation.variants):
            made, self.vocab = data_cells.of_corpus(ablation)
            self.cells |= {cell.name: cell for cell in made}
        tuned = [column.finetune for column in ablation.columns if column.finetune]
        if ablation.nli_mixture and any(t.data_dir.startswith("@nli//") for t in tuned):
            self.cells["nli"] = data_cells.nli(ablation)
        for variant in ablation.variants:
            self._add_pretrainings(variant)
        runs, left_out = {}, _left_out(ablation)
        for column in ablation.columns:
            for row in (row for row in ablation.rows if row.label not in left_out):
                planned = self._runs(row, column)
                if planned:
                    runs[row.label, column.label] = tuple(planned)
        # A row that is left out has no runs.
        exported = (one for one in ablation.exports if (one.row, one.column) in runs)
        exports = tuple(self._add_export(export, runs) for export in exported)
        return TablePlan(
            cells=tuple(self.cells.values()),
            runs=runs,
            pretrains=self.pretrains,
            exports=exports,
            data=self.data,
            shapes=self.shapes,
            beside=self.beside,
            left_out=left_out,
        )

    def _add(self, name: str, kind: str, config: dict, **fields) -> str:
        """Add a cell; return its name."""
        self.cells[name] = Cell(name, kind, config, **fields)
        return name

    # Pre-training.

    def _add_pretrainings(self, variant: Variant):
        if variant.checkpoints:
            made = zip(variant.seeds, variant.checkpoints, strict=True)
            self.models |= {(variant.name, seed): checkpoints.folder(path) for seed, path in made}
        for seed in variant.seeds if variant.trains else ():
            self._add_pretraining(variant, seed)

    def _add_pretraining(self, variant: Variant, seed: int):
        config = self._pretrain_config(variant.pretrain, seed)
        bert = config.bert_config
        check_direction(config.objectives, bert, f"variant {variant.name}: objectives")
        name, flops = f"pretrain/{variant.name}/{seed}", pretrain_flops(config)
        if config.trunk:
            trunk = self.variants_cell("trunk", config.trunk, seed)
            before = self.ablation.variant(config.trunk.removeprefix("@")).pretrain
            flops -= pretrain_flops(before)
            config = dataclasses.replace(config, trunk=f"@{trunk}")
        planned = [one.planned(self, config, seed) for one in config.model_options]
        config = dataclasses.replace(config, model_options=tuple(one for one, _ in planned))
        for beside in (work for _, work in planned if work):
            self.beside[name] = beside
            flops += pretrain_flops(config, beside=beside)
        prints = key_fields.fingerprints(config)
        self.pretrains[variant.name, seed] = self._add(
            name,
            "pretrain",
            changes_dict(config),
            ignored=(*key_fields.ignored(config, keep="snapshots"), *prints),
            fingerprints=prints,
            cost=cost.seconds(flops, initialization.of(config).rate or RATE),
            scored=True,
            affinity=f"pretrain {bert} {config.objectives}",
            round=seed,
        )
        self.models[variant.name, seed] = f"@{name}"

    def _pretrain_config(self, given: PretrainConfig, seed: int) -> PretrainConfig:
        """Return a variant's PretrainConfig with the files of the corpus filled in."""
        folders = [data_cells.records_folder(phase.records) for phase in given.phases]
        phases = tuple(
            dataclasses.replace(phase, records=folder, heldout_records=f"{folder}/heldout")
            for phase, folder in zip(given.phases, folders, strict=True)
        )
        lower = self.ablation.corpus.do_lower_case
        filled = {"phases": phases, "vocab": self.vocab, "do_lower_case": lower}
        return dataclasses.replace(given, **filled, seed=seed)

    def variants_cell(self, field, reference, seed):
        """Return the cell of the variant that a field names as "@NAME", with the same seed."""
        name = reference.removeprefix("@")
        if (name, seed) not in self.pretrains:
            raise UserError(f"{field} @{name}: no variant {name} with seed {seed} stands before it")
        return self.pretrains[name, seed]

    # Fine-tuning.

    def _runs(self, row: Row, column: Column) -> list[PlannedRun]:
        variant = self.ablation.variant(row.variant)
        if column.question:
            return self._question_runs(row, column, variant)
        if column.finetune is None:
            return [
                PlannedRun(cell, seed, 0)
                for (name, seed), cell in self.pretrains.items()
                if name == variant.name and not row.snapshot and not row.finetune
            ]
        # A row without a pre-training is trained anew for each seed of the others.
        model = checkpoints.resolve_package(variant.checkpoint)
        source = initialization.of(FinetuneConfig(model=model))
        trained = variant.pretrain or source.has_seeds
        runs = []
        for one in repetitions.of_column(column, variant.seeds if trained else (0,), source):
            cell = self._add_finetuning(row, column, one)
            runs.append(PlannedRun(cell, one.pretrain_seed, one.seed, one.setting))
        return runs

    def _question_runs(self, row: Row, column: Column, variant: Variant) -> list[PlannedRun]:
        asked = column.question
        if row.finetune or not variant.pretrain:
            return []
        bert = variant.pretrain.bert_config
        learnt = {parse_spec(spec)[0] for spec in variant.pretrain.objectives}
        if learnt.isdisjoint(asked.asked_of):
            return []
        runs = []
        for (name, seed), pretrained in self.models.items():
            if name == variant.name:
                config = {
                    "model": (model := _model(pretrained, row)),
                    "records": data_cells.records_folder(asked.records),
                    "max_examples": asked.max_examples,
                }
                kind, asks, more = asked.cell(bert)
                config |= more
                names = [kind, asks, asked.records, name, str(seed)]
                names += [row.snapshot, asked.max_examples]
                cell = "/".join(str(part) for part in names if part)
                prints = {} if model[0] == "@" else {"model": checkpoint_digest(model)}
                fields = {"ignored": tuple(prints), "fingerprints": prints}
                self._add(cell, kind, config, cost=15, scored=True, round=seed, **fields)
                runs.append(PlannedRun(cell, seed, 0))
        return runs

    def _add_finetuning(self, row: Row, column: Column, one: repetitions.Repetition) -> str:
        """Add the cell of a fine-tuning, unless another column scores the same run; return its
        name."""
        config, source, digest, counts = self._finetune_config(row, column, one)
        prints = key_fields.fingerprints(config)
        ignored = (*key_fields.ignored(config, keep="save_model"), "data_dir", *prints)
        prints["data"] = digest
        values = changes_dict(config) | {"save_model": None}
        same = json.dumps([values, prints], sort_keys=True)
        name = self.same.setdefault(same, repetitions.name(row, column, one))
        if name in self.cells and not config.save_model:
            return name
        bert, flops = self._finetune_work(row, config, source, counts)
        if flops:
            self.shapes[name] = (None if source.rate else bert), flops
        return self._add(
            name,
            "finetune",
            changes_dict(config),
            ignored=ignored,
            fingerprints=prints,
            cost=cost.seconds(flops, source.rate or RATE),
            scored=True,
            affinity=f"finetune {column.label} {bert} {config.bilstm} {config.features}",
            round=one.pretrain_seed,
        )

    def _finetune_config(
        self, row, column, one
    ) -> tuple[FinetuneConfig, Any, str, tuple[int, int]]:
        """Return (FinetuneConfig with data and model, its ModelSource, digest of its data, numbers
        of training and dev examples)."""
        config = repetitions.changed(row, column, one)
        folder = data_cells.task_folder(self.ablation.data_dir, config.data_dir)
        config = dataclasses.replace(config, data_dir=folder)
        digest, counts = self._examples(column, config)
        config, source = self._with_model(config, row, one.pretrain_seed)
        exported = [(export.row, export.column) for export in self.ablation.exports]
        kept = (row.label, column.label) in exported
        return dataclasses.replace(config, save_model=kept), source, digest, counts

    def _finetune_work(self, row, config, source, counts) -> tuple[Any, float]:
        """Return (BertConfig, FLOPs) of a fine-tuning."""
        made = self.ablation.variant(row.variant).pretrain
        bert = made.bert_config if made else checkpoints.shape(config.model)
        rows = (round(count * cost.windows(config)) for count in counts)
        return bert, source.planned_flops(config, bert, *rows)

    def _examples(self, column, config) -> tuple[str, tuple[int, int]]:
        """Return (digest of a column's examples, their numbers in training and dev)."""
        if config.data_dir.startswith("@"):
            # Made later, and its cell's key is in this key: the sizes are those of the mixture of
            # MNLI and SNLI's dev sets with VitaminC.
            digest, train, dev = "", 67_426, 4_896
        else:
            digest, train, dev = task_digest(config)
            if column.label not in self.data:
                if column.folds:
                    example_scores.check_folds(read_task(config)[0], column.metric)
                self.look(column, config)
        limits = config.max_train_examples or train, config.max_dev_examples or dev
        self.data[column.label] = min(train, limits[0]), min(dev, limits[1])
        return digest, self.data[column.label]

    def _with_model(self, config, row, seed) -> tuple[FinetuneConfig, Any]:
        """Return (`config` with the model of a row's pre-training seed, its ModelSource)."""
        variant = self.ablation.variant(row.variant)
        if not variant.pretrain:
            model = checkpoints.resolve_package(variant.checkpoint)
            config = dataclasses.replace(config, model=model)
        source = initialization.of(config)
        if variant.learnt:
            name, *_ = source.corpus_cell(variant.learnt, seed, True)
            config = source.given(config, {"learnt": f"@{name}"})
        if variant.random_init:
            config = dataclasses.replace(
                config,
                bert=variant.pretrain.bert,
                initial_seed=seed,
                vocab=self.vocab,
                do_lower_case=self.ablation.corpus.do_lower_case,
            )
        elif variant.pretrain:
            config = source.given(config, {"model": _model(self.models[variant.name, seed], row)})
        return config, source

    def _add_export(self, export, runs) -> str:
        run = runs[export.row, export.column][0]
        return self._add(
            f"export/{export.column}/{export.row}",
            "export",
            {"model": f"@{run.cell}//model", "examples": list(export.examples)},
            cost=15,
            round=run.pretrain_seed,
        )


def _left_out(ablation: Ablation) -> dict[str, str]:
    """Return {label of a row: what it lacks} of rows whose optional files are missing."""
    optional = {v.name: v.checkpoint for v in ablation.variants if v.optional}
    found = {}
    for row in ablation.rows:
        given = replaced(FinetuneConfig(), **row.finetune).model_options
        read = [path for one in given for _, path in path_values(one).values()]
        for path in (*read, optional.get(row.variant, "")):
            if path and not Path(path).exists():
                found[row.label] = f"left out, {path} is missing"
    return found


def _model(pretrained: str, row: Row) -> str:
    """Return the model folder inside a pre-training's run; a checkpoint is returned as it is."""
    if pretrained[0] != "@":
        return pretrained
    return f"{pretrained}//" + (f"snapshots/step-{row.snapshot:08d}" if row.snapshot else "model")
