"""OpenAI GPT (Radford et al. 2018), the left-to-right model that section 4.1 compares BERT with.

    python -m experiments.pretrain --config=gpt:tiny --workdir=runs/gpt \\
        --config.phases.0.records=records_64

pre-trains one at the sizes of `pretrain` (scales: tiny, smoke; continue, which trains the model of
--config.init_from further; paper: 12 layers, a million steps of 64 rows of 512 tokens), and

    python -m experiments.finetune --config=gpt --config.model=runs/gpt/model \\
        --config.task=mrpc --config.data_dir=glue_data --workdir=runs/gpt_mrpc

fine-tunes it, or the folder of an `openai-gpt` of Hugging Face, with the paper's numbers. Records
are those of BERT; --packing=single makes rows of one segment, as GPT reads. Any vocabulary will do.

Cost: a step of gpt:tiny takes about half as long again as BERT's (it predicts every token).
Expected of the published weights: SST-2 91.3, MRPC F1 82.3, QNLI 87.4 (Table 1).
"""

import dataclasses

from experiments.beyond.gpt.names import OPENAI_GPT
from experiments.beyond.gpt.options import GptOptions
from experiments.configs import pretrain
from experiments.training.settings.config import FinetuneConfig, Phase, PretrainConfig, choose_scale
from official_bert.config import BertConfig

FINETUNE = FinetuneConfig(
    task="mrpc",
    max_seq_length=128,
    train_batch_size=32,
    learning_rate=6.25e-5,
    num_train_epochs=3.0,
    warmup_proportion=0.002,
    bias_correction=True,
    adam_epsilon=1e-8,
    model_options=(GptOptions(lm_loss_weight=0.5, draw_special_tokens=True),),
)


def get_config(scale: str = "finetune") -> PretrainConfig | FinetuneConfig:
    scales = {"finetune": lambda: FINETUNE, "paper": _paper}
    names = ("tiny", "smoke", "continue")
    of_bert = {name: lambda name=name: gpt(pretrain.get_config(name)) for name in names}
    return choose_scale({**scales, **of_bert}, scale)


def gpt(base: PretrainConfig) -> PretrainConfig:
    """Return GPT of the sizes, the data and the steps of a pre-training of BERT."""
    bert = base.bert and base.bert_config.replaced(**OPENAI_GPT)  # "": the checkpoint's
    return dataclasses.replace(
        base, bert=bert, objectives=("next_token",), bias_correction=True, output_bias="zeros"
    )


def _paper() -> PretrainConfig:
    base = dataclasses.replace(pretrain.get_config("base"), bert=BertConfig(vocab_size=40_481))
    return dataclasses.replace(
        gpt(base),
        phases=(Phase(max_seq_length=512, num_train_steps=1_000_000),),
        num_warmup_steps=2_000,
        train_batch_size=64,
        learning_rate=2.5e-4,
        adam_epsilon=1e-8,
    )
