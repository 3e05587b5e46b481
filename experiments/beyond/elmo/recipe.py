"""ELMo (Peters et al. 2018), the concatenation that section 5.1 and Table 7 compare BERT with.

    python -m experiments.pretrain --config=elmo:tiny --workdir=runs/elmo \\
        --config.phases.0.records=records_64

pre-trains one on BERT's records (any but those of byte pairs): words are joined of their pieces and
read by their letters, and words that are one piece are predicted in both directions. The model is
written as allenai/bilm-tf has it, and its features are read by

    python -m experiments.finetune --config=ner_features --config.model=runs/elmo/model \\
        --config.features=elmo --config.data_dir=conll2003 --workdir=runs/elmo_ner

Scales: tiny (two LSTMs of 256 projected to 64 in each direction, about as wide as BERT tiny, its
data and steps), smoke (200 steps of a smaller one). The original's sizes are ElmoConfig's defaults.
"""

import dataclasses

from experiments.beyond.elmo.shape import ElmoConfig
from experiments.configs import pretrain
from experiments.training.settings.config import PretrainConfig, choose_scale

TINY = ElmoConfig(
    filters=((1, 16), (2, 32), (3, 64), (4, 64)), num_highways=1, lstm_width=256, projection=64
)
SMOKE = dataclasses.replace(TINY, filters=((1, 8), (3, 24)), lstm_width=64, projection=32)


SIZES = {"tiny": TINY, "smoke": SMOKE}


def get_config(scale: str = "tiny") -> PretrainConfig:
    made = {name: lambda name=name: elmo(pretrain.get_config(name), SIZES[name]) for name in SIZES}
    return choose_scale(made, scale)


def elmo(base: PretrainConfig, sizes: ElmoConfig) -> PretrainConfig:
    """Return an ELMo on the data and the vocabulary of a pre-training of BERT, for as many
    steps."""
    return dataclasses.replace(
        base,
        bert=dataclasses.replace(sizes, vocab_size=base.bert_config.vocab_size),
        objectives=("adjacent_words",),
        output_bias="zeros",
    )
