"""G-BERT (Shang et al. 2019): medications of a visit, codes from a graph.

    python -m experiments.finetune --config=gbert --config.data_dir=patients --workdir=runs/gbert

on a folder of `made_patients` (or of one's own: docs/family.md); --config.model says what is left
out: gbert-no-graph, gbert-no-pretraining, gbert-neither. The paper's table beside it,

    python -m experiments.ablate --config=gbert:cpu --config.data_dir=FOLDER --workdir=runs/table

sets the four side by side, with baselines that have no network (`baselines`), where FOLDER holds
`patients`. Scales: finetune (the paper's sizes), cpu (64 wide, forty epochs, five seeds a row,
about four minutes of a core a model), smoke (one seed, one epoch).

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
_LABELS = ("G-BERT", "without graph", "without pre-training", "without both")
_BASELINES = {
    "last visit": "gbert-last-visit",
    "linear, medications": "gbert-linear-medications",
    "linear": "gbert-linear",
}
_COLUMNS = {"F1": "f1", "Jaccard": "jaccard", "PR-AUC": "pr_auc"}


def get_config(scale: str = "finetune") -> FinetuneConfig | Ablation:
    small = dataclasses.replace(FINETUNE.bert, hidden_size=64, intermediate_size=64)
    ours = dataclasses.replace(FINETUNE, model="", data_dir="patients", bert=small)
    cpu = dataclasses.replace(ours, learning_rate=1e-3, num_train_epochs=40.0)
    smoke = dataclasses.replace(ours, num_train_epochs=1.0)
    made = {
        "finetune": lambda: FINETUNE,
        "cpu": lambda: _table("cpu", cpu, (11, 12, 13, 14, 15)),
        "smoke": lambda: _table("smoke", smoke, (1,)),
    }
    return choose_scale(made, scale)


def _table(scale: str, config: FinetuneConfig, seeds: tuple[int, ...]) -> Ablation:
    variants = [
        Variant(label, seeds=seeds, checkpoint=name)
        for label, name in zip(_LABELS, NAMES, strict=True)
    ]
    variants += [Variant(label, checkpoint=name) for label, name in _BASELINES.items()]
    whole, *others = _LABELS
    what = ("the graph above its codes", "pre-training on single visits", "both")
    return Ablation(
        name="gbert",
        title="G-BERT on made patients",
        scale=scale,
        variants=tuple(variants),
        columns=tuple(Column(label, config, metric) for label, metric in _COLUMNS.items()),
        rows=tuple(Row(label, label) for label in (*_LABELS, *_BASELINES)),
        claims=tuple(
            Claim(other, f"G-BERT gains from {gain}", "4.3", each(_COLUMNS, whole, other))
            for other, gain in zip(others, what, strict=True)
        ),
        notes=(
            "patients are made (official-bert made_patients): a fifth of the codes in dev stand "
            "in no training visit; best.json beside them has the best possible scores",
        ),
    )
