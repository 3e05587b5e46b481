"""CBOW (GLUE, section 5): the mean of the vectors of a text's words, a dense layer, a classifier.

    python -m experiments.finetune --config=cbow --config.task=sst2 --config.data_dir=glue_data \\
        --config.word_vectors=glove.6B.50d.txt --workdir=runs/cbow

Takes GLUE's tasks and text_classification, a minute or two each. Vectors are files of GloVe's or
word2vec's text format (docs/compared.md). Expected: see there.
"""

from experiments.beyond.word_vectors import CBOW
from experiments.training.config import FinetuneConfig


def get_config() -> FinetuneConfig:
    return FinetuneConfig(
        task="sst2",
        model=CBOW,
        train_batch_size=32,
        learning_rate=1e-3,
        num_train_epochs=5.0,
        weight_decay=0.0,
        clip_norm=5.0,
        bias_correction=True,
        save_model=False,
    )
