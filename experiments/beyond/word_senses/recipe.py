"""Word senses: GlossBERT (Huang et al. 2019) on WordNet's own examples.

    python -m experiments.finetune --config=word_senses --config.data_dir=/usr/share/wordnet \\
        --workdir=runs/senses --config.model=bert_base_en_uncased

Debian's wordnet-base installs that folder. Scales: base (GlossBERT's hyper-parameters; 182,000
pairs), small (for the miniatures: 11,000 pairs, and 500 words in sentences to score). Expected: the
most frequent sense is right in 33 of 100; GlossBERT has an F1 of 77 on SemEval's
words, with SemCor to learn from.
"""

import dataclasses

from experiments.training.settings.config import FinetuneConfig, choose_scale

BASE = FinetuneConfig(
    task="word_senses",
    data_dir="/usr/share/wordnet",
    model="bert_base_en_uncased",
    max_seq_length=128,
    train_batch_size=64,
    learning_rate=2e-5,
    num_train_epochs=4.0,
)
SMALL = dataclasses.replace(
    BASE,
    model="tiny-wikipedia",
    task_options={"dev_words": 500},
    max_seq_length=64,
    learning_rate=5e-4,
    num_train_epochs=1.0,
    max_train_examples=11_000,
)


def get_config(scale: str = "base") -> FinetuneConfig:
    return choose_scale({"base": BASE, "small": SMALL}, scale)
