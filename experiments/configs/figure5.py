"""Figure 5, number of training steps (appendix C.1): masked LM against left-to-right LM.

    python -m experiments.ablate --config=experiments/configs/figure5.py:smoke --workdir=runs/fig5

Two pre-trainings (without NSP, so that they differ in the objective only) keep their model at
several steps; each is fine-tuned on MNLI. Scales: paper (BERT base, up to a million steps, every
200,000), gpu and gpu-day (one H100), cpu (four pre-trainings each of 4,000 steps, entities of
CoNLL-2003 in place of MNLI; needs BERT_DATA_DIR), snli (the same with six others each and SNLI),
smoke (embedded sample, an excerpt of SNLI, under 5 minutes). A scale followed by "+NAME", as in
figure5:cpu+gpt, adds an extension's curve of as many steps.

Expected at paper scale: a million steps are about 1.0 above half a million; masked LM is ahead
almost from the start. The paper prints no other numbers of this figure.
"""

import dataclasses
import itertools

from experiments.configs.columns import HELDOUT_LOSS
from experiments.configs.scales import get_scale, snli
from experiments.tables.planning.ablation import Ablation, Curve, Row, Variant
from experiments.tables.planning.claims import Claim, each
from experiments.training.settings.config import choose_scale
from official_bert.common.errors import UserError
from official_bert.extension import find, names

# Shares of the pre-training after which a model is fine-tuned.
SHARES = {
    "paper": (0.2, 0.4, 0.5, 0.6, 0.8, 1.0),
    "gpu": (0.1, 0.2, 0.5, 0.75, 1.0),
    "gpu-day": (0.1, 0.2, 0.5, 0.75, 1.0),
    "cpu": (0.1, 0.25, 0.5, 0.75, 1.0),
    "snli": (0.1, 0.25, 0.5, 0.75, 1.0),
    "smoke": (1 / 3, 2 / 3, 1.0),
}


# New seeds: the scores of the first run are known (experiments/results/PLAN.md, "Table 8 and Figure
# 5, anew").
SEEDS = {"cpu": (5, 6, 7, 8), "snli": (9, 10, 11, 12, 13, 14)}


_MORE = "figure5+"  # prefix of the extensions' rows that are curves of this figure


def get_config(scale: str = "smoke") -> Ablation:
    scale, _, more = scale.partition("+")
    valid = [name.removeprefix(_MORE) for name in names("rows") if name.startswith(_MORE)]
    if more and more not in valid:
        raise UserError(
            f'figure5: there is no curve "{more}" to add to a scale; valid: '
            f"{', '.join(valid) or 'none'}"
        )
    shares, chosen = choose_scale(SHARES, scale), get_scale(scale, snli=snli)
    total = chosen.bert.num_train_steps
    steps = [round(total * share) for share in shares]
    snapshots = tuple(steps[:-1])
    pretrains = {
        "masked LM": chosen.no_nsp,
        "left-to-right": chosen.left_to_right,
    }
    finetune = {}
    if more:
        name, pretrains[name], finetune[name] = find("rows", _MORE + more)(chosen)
    pretrains = {
        name: dataclasses.replace(pretrain, snapshots=snapshots)
        for name, pretrain in pretrains.items()
    }
    seeds = SEEDS.get(scale, chosen.pretrain_seeds)
    columns = tuple(
        chosen.columns[n] for n in ("MNLI-m", "SNLI", "entities") if n in chosen.columns
    )
    left_out = chosen.lacks("MNLI-m")
    labels = [column.label for column in columns]
    rows = {
        name: [
            Row(
                f"{name}, {s:,} steps",
                name,
                finetune.get(name, {}),
                snapshot=0 if s == total else s,
            )
            for s in steps
        ]
        for name in pretrains
    }
    mlm, ltr = rows["masked LM"], rows["left-to-right"]
    half, _ = min(zip(mlm, steps, strict=True), key=lambda pair: abs(pair[1] - total / 2))
    return Ablation(
        name="figure5",
        title="Number of pre-training steps",
        variants=(
            *(Variant(name, pretrain, seeds) for name, pretrain in pretrains.items()),
            Variant.random(pretrains["masked LM"], seeds),
        ),
        columns=(*columns, HELDOUT_LOSS),
        rows=(
            *itertools.chain.from_iterable(rows.values()),
            Row.random(),
        ),
        curves=tuple(
            Curve(name, tuple(row.label for row in line), column.label)
            for column in columns
            for name, line in rows.items()
        ),
        claims=(
            Claim(
                "steps",
                "The whole pre-training is better than half of it",
                "C.1",
                each(labels, mlm[-1].label, half.label),
                left_out,
            ),
            Claim(
                "slower at first",
                "Masked LM converges more slowly than left-to-right: it is behind at the first "
                "point",
                "C.1",
                each(labels, ltr[0].label, mlm[0].label),
                left_out,
            ),
            Claim(
                "overtakes",
                "Masked LM overtakes left-to-right almost immediately: it is ahead at every point "
                "but the first",
                "C.1",
                tuple(
                    comparison
                    for a, b in zip(mlm[1:], ltr[1:], strict=True)
                    for comparison in each(labels, a.label, b.label)
                ),
                left_out,
            ),
        ),
        **chosen.fields(),
    )
