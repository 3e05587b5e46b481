"""The cells that ask pre-trained models a `Question` as they are, without fine-tuning."""

from experiments.tables.planning import data_cells
from experiments.tables.planning.ablation import Question, Row, Variant
from experiments.tables.planning.pretrain_cells import PretrainCells
from experiments.tables.planning.repetitions import PlannedRun
from experiments.tables.run.grid import Cell
from experiments.training.folder.inputs import checkpoint_digest
from official_bert.objectives import parse_spec


def runs(
    row: Row, question: Question, variant: Variant, pretrained: PretrainCells
) -> list[tuple[Cell, PlannedRun]]:
    """Return the cells that ask a row's models; none where they have not learnt to answer."""
    if row.finetune or not variant.pretrain:
        return []
    learnt = {parse_spec(spec)[0] for spec in variant.pretrain.objectives}
    if learnt.isdisjoint(question.asked_of):
        return []
    kind, of_kind, fields = question.cell(variant.pretrain.bert_config)
    found = []
    for seed, model in pretrained.models(variant, row.snapshot).items():
        config = {
            "model": model,
            "records": data_cells.records_folder(question.records),
            "max_examples": question.max_examples,
            **fields,
        }
        names = [kind, of_kind, question.records, variant.name, str(seed)]
        names += [row.snapshot, question.max_examples]
        name = "/".join(str(part) for part in names if part)
        prints = {} if model.startswith("@") else {"model": checkpoint_digest(model)}
        read = {"ignored": tuple(prints), "fingerprints": prints}
        cell = Cell(name, kind, config, **read, cost=15, scored=True, round=seed)
        found.append((cell, PlannedRun(name, seed, 0)))
    return found
