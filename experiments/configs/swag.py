"""SWAG (section 4.4): four continuations, one score each. 3 epochs, 2e-5, batch 16.

    python -m experiments.finetune --config=swag --workdir=runs/swag --config.data_dir=swag \\
        --config.model=bert_base_en_uncased

Any CSV with SWAG's header works. Scales: paper (BERT base; hours on one GPU), smoke (a minute).

Expected on dev: BERT base 81.6, BERT large 86.6.
"""

import dataclasses

from experiments.training.settings.config import FinetuneConfig, choose_scale

PAPER = FinetuneConfig(
    task="swag",
    model="bert_base_en_uncased",
    max_seq_length=128,
    train_batch_size=16,
    learning_rate=2e-5,
    num_train_epochs=3.0,
)
SMOKE = dataclasses.replace(
    PAPER, max_seq_length=64, max_train_examples=256, max_dev_examples=128, num_train_epochs=1.0
)


def get_config(scale: str = "paper") -> FinetuneConfig:
    return choose_scale({"paper": PAPER, "smoke": SMOKE}, scale)
