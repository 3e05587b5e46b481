"""Classifiers that read word vectors: how far a text goes without a Transformer (GLUE, section 5).

    python -m experiments.finetune --config=bilstm_attention:small --config.task=qnli \\
        --config.data_dir=glue_data --config.word_vectors=glove.6B.50d.txt --workdir=runs/bilstm

cbow: the mean of the vectors of a text's words, a dense layer, a classifier; a minute or two a
task.

bilstm_attention: two layers on the vectors, maxima over the words, attention between the words of
two texts. Scales: paper (1,500 a direction; hours on a GPU for the large tasks), small (128 a
direction, half an hour a task of 60,000 texts on one core).

Both take GLUE's tasks and text_classification. Vectors are files of GloVe's or word2vec's text
format; what to expect of them: docs/compared.md.
"""

import dataclasses

from experiments.beyond.words.start import BILSTM, CBOW
from experiments.training.settings.config import FinetuneConfig, choose_scale


def cbow() -> FinetuneConfig:
    return FinetuneConfig(
        task="sst2",
        model=CBOW,
        train_batch_size=32,
        learning_rate=1e-3,
        num_train_epochs=5.0,
        weight_decay=0.0,
        clip_norm=5.0,
        bias_correction=True,
    )


def bilstm_attention(scale: str = "paper") -> FinetuneConfig:
    paper = dataclasses.replace(
        cbow(), model=BILSTM, feature_width=3000, learning_rate=1e-4, train_batch_size=128,
        num_train_epochs=10.0,
    )  # fmt: skip
    small = dataclasses.replace(
        paper, feature_width=256, learning_rate=1e-3, train_batch_size=32, num_train_epochs=3.0
    )
    return choose_scale({"paper": paper, "small": small}, scale)
