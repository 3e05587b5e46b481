"""Configurations of systems beyond the paper: their differences, types and FLOPs."""

import dataclasses
import functools
import json

import pytest

from experiments.beyond.electra.shape import narrower
from experiments.beyond.shallow.shape import SHALLOW, ShallowConfig
from experiments.training.settings import flops
from experiments.training.settings.config import PretrainConfig
from experiments.training.settings.config_files import load_config
from experiments.training.settings.config_values import changes_dict, from_dict, override, to_dict
from official_bert.common.errors import UserError
from official_bert.config import BertConfig


def test_what_bert_is_compared_with_has_sizes_of_its_own():
    config = override(load_config("pretrain:tiny"), {"bert.attention_direction": SHALLOW})
    assert isinstance(config.bert, ShallowConfig) and config.bert.one_direction.hidden_size == 64
    for one in (config, load_config("ulmfit:tiny")):
        for written in (to_dict(one), changes_dict(one)):
            assert from_dict(PretrainConfig, json.loads(json.dumps(written))) == one


def test_a_type_of_elmos_is_told():
    with pytest.raises(UserError, match="--config.bert.filters=1,2: expected a list"):
        override(load_config("elmo:tiny"), ["bert.filters=1,2"])


@pytest.mark.parametrize(
    ("name", "objectives", "fields"),
    [
        ("albert", ("masked_lm", "sentence_order"), {"embedding_size", "num_hidden_groups"}),
        ("electra", ("replaced_token",), {"pooler_activation"}),
        ("spanbert", ("masked_lm", "span_boundary"), set()),
        ("roberta", ("masked_lm",), set()),
    ],
)
def test_successors_are_differences_from_bert(name, objectives, fields):
    base, config = load_config("pretrain:tiny"), load_config(f"{name}:tiny")
    assert config.objectives == objectives
    assert set(config.bert.to_dict()) - set(base.bert.to_dict()) == fields
    same = {"objectives": base.objectives, "bert": base.bert, "optimizer": "adamw"}
    same |= {"bias_correction": False, "clip_norm": base.clip_norm}
    assert dataclasses.replace(config, **same) == base
    with pytest.raises(UserError, match="smoke"):
        load_config(f"{name}:base")


def test_flops_count_what_objectives_add():
    bert = BertConfig(num_hidden_layers=2, hidden_size=64, num_attention_heads=4, vocab_size=100)
    step = functools.partial(flops.pretraining_step_flops, bert, sequences=2, length=32, masked=5)
    plain = step(("masked_lm",))
    assert plain == 3 * (bert.encoder_flops(2, 32) + bert.head_flops(10))
    assert plain == step(("masked_lm", "sentence_order"))
    head = 3 * (10 * 2 * 64 * (64 + 100) + 10 * 2 * 64 * (2 * 64 + 200))
    assert step(("masked_lm", "span_boundary")) == plain + head
    small = narrower(bert, 0.25)
    assert (small.hidden_size, small.num_attention_heads, small.embedding_size) == (16, 1, 64)
    generator = small.encoder_flops(2, 32) + small.head_flops(10)
    scores = 2 * 32 * 2 * 64 * 65
    discriminator = 3 * bert.encoder_flops(2, 32)
    assert step(("replaced_token",)) == discriminator + 3 * (generator + scores)
