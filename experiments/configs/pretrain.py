"""Pre-training (section 3.1, appendix A.2): 128 tokens for 90% of the steps, then 512.

    python -m experiments.pretrain --config=pretrain:base --workdir=runs/base \\
        --config.vocab=vocab.txt --config.phases.0.records=records_128 \\
        --config.phases.1.records=records_512

Scales: base, large (the paper's: 1,000,000 steps of 256 sequences; 4 days on 4 and on 16 Cloud TPUs
there), mini (4 layers, 256 wide, 64 tokens, then 128; about an hour), tiny (2 layers, 128 wide,
length 64; 20 minutes on two cores, which pass the plateau near loss 6.2 and end at a held-out loss
below 5), smoke (a minute).

The scale continue trains a checkpoint further on your own text, for 10,000 steps of 32 sequences.
The checkpoint gives sizes, vocabulary and casing, the records give the length. The rate warms up
over the first tenth of the steps to 2e-5, the original's rate for this:

    python -m experiments.pretrain --config=pretrain:continue --config.init_from=MODEL \\
        --config.phases.0.records=records --config.phases.0.num_train_steps=1000 \\
        --workdir=runs/domain

Expected at base scale: next-sentence accuracy 97 to 98%, masked-LM perplexity 3.99 (Table 6).
Add --config.distribute=mirrored for the GPUs of a machine, multi_worker for several machines, tpu.
"""

import dataclasses

from experiments.training.settings.config import BertConfig, Phase, PretrainConfig, choose_scale
from official_bert.config import named_config


def get_config(scale: str = "base") -> PretrainConfig:
    scales = {"base": _base, "large": _large, "mini": _mini, "tiny": _tiny, "smoke": _smoke}
    return choose_scale({**scales, "continue": _continue}, scale)


def _base() -> PretrainConfig:
    return PretrainConfig(
        bert="base",
        phases=(
            Phase(max_seq_length=128, num_train_steps=900_000),
            Phase(max_seq_length=512, num_train_steps=100_000),
        ),
        num_warmup_steps=10_000,
        train_batch_size=256,  # 256 x 128 = 32,768 tokens a step, 131,072 in the second phase
        learning_rate=1e-4,
        precision="mixed_bfloat16",
        eval_every=25_000,
        max_heldout_examples=8192,
        save_every=5_000,
    )


def _large() -> PretrainConfig:
    # At length 512 the activations of 24 layers do not fit beside the weights: recompute them.
    return dataclasses.replace(_base(), bert="large", remat=True)


def _mini() -> PretrainConfig:
    # Many small steps at a short length pass the plateau of the masked-LM loss soonest. The last
    # tenth has twice the length and trains the other positions, like the paper's last tenth at 512.
    return dataclasses.replace(
        _base(),
        bert=_small_model("mini"),
        phases=(
            Phase(max_seq_length=64, num_train_steps=9_000),
            Phase(max_seq_length=128, num_train_steps=1_000),
        ),
        num_warmup_steps=400,
        train_batch_size=32,
        learning_rate=1e-3,
        adam_beta_2=0.98,  # a second moment that forgets in 50 steps suits few, large steps
        output_bias="unigram",
        eval_every=1_000,
        max_heldout_examples=1024,
        save_every=1_000,
    )


def _tiny() -> PretrainConfig:
    bert = dataclasses.replace(_small_model("tiny"), num_attention_heads=4, vocab_size=8192)
    return dataclasses.replace(
        _mini(),
        bert=bert,
        phases=(Phase(max_seq_length=64, num_train_steps=24_000),),
        num_warmup_steps=960,
        precision="float32",
        eval_every=2_000,
    )


def _small_model(name: str) -> BertConfig:
    # No dropout: models this small cannot learn their text by heart. The initial deviation, 0.02 *
    # sqrt(768 / width), lets activations start as large as in BERT base.
    bert = named_config(name)
    return dataclasses.replace(
        bert,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.02 * (768 / bert.hidden_size) ** 0.5,
    )


def _continue() -> PretrainConfig:
    return dataclasses.replace(
        _base(),
        bert="",
        phases=(Phase(max_seq_length=0, num_train_steps=10_000),),
        num_warmup_steps=0,
        warmup_proportion=0.1,
        train_batch_size=32,
        learning_rate=2e-5,
        eval_every=1_000,
        max_heldout_examples=1024,
        save_every=1_000,
    )


def _smoke() -> PretrainConfig:
    bert = BertConfig(
        vocab_size=8192,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=128,
        max_position_embeddings=128,
    )
    return dataclasses.replace(
        _tiny(),
        bert=bert,
        phases=(Phase(max_seq_length=64, num_train_steps=200),),
        num_warmup_steps=20,
        eval_every=100,
        max_heldout_examples=256,
        save_every=100,
        log_every=20,
    )
