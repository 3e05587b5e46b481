"""Table 8, masking procedures (appendix C.2): what happens to a token that is to be predicted.

    python -m experiments.ablate --config=experiments/configs/table8.py:smoke --workdir=runs/table8

Six pre-trainings on the same text, whose records differ in the rates of [MASK], the same token and
a random token. Scales: paper, gpu and gpu-day (six pre-trainings of a 4/512 model), cpu (72 of a
2/128 model, 4,000 steps each, without MNLI; 25 to 30 minutes of two cores a seed), snli (cpu's
pre-trainings, SNLI in the place of MNLI), smoke (under 5 minutes, the sample's names in place of
entities). All others need BERT_DATA_DIR.

At scales with a first phase of short rows all procedures share that phase, with the standard masks.
It gets learning started; the comparison begins after it.

Expected at paper scale: the paper's Table 8, differences of half a point; at cpu scale: see
experiments/results/PLAN.md. Held-out losses do not compare between rows: each is measured with its
own masking.
"""

import dataclasses

from experiments.configs.columns import HELDOUT_LOSS
from experiments.configs.scales import get_scale, snli
from experiments.tables.planning.ablation import Ablation, Row, Variant
from experiments.tables.planning.claims import AT_MOST, Claim, Comparison, each
from experiments.training.settings.config import choose_scale

# (mask, same, random), in the paper's order.
RATES = {
    "80/10/10": (0.8, 0.1, 0.1),
    "100/0/0": (1.0, 0.0, 0.0),
    "80/0/20": (0.8, 0.0, 0.2),
    "80/20/0": (0.8, 0.2, 0.0),
    "0/20/80": (0.0, 0.2, 0.8),
    "0/0/100": (0.0, 0.0, 1.0),
}
STANDARD = "80/10/10"
# The scores of earlier runs are known (experiments/results/PLAN.md, "Table 8 with a first phase
# that all rows share").
SEEDS = dict.fromkeys(("cpu", "snli"), tuple(range(11, 23)))
# The paper concatenates the last four layers; the tiny models have two.
COMBINATION = dict.fromkeys(("paper", "gpu", "gpu-day"), "concat_last_four")
WIDTH = {"paper": 768, "gpu": 768, "gpu-day": 768, "cpu": 128, "snli": 128, "smoke": 64}


def get_config(scale: str = "smoke") -> Ablation:
    width, chosen = choose_scale(WIDTH, scale), get_scale(scale, snli=snli)
    seeds = SEEDS.get(scale, chosen.pretrain_seeds[:1])
    short = {phase.records for phase in chosen.bert.phases if not phase.pairs}
    records = [one for one in chosen.records if one.name in short]
    variants = []
    for name, (mask, same, random) in RATES.items():
        for base in chosen.records:
            if base.name in short:
                continue
            renamed = f"{base.name}, {name}"
            rates = {"mask_rate": mask, "same_rate": same, "random_rate": random}
            records.append(dataclasses.replace(base, name=renamed, **rates))
        phases = tuple(
            dataclasses.replace(phase, records=f"{phase.records}, {name}") if phase.pairs else phase
            for phase in chosen.bert.phases
        )
        pretrain = dataclasses.replace(chosen.bert, phases=_shortened(phases, scale))
        variants.append(Variant(name, pretrain, seeds))
    tuned, frozen = [], []
    for name, column in chosen.columns.items():
        if name == "MNLI-m":
            tuned.append(column.changed(label="MNLI", paper_column="MNLI"))
        elif name == "SNLI":
            tuned.append(column)
        elif name == "NER":
            tuned.append(column.changed(label="NER fine-tuned", paper_column="NER fine-tuned"))
            frozen.append(
                column.changed(
                    label="NER feature-based",
                    paper_column="NER feature-based",
                    features=COMBINATION.get(scale, "last"),
                    feature_width=width,
                    learning_rate=1e-3,
                )
            )
    others = [name for name in RATES if name != STANDARD]
    left_out = chosen.lacks("MNLI-m")
    return Ablation(
        name="table8",
        title="Effect of the masking procedure (mask / same / random)",
        variants=(*variants, Variant.random(variants[0].pretrain, variants[0].seeds)),
        columns=(HELDOUT_LOSS, *tuned, *frozen),
        rows=(*(Row(name, name, paper_row=name) for name in RATES), Row.random()),
        claims=_asked(
            Claim(
                "robust",
                "Fine-tuning is robust to the masking procedure: the standard one is ahead of no "
                "other by more than one point",
                "C.2",
                tuple(
                    Comparison(column.label, STANDARD, other, AT_MOST, margin=1.0)
                    for column in tuned
                    for other in others
                ),
                left_out,
            ),
            Claim(
                "mask only",
                "Replacing every chosen token by [MASK] hurts the feature-based approach",
                "C.2",
                each([c.label for c in frozen], STANDARD, "100/0/0"),
            ),
            Claim(
                "random only",
                "Replacing every chosen token by a random one is worse than the standard",
                "C.2",
                each([c.label for c in (*tuned, *frozen)], STANDARD, "0/0/100"),
                left_out,
            ),
        ),
        **(chosen.fields() | {"records": tuple(records)}),
    )


def _asked(*claims):
    """Return the claims that have a comparison at this scale."""
    return tuple(claim for claim in claims if claim.comparisons)


def _shortened(phases, scale):
    """Return the phases, halved at smoke scale so that six pre-trainings end within 5 minutes."""
    if scale != "smoke":
        return phases
    return tuple(dataclasses.replace(p, num_train_steps=p.num_train_steps // 2) for p in phases)
