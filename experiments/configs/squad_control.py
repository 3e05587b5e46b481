"""Table 5 on SQuAD again: exact match beside F1, and the control that the paper lacks.

    python -m experiments.ablate --config=squad_control --workdir=runs/squad_control

table5:squad with six new pre-trainings a row, all dev questions, exact match as a second column of
the same runs, and a row more: a BiLSTM on top of the masked model. To the left-to-right model a
BiLSTM adds a third layer and the other direction, to the masked model only the layer. Needs
BERT_DATA_DIR; about four hours of two cores with AVX-512.

squad_control:4x256 asks the same of models of 4 layers, 256 wide; its BERT is the largest of
table6:nested. It is meant for a GPU (docs/distribution.md).

Expected: experiments/results/PLAN.md, "SQuAD with exact match and a control" and "SQuAD at 4/256".
"""

import dataclasses

from experiments.configs import table5, table6
from experiments.configs.columns import exact_match
from experiments.tables.planning.ablation import Ablation, Row
from experiments.tables.planning.claims import Claim, each
from experiments.training.settings.config import choose_scale

SEEDS = (11, 12, 13, 14, 15, 16)
MASKED, LTR = "No NSP", "LTR & No NSP"
MASKED_BILSTM = "No NSP + BiLSTM"


# (L, H, A)
SIZES = {"2x128": (2, 128, 4), "4x256": (4, 256, 8)}


def get_config(size: str = "2x128") -> Ablation:
    shape = choose_scale(SIZES, size)
    squad = table5.get_config("squad")
    f1 = squad.column("SQuAD")
    f1 = f1.changed(max_dev_examples=0, note=f1.note.replace("2,000", "10,565 of 10,570"))
    columns = {"SQuAD": f1, "SQuAD exact match": exact_match(f1)}
    return dataclasses.replace(
        squad,
        title="Effect of the pre-training tasks on SQuAD, with a BiLSTM on either model",
        scale="squad-control" if size == "2x128" else f"squad-control-{size}",
        variants=tuple(
            dataclasses.replace(one, pretrain=table6.with_size(one.pretrain, *shape), seeds=SEEDS)
            for one in squad.variants
        ),
        columns=tuple(
            columns[one.label] if one.finetune else one
            for one in (*squad.columns, columns["SQuAD exact match"])
        ),
        rows=(
            *(row for row in squad.rows if not row.reference),
            Row(MASKED_BILSTM, MASKED, {"bilstm": True}),
            Row.random(),
        ),
        claims=(*squad.claims, *_claims(tuple(columns))),
    )


def _claims(both: tuple[str, ...]) -> tuple[Claim, ...]:
    return (
        Claim(
            "left to right, exact match",
            "The left-to-right model marks fewer answers exactly than the masked one",
            "5.1",
            each(both[1:], MASKED, LTR),
            own=True,
        ),
        Claim(
            "both tasks, exact match",
            "BERT marks more answers exactly than the left-to-right model without NSP",
            "5.1",
            each(both[1:], "BERT", LTR),
            own=True,
        ),
        Claim(
            "BiLSTM, masked",
            "A BiLSTM on top of the masked model helps it too",
            "5.1",
            each(both, MASKED_BILSTM, MASKED),
            own=True,
        ),
        Claim(
            "BiLSTM, both",
            "With a BiLSTM on either, the masked model is better than the left-to-right one",
            "5.1",
            each(both, MASKED_BILSTM, table5.BILSTM),
            own=True,
        ),
    )
