"""The cells that ask pre-trained models a `Question` as they are, without fine-tuning."""

from experiments.tables.planning import cell_inputs, data_cells
from experiments.tables.planning.ablation import Ablation, Column, Question, Row, Variant
from experiments.tables.planning.pretrain_cells import PretrainCells
from experiments.tables.planning.repetitions import PlannedRun, Repetition
from experiments.tables.run.grid import Cell, referred
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
        models = self._pretrained.models(variant, row.snapshot)
        cells = [self._cell(row, question, variant, *model) for model in models.items()]
        self.cells += [cell for cell in cells if cell not in self.cells]
        return [PlannedRun(cell.name, Repetition(cell.round)) for cell in cells]

    def _cell(self, row: Row, question: Question, variant: Variant, seed: int, model: str) -> Cell:
        names = [question.kind, question.part, question.records, variant.name, str(seed)]
        names += [f"step-{row.snapshot}"] if row.snapshot else []
        names += [str(question.max_examples)] if question.max_examples else []
        given = {} if referred(model)[0] else {"model": model}
        digests = {name: checkpoint_digest(path) for name, path in given.items()}
        config = {
            "model": model,
            "records": data_cells.records_folder(question.records),
            "max_examples": question.max_examples,
            **question.fields(variant.pretrain.bert_config),
        }
        return Cell(
            "/".join(filter(None, names)),
            question.kind,
            config,
            inputs=cell_inputs.of_fields(given, digests),
            cost=15,
            scored=True,
            round=seed,
        )
