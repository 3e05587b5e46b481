"""The pre-trainings of a table, one for each variant and seed, and the models that rows begin
with."""

import dataclasses
import functools

from experiments.tables.planning import data_cells, key_fields, places, work
from experiments.tables.planning.ablation import Ablation, Row, Variant
from experiments.tables.planning.repetitions import PlannedRun
from experiments.tables.run.grid import Cell
from experiments.training.settings.config import PretrainConfig
from experiments.training.settings.config_values import changes_dict
from official_bert.common.errors import UserError
from official_bert.objectives import check_direction


class PretrainCells:
    """The pre-trainings of a table. Rows that fine-tune the same variant share them.

    Attributes:
      cells: {(variant, seed): Cell}.
      work: {name of a cell: its Work}.
    """

    def __init__(self, ablation: Ablation, vocab: str):
        self.cells: dict[tuple[str, int], Cell] = {}
        self.work: dict[str, work.Work] = {}
        self._ablation, self._vocab = ablation, vocab
        self._records = {data_cells.records_folder(spec.name): spec for spec in ablation.records}
        for variant in ablation.variants:
            for seed in variant.seeds if variant.trains else ():
                self.cells[variant.name, seed] = self._cell(variant, seed)

    def models(self, variant: Variant, snapshot: int = 0) -> dict[int, str]:
        """Return {seed: folder of its model} of a variant: of its pre-trainings, or checkpoints.

        Args:
          snapshot: the step whose model is meant; 0: the last.
        """
        if variant.checkpoints:
            folders = map(places.earlier_model, variant.checkpoints)
            return dict(zip(variant.seeds, folders, strict=True))
        inside = f"snapshots/step-{snapshot:08d}" if snapshot else "model"
        cells = {seed: cell for (name, seed), cell in self.cells.items() if name == variant.name}
        return {seed: f"@{cell.name}//{inside}" for seed, cell in cells.items()}

    def runs(self, row: Row) -> list[tuple[Cell, PlannedRun]]:
        """Return the pre-trainings of a row, whose held-out results are its scores."""
        if row.snapshot or row.finetune:
            return []
        found = ((s, cell) for (name, s), cell in self.cells.items() if name == row.variant)
        return [(cell, PlannedRun(cell.name, seed, 0)) for seed, cell in found]

    def _cell(self, variant: Variant, seed: int) -> Cell:
        config, steps_taken = self._filled(variant.pretrain, seed), 0
        bert, name = config.bert_config, f"pretrain/{variant.name}/{seed}"
        check_direction(config.objectives, bert, f"variant {variant.name}: objectives")
        if config.trunk:
            trunk, before = self._variant("trunk", config.trunk, seed)
            config = dataclasses.replace(config, trunk=f"@{trunk.name}")
            steps_taken = before.num_train_steps
        model_of = functools.partial(self._model_of, seed=seed)
        planned = [options.planned(config, model_of) for options in config.model_options]
        config = dataclasses.replace(config, model_options=tuple(options for options, _ in planned))
        beside = [flops_of for _, flops_of in planned if flops_of]
        self.work[name] = work.of_pretraining(config, self._records, beside, steps_taken)
        prints = key_fields.fingerprints(config)
        return Cell(
            name,
            "pretrain",
            changes_dict(config),
            ignored=(*key_fields.ignored(config, keep="snapshots"), *prints),
            fingerprints=prints,
            cost=self.work[name].usual_seconds,
            scored=True,
            affinity=f"pretrain {bert} {config.objectives}",
            round=seed,
        )

    def _filled(self, config: PretrainConfig, seed: int) -> PretrainConfig:
        """Return a variant's PretrainConfig with its seed and the files of the corpus."""
        phases = []
        for phase in config.phases:
            folder = data_cells.records_folder(phase.records)
            files = {"records": folder, "heldout_records": f"{folder}/heldout"}
            phases.append(dataclasses.replace(phase, **files))
        lower = self._ablation.corpus.do_lower_case
        corpus = {"phases": tuple(phases), "vocab": self._vocab, "do_lower_case": lower}
        return dataclasses.replace(config, **corpus, seed=seed)

    def _variant(self, field: str, reference: str, seed: int) -> tuple[Cell, PretrainConfig]:
        """Return the cell and the PretrainConfig of the variant that a field names as "@NAME"."""
        name = reference.removeprefix("@")
        if (name, seed) not in self.cells:
            raise UserError(f"{field} @{name}: no variant {name} with seed {seed} stands before it")
        return self.cells[name, seed], self._ablation.variant(name).pretrain

    def _model_of(self, field: str, reference: str, seed: int):
        """Return (folder, BertConfig) of the model that an option's field names (see
        `Options.planned`)."""
        if not reference.startswith("@"):
            return reference, places.shape_of(reference)
        cell, config = self._variant(field, reference, seed)
        return f"@{cell.name}//model", config.bert_config
