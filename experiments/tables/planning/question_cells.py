"""The cells that ask pre-trained models a `Question` as they are, without fine-tuning."""

from experiments.tables.planning import data_cells, key_fields
from experiments.tables.planning.ablation import Ablation, Column, Row
from experiments.tables.planning.pretrain_cells import PretrainCells
from experiments.tables.planning.repetitions import PlannedRun
from experiments.tables.run.grid import Cell
from experiments.training.folder.inputs import checkpoint_digest
from official_bert.objectives import parse_spec


class QuestionCells:
    """The questions of a table to its pre-trained models; columns that ask the same share them.

    Attributes:
      cells: of all runs so far.
    """

    def __init__(self, ablation: Ablation, pretrained: PretrainCells):
        self.cells: list[Cell] = []
        self._ablation, self._pretrained = ablation, pretrained

    def runs(self, row: Row, column: Column) -> list[PlannedRun]:
        """Return the questions to a row's models; none where they have not learnt to answer."""
        variant, question = self._ablation.variant(row.variant), column.question
        if row.finetune or not variant.pretrain:
            return []
        learnt = {parse_spec(spec)[0] for spec in variant.pretrain.objectives}
        if learnt.isdisjoint(question.asked_of):
            return []
        fields = {"records": data_cells.records_folder(question.records)}
        fields |= {"max_examples": question.max_examples}
        fields |= question.fields(variant.pretrain.bert_config)
        names = [question.kind, question.part, question.records, variant.name]
        start = "/".join(filter(None, names))
        end = f"/step-{row.snapshot}" if row.snapshot else ""
        end += f"/{question.max_examples}" if question.max_examples else ""
        runs = []
        for seed, model in self._pretrained.models(variant, row.snapshot).items():
            given = {} if model.startswith("@") else {"model": model}
            digests = {name: checkpoint_digest(path) for name, path in given.items()}
            files = key_fields.of_files(given, digests)
            name = f"{start}/{seed}{end}"
            config = {"model": model, **fields}
            cell = Cell(name, question.kind, config, **files, cost=15, scored=True, round=seed)
            self.cells += [cell] if cell not in self.cells else []
            runs.append(PlannedRun(name, seed))
        return runs
