"""The start of a pre-training: heads of another model, configurations that are refused."""

import dataclasses
import os

import pytest
import tiny_runs

from experiments import pretrain
from experiments.training.start import initial_state
from experiments.training.start.initial_state import InitialState
from official_bert import BertPretrainer
from official_bert.common.errors import UserError


def test_a_next_sentence_head_that_was_never_trained_is_new(data):
    there, model = (BertPretrainer(tiny_runs.bert(), seed=seed) for seed in (1, 2))
    heads = [*there.masked_lm.trainable_variables, *there.next_sentence.trainable_variables]
    start = InitialState(
        tiny_runs.bert(),
        tokenizer=None,
        head={"head": "pretraining", "objectives": ["masked_lm"]},
        head_weights={head.path: head.numpy() for head in heads},
    )
    before = model.next_sentence.kernel.numpy()
    start.copy_heads_to(model)
    assert (model.next_sentence.kernel.numpy() == before).all()
    for ours, theirs in zip(
        model.masked_lm.trainable_variables, there.masked_lm.trainable_variables, strict=True
    ):
        assert (ours.numpy() == theirs.numpy()).all()
    config = tiny_runs.pretrain_config(data, init_from="M", bert="")
    about = start.about_heads(config)
    assert about.startswith("heads: M has no next-sentence head; new ones")
    assert "--config.objectives=masked_lm trains" in about
    alone = dataclasses.replace(config, objectives=("masked_lm",))
    assert start.about_heads(alone) == "heads: loaded from M"


@pytest.mark.parametrize("prefix", ["", "/weights"])
def test_a_model_of_an_earlier_time_is_another(prefix, tmp_path):
    (tmp_path / "model[1]").mkdir()
    weights, older = tmp_path / "model[1]" / "weights.index", tmp_path / "older"
    for path in (weights, older):
        path.write_text("x")
        os.utime(path, (0, 0))
    model = f"{tmp_path}/model[1]{prefix}"
    before = initial_state._state(model)
    assert before and before == initial_state._state(model)
    older.replace(weights)
    assert initial_state._state(model) != before


def test_a_batch_that_does_not_divide_is_refused(data, tmp_path):
    """Other starts that are wrong are in test_preflight.py."""
    config = tiny_runs.pretrain_config(data, train_batch_size=9, gradient_accumulation=2)
    with pytest.raises(UserError, match="not a multiple of 2"):
        pretrain.run(config, tmp_path, progress=False)
