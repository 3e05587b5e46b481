"""GLUE's BiLSTM (Wang et al. 2018, section 5): two layers on given word vectors, maxima over the
words, attention between the words of two texts.

    python -m experiments.finetune --config=bilstm_attention:small --config.task=qnli \\
        --config.data_dir=glue_data --config.word_vectors=glove.6B.50d.txt --workdir=runs/bilstm

Scales: paper (1,500 a direction; hours on a GPU for the large tasks), small (128 a direction, half
an hour a task of 60,000 texts on one core).
"""

import dataclasses

from experiments.beyond.word_vectors import BILSTM
from experiments.configs import cbow
from experiments.training.config import FinetuneConfig, choose_scale


def get_config(scale: str = "paper") -> FinetuneConfig:
    paper = dataclasses.replace(
        cbow.get_config(), model=BILSTM, feature_width=3000, learning_rate=1e-4,
        train_batch_size=128, num_train_epochs=10.0,
    )  # fmt: skip
    small = dataclasses.replace(
        paper, feature_width=256, learning_rate=1e-3, train_batch_size=32, num_train_epochs=3.0
    )
    return choose_scale({"paper": paper, "small": small}, scale)
