"""Table 6, effect of model size (section 5.2).

    python -m experiments.ablate --config=experiments/configs/table6.py:cpu --workdir=runs/table6

    paper         the six sizes from 3/768/12 to 24/1024/16, the paper's schedule each
    gpu, gpu-day  four of the miniatures; table5.py says what they take, and how `gpu` is cut into
                  commands of ten minutes
    night         1/32, 2/64, 2/128, 4/128, 2/256; five pre-trainings each, equal steps
    nested        1/64, 2/64, 2/128, 4/128, 4/256, each at least as deep and as wide as the one
                  before; six pre-trainings each of night's steps, meant for a GPU
                  (docs/distribution.md)
    cpu           2/64, 4/64, 2/128, 4/128; four pre-trainings each
    smoke         three sizes, under 5 minutes

night, nested and cpu need BERT_DATA_DIR.

Expected at paper scale: the paper's Table 6. Expected at cpu and night scale: past the plateau
every size has a lower perplexity than the one before; see experiments/results/PLAN.md.
"""

import dataclasses
import itertools

from experiments.configs.columns import PERPLEXITY
from experiments.configs.scales import Scale, get_scale
from experiments.tables.planning.ablation import Ablation, Row, Variant
from experiments.tables.planning.claims import Claim, Comparison, each
from official_bert.config import NAMED_SIZES

# (L, H, A); in the paper's order.
_MINIATURES = [(2, 256, 4), (4, 256, 4), (4, 512, 8), (8, 512, 8)]
SIZES = {
    "paper": [NAMED_SIZES[name] for name in NAMED_SIZES if name.startswith("table6")],
    "gpu": _MINIATURES,
    "gpu-day": _MINIATURES,
    "night": [(1, 32, 1), (2, 64, 2), (2, 128, 4), (4, 128, 4), (2, 256, 8)],
    "nested": [(1, 64, 2), (2, 64, 2), (2, 128, 4), (4, 128, 4), (4, 256, 8)],
    "cpu": [(2, 64, 2), (4, 64, 2), (2, 128, 4), (4, 128, 4)],
    "smoke": [(1, 32, 2), (2, 64, 2), (2, 128, 4)],
}
COLUMNS = ("MNLI-m", "MRPC", "SST-2")
OTHERS = ("QNLI", "entities")  # columns with more power, where a scale has them


def get_config(scale: str = "smoke") -> Ablation:
    chosen = get_scale(scale, nested=_nested)
    sizes = SIZES[scale]
    labels = [f"L{layers} H{width} A{heads}" for layers, width, heads in sizes]
    variants = tuple(
        Variant(label, with_size(chosen.bert, *size), chosen.pretrain_seeds)
        for label, size in zip(labels, sizes, strict=True)
    )
    columns = chosen.tasks(*COLUMNS, *OTHERS)
    tasks = [column.label for column in columns]
    left_out = chosen.lacks(*COLUMNS)
    smallest, largest = labels[0], labels[-1]
    return Ablation(
        name="table6",
        title="Effect of model size",
        variants=(*variants, Variant.random(variants[-1].pretrain, chosen.pretrain_seeds)),
        columns=(PERPLEXITY, *columns),
        rows=(
            *(Row(label, label, paper_row=label if scale == "paper" else "") for label in labels),
            Row.random(f"{largest}, random initialisation"),
        ),
        claims=(
            Claim(
                "perplexity",
                "A larger model has a lower held-out perplexity, at every step in size",
                "5.2",
                tuple(
                    Comparison("LM perplexity", larger, smaller)
                    for smaller, larger in itertools.pairwise(labels)
                ),
            ),
            Claim(
                "perplexity, largest",
                "The largest model has a lower held-out perplexity than the smallest",
                "5.2",
                each([PERPLEXITY.label], largest, smallest),
            ),
            Claim(
                "largest",
                "The largest model is better than the smallest on all tasks, even with 3,600 "
                "training examples",
                "5.2",
                each(tasks, largest, smallest),
                left_out,
            ),
            Claim(
                "every step",
                "Larger models lead to a strict improvement on every task at every step in size",
                "5.2",
                tuple(
                    comparison
                    for smaller, larger in itertools.pairwise(labels)
                    for comparison in each(tasks, larger, smaller)
                ),
                left_out,
            ),
        ),
        **chosen.fields(),
    )


def _nested() -> Scale:
    night = get_scale("night")
    columns = {name: night.columns[name] for name in ("QNLI", "entities")}
    return dataclasses.replace(
        night, name="nested", pretrain_seeds=tuple(range(11, 17)), columns=columns
    )


def with_size(pretrain, layers: int, width: int, heads: int):
    """Return the pre-training of a model of that size (L, H, A)."""
    bert = pretrain.bert
    # Weights in proportion to 1 / sqrt(width), like the tiny recipe; the paper has 0.02 throughout.
    stddev = bert.initializer_range * (bert.hidden_size / width) ** 0.5
    if bert.initializer_range == 0.02:
        stddev = 0.02
    bert = dataclasses.replace(
        bert,
        num_hidden_layers=layers,
        hidden_size=width,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        initializer_range=stddev,
    )
    return dataclasses.replace(pretrain, bert=bert)
