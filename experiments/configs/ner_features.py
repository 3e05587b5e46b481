"""The feature-based approach of Table 7: a frozen encoder, two BiLSTMs of 768 on its layers.

    python -m experiments.finetune --config=ner_features:concat_last_four \\
        --workdir=runs/ner_features --config.data_dir=conll2003 --config.model=bert_base_en

Scales, the rows of Table 7 with the dev F1 expected from BERT base: embeddings (91.0),
second_to_last (95.6), last (94.9), weighted_sum_last_four (95.9), concat_last_four (96.1),
weighted_sum_all (95.5). `--config=table7` of experiments.ablate runs them all. The encoder runs
once; all rows read its vectors from the feature cache (5 GB for BERT base).
"""

import dataclasses

from experiments.configs import ner
from experiments.training.settings.config import FinetuneConfig, choose_scale

COMBINATIONS = (
    "embeddings",
    "second_to_last",
    "last",
    "weighted_sum_last_four",
    "concat_last_four",
    "weighted_sum_all",
)


# The BiLSTM starts from nothing: a larger rate and more epochs than fine-tuning.
SCALES = {
    name: dataclasses.replace(ner.PAPER, features=name, learning_rate=1e-3, num_train_epochs=10.0)
    for name in COMBINATIONS
}


def get_config(scale: str = "concat_last_four") -> FinetuneConfig:
    return choose_scale(SCALES, scale)
