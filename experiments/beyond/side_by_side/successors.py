"""BERT's successors as differences from the configuration `pretrain` (docs/family.md).

    python -m experiments.pretrain --config=albert:tiny --workdir=runs/albert \\
        --config.phases.0.records=records_64

Configurations: albert, electra, roberta, spanbert, distil, tinybert, gpt2. Scales: tiny, smoke
(those of `pretrain`: 24,000 and 200 steps); gpt2:continue trains the GPT-2 of --config.init_from
further. Records are those of BERT; ALBERT's own are made with
--packing=consecutive --spans=ngrams, SpanBERT's with --packing=single --spans=geometric, ELECTRA's
with --mask_rate=0.85 --same_rate=0.15 --random_rate=0, RoBERTa's with --packing=single
--dynamic_masking --short_seq_prob=0 and a vocabulary of `data_prep.vocab --kind=byte_pair
--vocab_size=8192`.

distil and tinybert learn from a model that `pretrain` made at the same scale, or another one that
--config.teacher names:

    python -m experiments.pretrain --config=distil:tiny --config.teacher=runs/tiny/model \\
        --workdir=runs/distil --config.phases.0.records=records_64

Cost: a step of albert:tiny takes about as long as BERT's (its layers share weights, not work), of
electra:tiny a third longer (the generator), of distil:tiny three times as long (both heads at every
token). None was trained to its end at these scales; side by side, smaller, they are in
experiments/beyond/side_by_side/family.py.
"""

import dataclasses

from experiments.beyond.gpt import recipe as gpt
from experiments.beyond.gpt.gpt2_names import GPT2
from experiments.configs import pretrain
from experiments.training.settings.config import PretrainConfig, choose_scale
from experiments.training.settings.options import replaced


def albert(scale: str = "tiny") -> PretrainConfig:
    """Return ALBERT: narrow tables, one block for all layers, the order of the segments, LAMB.

    The order as its paper has it; as its code does, with records of --packing=consecutive, under
    --config.objectives.1.random_as_swapped=true.
    """
    base = _base(scale)
    narrow = {"embedding_size": base.bert.hidden_size // 4}
    bert = base.bert.replaced(**narrow, num_hidden_groups=1, gelu_form="tanh")
    return dataclasses.replace(
        base, bert=bert, objectives=("masked_lm", "sentence_order"), optimizer="lamb"
    )


def electra(scale: str = "tiny") -> PretrainConfig:
    """Return replaced tokens in place of masked ones, no pooler."""
    base = _base(scale)
    bert = base.bert.replaced(pooler_activation="none")
    return dataclasses.replace(base, bert=bert, objectives=("replaced_token",))


def roberta(scale: str = "tiny") -> PretrainConfig:
    """Return masked LM alone, with byte pairs; Adam with bias correction, without clipping."""
    base = _base(scale)
    bert = dataclasses.replace(base.bert, type_vocab_size=1, layer_norm_eps=1e-5, gelu_form="erf")
    return dataclasses.replace(
        base,
        bert=bert,
        objectives=("masked_lm",),
        bias_correction=True,
        adam_beta_2=0.98,
        adam_epsilon=1e-6,
        weight_decay=0.01,
        clip_norm=0.0,
    )


def spanbert(scale: str = "tiny") -> PretrainConfig:
    """Return spans and their boundaries, no sentence pairs."""
    return dataclasses.replace(_base(scale), objectives=("masked_lm", "span_boundary"))


def distil(scale: str = "tiny") -> PretrainConfig:
    """Return DistilBERT: half of the teacher's layers, to begin with too; no segments, no
    pooler."""
    base = _base(scale)
    bert = base.bert.replaced(
        num_hidden_layers=base.bert.num_hidden_layers // 2,
        type_vocab_size=0,
        pooler_activation="none",
    )
    objectives = ({"name": "masked_lm", "weight": 2.0}, "soft_targets", "cosine_states")
    return replaced(base, bert=bert, objectives=objectives, teacher_layers="even")


def tinybert(scale: str = "tiny") -> PretrainConfig:
    """Return TinyBERT's general distillation: half as deep and half as wide, with as many heads."""
    base = _base(scale)
    bert = dataclasses.replace(
        base.bert,
        num_hidden_layers=base.bert.num_hidden_layers // 2,
        hidden_size=base.bert.hidden_size // 2,
        intermediate_size=base.bert.intermediate_size // 2,
    )
    # There is no head whose bias could begin at the pieces' frequencies.
    return dataclasses.replace(
        base, bert=bert, objectives=("transformer_layers",), output_bias="zeros"
    )


def gpt2(scale: str = "tiny") -> PretrainConfig:
    """Return GPT-2: OpenAI GPT that normalises what a sub-layer reads."""
    if scale == "continue":
        return gpt.get_config(scale)
    base = gpt.gpt(_base(scale))
    return dataclasses.replace(base, bert=base.bert.replaced(**GPT2))


def _base(scale: str) -> PretrainConfig:
    scales = {name: lambda name=name: pretrain.get_config(name) for name in ("tiny", "smoke")}
    return choose_scale(scales, scale)
