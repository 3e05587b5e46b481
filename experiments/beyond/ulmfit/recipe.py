"""ULMFiT (Howard and Ruder 2018): a language model of LSTMs, fine-tuned step by step.

    python -m experiments.pretrain --config=ulmfit:tiny --workdir=runs/ulmfit \\
        --config.phases.0.records=records_64

pre-trains an AWD-LSTM at the data and the steps of `pretrain` (scales: tiny, smoke; paper: the
original's sizes; it read WikiText-103, 103 million words). Records are those of BERT. A second
stage on the texts of the task is

    python -m experiments.pretrain --config=pretrain:continue --workdir=runs/ulmfit_task \\
        --config.init_from=runs/ulmfit/model --config.phases.0.records=task_records \\
        --config.learning_rate=4e-4

and the third

    python -m experiments.finetune --config=ulmfit --config.model=runs/ulmfit_task/model \\
        --config.task=sst2 --config.data_dir=glue_data --workdir=runs/ulmfit_sst2

with a rate for each layer, thawed from the classifier down, one layer more with every epoch.
docs/compared.md says what is not the original's. Expected: see there.
"""

import dataclasses

from experiments.beyond.ulmfit.options import UlmfitOptions
from experiments.beyond.ulmfit.shape import AwdLstmConfig
from experiments.configs import pretrain
from experiments.training.settings.config import FinetuneConfig, PretrainConfig, choose_scale

FINETUNE = FinetuneConfig(
    task="sst2",
    max_seq_length=128,
    train_batch_size=64,
    learning_rate=1e-2,
    num_train_epochs=8.0,
    warmup_proportion=0.1,
    layer_decay=1 / 2.6,
    model_options=(
        UlmfitOptions(concat_pooling=True, unfreeze_epochs=1.0, schedule="slanted_triangular"),
    ),
    bias_correction=True,
    adam_beta_2=0.99,
)
# Three layers of 1,150 cells on tables of 400. Each dropout is the middle of the original's.
PAPER = AwdLstmConfig(
    vocab_size=30_522,
    hidden_size=400,
    intermediate_size=1150,
    num_hidden_layers=3,
    hidden_dropout_prob=0.3,
    attention_probs_dropout_prob=0.5,
)
# The layers have as many weights as BERT tiny's.
SMALL = dataclasses.replace(
    PAPER,
    hidden_size=128,
    intermediate_size=160,
    hidden_dropout_prob=0.1,
    attention_probs_dropout_prob=0.1,
)


def get_config(scale: str = "finetune") -> PretrainConfig | FinetuneConfig:
    made = {
        "finetune": lambda: FINETUNE,
        "paper": lambda: ulmfit(pretrain.get_config("base"), PAPER),
    }
    made |= {
        name: lambda name=name: ulmfit(pretrain.get_config(name), SMALL)
        for name in ("tiny", "smoke")
    }
    return choose_scale(made, scale)


def ulmfit(base: PretrainConfig, sizes: AwdLstmConfig) -> PretrainConfig:
    """Return an AWD-LSTM on the data and the vocabulary of a pre-training of BERT, for as many
    steps."""
    same = ("vocab_size", "max_position_embeddings")
    bert = dataclasses.replace(sizes, **{name: getattr(base.bert_config, name) for name in same})
    return dataclasses.replace(
        base, bert=bert, objectives=("next_token",), bias_correction=True, output_bias="zeros"
    )
