"""The training step on TensorFlow: reuse, shapes, XLA; test_training_steps has what it computes."""

import collections
import json

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny_runs

from experiments.training.settings.config import PretrainConfig
from experiments.training.step import session, strategies
from experiments.training.step.session import check_batch_size, get_trainer
from experiments.training.step.trainer import Trainer, _open_spec
from experiments.training.step.trainer_state import StepOptions
from official_bert.common.errors import UserError
from official_bert.encoder import BertEncoder
from official_bert.heads import BertTagger
from official_bert.pretraining import BertPretrainer

ONE = strategies.get_strategy("one_device")
QUIET = tiny_runs.bert(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def _trainer(options=None, seed=1, key="pretrain"):
    def build(seed):
        return BertPretrainer(QUIET, seed=seed)

    trainer = get_trainer(key, build, ONE, options or StepOptions(), "float32", seed)
    trainer.set_schedule(1e-2, 2, 10)
    return trainer


def _iterator(batches):
    stacked = {name: np.stack([b[name] for b in batches]) for name in batches[0]}
    return strategies.distribute_dataset(tf.data.Dataset.from_tensor_slices(stacked), ONE)


def test_a_cached_trainer_starts_anew_and_compiles_nothing():
    batches = [tiny_runs.batch(seed=i) for i in range(4)]
    first = _trainer()
    losses = first.train_from(_iterator(batches), 4)["loss"]
    again = _trainer()
    assert again is first and again.step == 0
    traced = []
    original = again.model.loss_terms
    again.model.loss_terms = lambda *a: traced.append(1) or original(*a)
    np.testing.assert_array_equal(again.train_from(_iterator(batches), 4)["loss"], losses)
    other = _trainer(seed=2)
    assert not np.array_equal(other.train_from(_iterator(batches), 4)["loss"], losses)
    assert not traced
    again.model.loss_terms = original
    assert _trainer(StepOptions(clip_norm=0.5)) is not first


def test_lengths_share_one_compilation():
    trainer = Trainer(lambda s: BertPretrainer(QUIET, seed=s), ONE, StepOptions())
    traced = []
    original = trainer.model.loss_terms
    trainer.model.loss_terms = lambda *a: traced.append(1) or original(*a)
    losses = [trainer.read([trainer.train_on(tiny_runs.batch(8, n))])["loss"] for n in (12, 20, 7)]
    assert np.isfinite(losses).all() and len(traced) == 1
    outputs = trainer.predict(tiny_runs.batch(3, 9))
    assert outputs["next_sentence_logits"].shape == (3, 2)


@pytest.mark.slow
def test_step_compiles_under_xla_in_bfloat16():
    """A TPU would run this: static shapes, no operation that XLA lacks, dropout, accumulation."""
    options = StepOptions(jit_compile=True, accumulation=2, fixed_shapes=True, train_metrics=True)
    bert = tiny_runs.bert()
    trainer = Trainer(
        lambda s: BertPretrainer(bert, seed=s), ONE, options, "mixed_bfloat16", seed=1
    )
    trainer.set_schedule(1e-2, 2, 20)
    metrics = trainer.train_from(_iterator([tiny_runs.batch()] * 12), 12)
    assert np.isfinite(metrics["loss"]).all()
    assert metrics["loss"][-1] < metrics["loss"][0] - 0.1
    assert {v.dtype for v in trainer.model.trainable_variables} == {"float32"}


def test_mistakes_are_named(monkeypatch):
    with pytest.raises(UserError, match="not a multiple of 3"):
        check_batch_size(8, ONE, 3)
    with pytest.raises(UserError, match="needs TF_CONFIG"):
        strategies.get_strategy("multi_worker")
    for task in ({"type": "worker", "index": 7}, {"type": "worker", "index": "a"}):
        told = {"cluster": {"worker": ["localhost:1"]}, "task": task}
        monkeypatch.setenv("TF_CONFIG", json.dumps(told))
        with pytest.raises(UserError, match=r"needs TF_CONFIG .* (id of worker|base 10: 'a')"):
            strategies.get_strategy("multi_worker")
    with pytest.raises(UserError, match="shard=weights is for KERAS_BACKEND=jax"):
        strategies.strategy_of(PretrainConfig(shard="weights", distribute="mirrored"))


def test_one_replica_is_no_reason_to_pass_by_its_strategy():
    mirrored = tf.distribute.MirroredStrategy(["/cpu:0"])
    for strategy in (ONE, mirrored):
        assert strategy.num_replicas_in_sync == 1
        assert strategies.run(strategy, lambda: tf.distribute.get_strategy()) is strategy
    rows = strategies.distribute_batch({"x": np.arange(3)}, mirrored)["x"]
    np.testing.assert_array_equal(mirrored.experimental_local_results(rows)[0], [0, 1, 2])
    with pytest.raises(UserError, match="one_device only"):
        Trainer(lambda s: BertPretrainer(QUIET, seed=s), mirrored, StepOptions(jit_compile=True))


def test_kept_trainers_are_bounded_by_their_bytes(monkeypatch):
    monkeypatch.setattr(session, "_trainers", collections.OrderedDict())
    first, second = _trainer(key="a"), _trainer(key="b")
    weights = sum(v.numpy().nbytes for v in first.model.trainable_variables)
    assert 3 * weights <= first.bytes < 3.1 * weights
    assert _trainer(key="a") is first
    monkeypatch.setattr(session, "_KEPT_BYTES", 2.5 * first.bytes)
    third = _trainer(key="c")
    assert list(session._trainers.values()) == [first, third]
    monkeypatch.setattr(session, "_KEPT_BYTES", 0)
    last = _trainer(key="d")
    assert list(session._trainers.values()) == [last] and second is not last


def test_a_batch_on_a_device_is_not_copied_to_look_at_its_type():
    class OnDevice:
        shape, dtype = (2, 5, 3), tf.float16

        def __array__(self, *_):
            raise AssertionError("copied")

    batch = {"input_ids": np.zeros((2, 5), np.int32)}
    assert _open_spec("features", OnDevice(), batch).shape.as_list() == [None, None, 3]


@pytest.mark.parametrize("jit_compile", [False, True])
def test_lstms_do_without_cudnn_under_xla(jit_compile):
    def build(seed):
        return BertTagger(BertEncoder(QUIET, seed=seed), 3, bilstm=True, seed=seed)

    model = Trainer(build, ONE, StepOptions(jit_compile=jit_compile)).model
    both = [layer for layer in model._flatten_layers() if isinstance(layer, keras.layers.LSTM)]
    assert [lstm.use_cudnn for lstm in both] == [False if jit_compile else "auto"] * 2


def test_deterministic_operations_on_demand(monkeypatch):
    asked = []
    monkeypatch.setattr(tf.config.experimental, "enable_op_determinism", lambda: asked.append(True))
    for deterministic in (False, True):
        config = PretrainConfig(bert=QUIET, deterministic=deterministic)
        session.make_trainer(config, "d", lambda s: BertPretrainer(QUIET, seed=s), ONE)
        assert asked == [True] * deterministic


@pytest.mark.parametrize("kind", [tf.errors.UnavailableError, tf.errors.AbortedError])
def test_a_process_that_was_lost_is_told(monkeypatch, kind):
    def lose():
        with strategies.explained(ONE):
            raise kind(None, None, "Collective ops is aborted by: /job:worker/replica:0/task:1")

    with pytest.raises(kind):  # there is no other process
        lose()
    monkeypatch.setattr(strategies, "_num_processes", lambda strategy: 2)
    with pytest.raises(UserError, match="another process of this run ended, .* Start all of them"):
        lose()
