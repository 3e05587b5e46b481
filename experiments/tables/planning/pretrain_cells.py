"""The pre-trainings of a table, one for each variant and seed, and the models that rows begin
with."""

import dataclasses
import functools
from collections import defaultdict
from collections.abc import Callable

from experiments.tables.planning import cell_inputs, data_cells, places
from experiments.tables.planning.ablation import Ablation, Column, Row, Variant
from experiments.tables.planning.cost import Steps, pretraining_steps, seconds
from experiments.tables.planning.repetitions import PlannedRun, Repetition
from experiments.tables.run.grid import Cell, reference, referred
from experiments.training.folder import shared_prefix
from experiments.training.settings.config import PretrainConfig
from experiments.training.settings.config_values import changes_dict
from experiments.training.start.initial_state import known_sizes, sizes_of
from experiments.training.start.preflight import differing_sizes
from official_bert.common.errors import UserError
from official_bert.objectives import check_direction


class PretrainCells:
    """The pre-trainings of a table. Rows that fine-tune the same variant share them.

    All are planned at once, for a trunk or a teacher may have no row of its own.

    Attributes:
      by_variant: {variant: {seed: Cell}}.
      steps: {name of a cell: its Steps}.
    """

    def __init__(self, ablation: Ablation, vocab: str):
        self.by_variant: dict[str, dict[int, Cell]] = defaultdict(dict)
        self.steps: dict[str, list[Steps]] = {}
        self._ablation, self._vocab = ablation, vocab
        self._records = {data_cells.records_folder(spec.name): spec for spec in ablation.records}
        for variant in ablation.variants:
            for seed in variant.seeds if variant.trains else ():
                self.by_variant[variant.name][seed] = self._cell(variant, seed)

    @property
    def cells(self) -> list[Cell]:
        return [cell for cells in self.by_variant.values() for cell in cells.values()]

    def models(self, variant: Variant, snapshot: int = 0) -> dict[int, str]:
        """Return {seed: folder of its model} of a variant: of its pre-trainings, or checkpoints.

        Args:
          snapshot: the step whose model is meant; 0: the last.
        """
        if variant.checkpoints:
            folders = [*map(places.earlier_model, variant.checkpoints)]
            for folder in folders:
                _check_sizes(variant, folder)
            return dict(zip(variant.seeds, folders, strict=True))
        inside = f"snapshots/step-{snapshot:08d}" if snapshot else "model"
        cells = self.by_variant.get(variant.name, {})
        return {seed: reference(cell.name, inside) for seed, cell in cells.items()}

    def runs(self, row: Row, column: Column) -> list[PlannedRun]:
        """Return the pre-trainings of a row, whose held-out results are its scores."""
        if row.snapshot or row.finetune:
            return []
        cells = self.by_variant.get(row.variant, {})
        return [PlannedRun(cell.name, Repetition(seed)) for seed, cell in cells.items()]

    def _cell(self, variant: Variant, seed: int) -> Cell:
        where, bert = f"variant {variant.name}: objectives", variant.pretrain.bert_config
        check_direction(variant.pretrain.objectives, bert, where)
        config = self._with_files(variant.pretrain, seed)
        self._check_lengths(variant.name, config)
        config, steps_taken = self._behind_trunk(variant.name, config, seed)
        config, beside = self._with_options(config, seed)
        name = f"pretrain/{variant.name}/{seed}"
        self.steps[name] = pretraining_steps(config, self._records, beside, steps_taken)
        return Cell(
            name,
            "pretrain",
            changes_dict(config),
            inputs=cell_inputs.of_training(config),
            cost=seconds(self.steps[name]),
            bytes=_bytes_left(config),
            scored=True,
            affinity=f"pretrain {bert} {config.objectives}",
            round=seed,
        )

    def _with_files(self, config: PretrainConfig, seed: int) -> PretrainConfig:
        """Return a variant's PretrainConfig with a seed and the files of the corpus."""
        phases = []
        for phase in config.phases:
            folder = data_cells.records_folder(phase.records)
            files = {"records": folder, "heldout_records": f"{folder}/heldout"}
            phases.append(dataclasses.replace(phase, **files))
        lower = self._ablation.corpus.do_lower_case
        corpus = {"phases": tuple(phases), "vocab": self._vocab, "do_lower_case": lower}
        return dataclasses.replace(config, **corpus, seed=seed)

    def _check_lengths(self, variant: str, config: PretrainConfig) -> None:
        positions = config.bert_config.max_position_embeddings
        for phase in config.phases:
            length = self._records[phase.records].max_seq_length
            if phase.max_seq_length not in (0, length):
                told = f"{phase.max_seq_length}: its records have sequences of {length} tokens"
                raise UserError(f"variant {variant}: max_seq_length={told}")
            if length > positions:
                told = f"positions for {positions} tokens, its records {length}"
                raise UserError(f"variant {variant}: its model has {told}")

    def _behind_trunk(
        self, variant: str, config: PretrainConfig, seed: int
    ) -> tuple[PretrainConfig, int]:
        """Return a PretrainConfig with the folder of its trunk, and the steps taken there."""
        if not config.trunk:
            return config, 0
        cell, trunk = self._planned_before("trunk", config.trunk, seed)
        before = self._with_files(trunk, seed)
        shared_prefix.check_steps(config, before, f"variant {variant}: trunk={config.trunk}")
        return dataclasses.replace(config, trunk=reference(cell.name)), trunk.num_train_steps

    def _with_options(
        self, config: PretrainConfig, seed: int
    ) -> tuple[PretrainConfig, list[Callable]]:
        """Return a PretrainConfig whose options have their folders, and the FLOPs beside its model
        as functions (`Options.planned`)."""
        model_of = functools.partial(self._model_of, seed=seed)
        planned = [options.planned(config, model_of) for options in config.model_options]
        config = dataclasses.replace(config, model_options=tuple(options for options, _ in planned))
        return config, [flops_of for _, flops_of in planned if flops_of]

    def _planned_before(self, field: str, text: str, seed: int) -> tuple[Cell, PretrainConfig]:
        """Return the cell and the PretrainConfig of the variant that a field names as "@NAME"."""
        name, _ = referred(text)
        if not name:
            raise UserError(f'{field}={text}: in a table it is "@" and the name of a variant')
        if seed not in self.by_variant.get(name, {}):
            raise UserError(
                f"{field} @{name}: no variant {name} is pre-trained with seed {seed} before it"
            )
        return self.by_variant[name][seed], self._ablation.variant(name).pretrain

    def _model_of(self, field: str, model: str, seed: int):
        """Return (folder, BertConfig) of the model that an option's field names (see
        `Options.planned`)."""
        if not referred(model)[0]:
            return model, sizes_of(model)
        cell, config = self._planned_before(field, model, seed)
        return reference(cell.name, "model"), config.bert_config


def _check_sizes(variant: Variant, folder: str) -> None:
    found = known_sizes(folder)
    if found and (different := differing_sizes(variant.pretrain.bert_config, found)):
        raise UserError(
            f"variant {variant.name}: {folder} is not a model of its pretrain: {different}"
        )


def _bytes_left(config: PretrainConfig) -> float:
    """Return the bytes of a finished run's model, snapshots and checkpoints."""
    models = 1 + len(config.snapshots)
    kept = config.keep_checkpoints + bool(config.eval_every)  # the newest, and the best one
    # The last step is always saved.
    saved = -(-config.num_train_steps // config.save_every) if config.save_every else 1
    checkpoints = min(kept, saved)
    # A model has its weights in float32, a checkpoint both moments of Adam too.
    return 4 * config.bert_config.num_parameters * (models + 3 * checkpoints)
