"""Sentence vectors: a BERT trained so that the cosines of its vectors say how near texts are.

    python -m experiments.finetune --config=sentence_vectors --config.data_dir=pairs \\
        --config.model=sentence-transformers/all-MiniLM-L6-v2 --workdir=runs/vectors

on a folder of train and dev files (TSV, CSV, JSON Lines, JSON, Parquet; training texts alone may be
plain lines). Columns decide the objective: anchor and positive (and negative) train in-batch
negatives, a column score cosines, texts alone SimCSE. Scales: finetune (a base model, rates of
sentence-transformers), simcse (the same for texts alone: dropout, one epoch), small (the
miniature, on one core: a few minutes). Expected: docs/sentence_vectors.md.
"""

import dataclasses

from experiments.training.settings.config import FinetuneConfig, choose_scale

FINETUNE = FinetuneConfig(
    task="sentence_vectors",
    model="bert_base_en_uncased",
    max_seq_length=128,
    train_batch_size=64,
    learning_rate=2e-5,
    num_train_epochs=1.0,
    bias_correction=True,
)
SIMCSE = dataclasses.replace(FINETUNE, max_seq_length=32, dropout=0.1, learning_rate=3e-5)
SMALL = dataclasses.replace(
    FINETUNE, model="tiny-wikipedia", max_seq_length=64, learning_rate=5e-4, num_train_epochs=3.0
)


def get_config(scale: str = "finetune") -> FinetuneConfig:
    return choose_scale({"finetune": FINETUNE, "simcse": SIMCSE, "small": SMALL}, scale)
