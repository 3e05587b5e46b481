"""G-BERT (Shang et al. 2019): medications of a visit, codes from a graph.

    python -m experiments.finetune --config=gbert:small --config.data_dir=patients --workdir=runs/g

on a folder of `made_patients` (or of one's own: docs/family.md); --config.model says what is left
out: gbert-no-graph, gbert-no-pretraining, gbert-neither. The paper's table beside it,

    python -m experiments.ablate --config=gbert:cpu --config.data_dir=FOLDER --workdir=runs/table

sets the four side by side, with baselines that have no network (`baselines`), where FOLDER holds
`patients`. Scales: finetune (the paper's sizes, hours of a core), small (64 wide, twenty epochs,
five to eleven minutes of a core), cpu (the table at that size, three seeds a row), smoke (one
seed, one epoch).

Expected: see experiments/results/PLAN.md.
"""

import dataclasses

from experiments.beyond.gbert.start import NAMES
from experiments.tables.planning.ablation import Ablation, Column, Row, Variant
from experiments.tables.planning.claims import Claim, each
from experiments.training.settings.config import FinetuneConfig, choose_scale
from official_bert.config import BertConfig

FINETUNE = FinetuneConfig(
    task="visits",
    model="gbert",
    bert=BertConfig(
        vocab_size=3,  # and the ontology's
        hidden_size=300,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=300,
        hidden_dropout_prob=0.4,
        attention_probs_dropout_prob=0.1,
        gelu_form="tanh",
    ),
    train_batch_size=64,
    learning_rate=5e-4,
    num_train_epochs=80.0,
    save_model=False,
)
_GAINS = {
    "without graph": "the graph above its codes",
    "without pre-training": "pre-training on single visits",
    "without both": "both",
}
_LABELS = ("G-BERT", *_GAINS)
_BASELINES = {
    "last visit": "gbert-last-visit",
    "linear, medications": "gbert-linear-medications",
    "linear": "gbert-linear",
    "linear, categories": "gbert-linear-categories",
}
_OF_UNSEEN = {
    "without graph": "gains from the graph",
    "linear": "is above a linear model of codes",
    "linear, categories": "is above a linear model of codes and their categories",
}
_COLUMNS = {"F1": "f1", "Jaccard": "jaccard", "PR-AUC": "pr_auc"}
_UNSEEN = {"F1, unseen codes": "unseen_f1"}


def get_config(scale: str = "finetune") -> FinetuneConfig | Ablation:
    narrow = dataclasses.replace(FINETUNE.bert, hidden_size=64, intermediate_size=64)
    less = dataclasses.replace(narrow, hidden_dropout_prob=0.1)  # with 0.4 so few units do not fit
    small = dataclasses.replace(FINETUNE, bert=less, learning_rate=1e-3, num_train_epochs=20.0)
    smoke = dataclasses.replace(FINETUNE, bert=narrow, num_train_epochs=1.0)
    made = {
        "finetune": lambda: FINETUNE,
        "small": lambda: small,
        "cpu": lambda: _table("cpu", small, (11, 12, 13)),
        "smoke": lambda: _table("smoke", smoke, (1,)),
    }
    return choose_scale(made, scale)


def _table(scale: str, config: FinetuneConfig, seeds: tuple[int, ...]) -> Ablation:
    config = dataclasses.replace(config, model="", data_dir="patients")
    variants = [
        Variant(label, seeds=seeds, checkpoint=name)
        for label, name in zip(_LABELS, NAMES, strict=True)
    ]
    variants += [Variant(label, checkpoint=name) for label, name in _BASELINES.items()]
    whole, *_ = _LABELS
    claims = [
        Claim(other, f"G-BERT gains from {gain}", "4.3", each(_COLUMNS, whole, other))
        for other, gain in _GAINS.items()
    ]
    claims += [
        Claim(f"unseen, {other}", f"where codes are unseen, G-BERT {told}", "4.3",
              each(_UNSEEN, whole, other), own=True)
        for other, told in _OF_UNSEEN.items()
    ]  # fmt: skip
    return Ablation(
        name="gbert",
        title="G-BERT on made patients",
        scale=scale,
        variants=tuple(variants),
        columns=tuple(
            Column(label, config, metric) for label, metric in (_COLUMNS | _UNSEEN).items()
        ),
        rows=tuple(Row(label, label) for label in (*_LABELS, *_BASELINES)),
        claims=tuple(claims),
        notes=(
            "patients are made (official-bert made_patients); best.json beside them has the best "
            "possible scores; unseen codes: visits with a new illness in codes that no training "
            "visit has",
        ),
    )
