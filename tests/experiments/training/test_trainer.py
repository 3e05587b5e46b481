"""The training step on one device: reuse, shapes, XLA, the optimiser's steps."""

import collections
import dataclasses
import json

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny_runs

from experiments.training import distribution, session
from experiments.training.config import PretrainConfig
from experiments.training.flops import training_flops
from experiments.training.session import check_batch_size, get_trainer
from experiments.training.trainer import Trainer, _open_spec
from experiments.training.trainer_state import StepOptions
from official_bert.common.errors import UserError
from official_bert.config import named_config
from official_bert.encoder import BertEncoder
from official_bert.heads import BertClassifier, BertTagger
from official_bert.objectives import of_bert
from official_bert.optimization import BertAdamW, WarmupLinearDecay
from official_bert.pretraining import BertPretrainer

ONE = distribution.get_strategy("one_device")
QUIET = tiny_runs.bert(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def _batch(rows=8, length=12, seed=0, predictions=4):
    draw = np.random.default_rng(seed)
    vocab = QUIET.vocab_size
    return {
        "input_ids": draw.integers(0, vocab, (rows, length)).astype(np.int32),
        "input_mask": np.ones((rows, length), np.int32),
        "segment_ids": np.zeros((rows, length), np.int32),
        "masked_lm_positions": draw.integers(0, length, (rows, predictions)).astype(np.int32),
        "masked_lm_ids": draw.integers(0, vocab, (rows, predictions)).astype(np.int32),
        "masked_lm_weights": np.ones((rows, predictions), np.float32),
        "next_sentence_labels": draw.integers(0, 2, (rows, 1)).astype(np.int32),
    }


PLAIN = StepOptions()
BOTH = ("masked_lm", "next_sentence")


def _trainer(options=PLAIN, bert=QUIET, seed=1, key="pretrain", objectives=BOTH):
    def build(seed):
        return BertPretrainer(bert, objectives, seed=seed)

    trainer = get_trainer((key, bert), build, ONE, options, "float32", seed)
    trainer.set_schedule(1e-2, 2, 10)
    return trainer


def _iterator(batches):
    stacked = {name: np.stack([b[name] for b in batches]) for name in batches[0]}
    return distribution.distribute_dataset(tf.data.Dataset.from_tensor_slices(stacked), ONE)


def test_steps_are_those_of_keras_with_the_same_optimiser():
    batches = [_batch(seed=i) for i in range(5)]
    trainer = _trainer()
    trainer.train_from(_iterator(batches), 5)
    model = BertPretrainer(QUIET, seed=1)
    model.compile(optimizer=BertAdamW(WarmupLinearDecay(1e-2, 2, 10)), jit_compile=False)
    for batch in batches:
        model.train_on_batch({name: tf.constant(x) for name, x in batch.items()})
    for ours, theirs in zip(
        trainer.model.trainable_variables, model.trainable_variables, strict=True
    ):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=0, atol=2e-5)
    assert trainer.step == 5


def test_a_cached_trainer_starts_anew_and_compiles_nothing():
    batches = [_batch(seed=i) for i in range(4)]
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


def test_one_call_of_n_steps_equals_n_calls():
    batches = [_batch(seed=i) for i in range(6)]
    bert = tiny_runs.bert()  # with dropout: the seeds of the steps have to agree
    trainer = _trainer(bert=bert)
    together = trainer.train_from(_iterator(batches), 6)["loss"]
    weights = trainer.weights()
    trainer = _trainer(bert=bert)
    iterator = _iterator(batches)
    apart = np.concatenate([trainer.train_from(iterator, n)["loss"] for n in (1, 3, 2)])
    np.testing.assert_array_equal(together, apart)
    trainer_on = _trainer(bert=bert)
    on = trainer_on.read([trainer_on.train_on(batch) for batch in batches])["loss"]
    np.testing.assert_allclose(on, together, atol=1e-5)
    for a, b in zip(weights, trainer.weights(), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_the_epsilon_of_the_masked_lm_loss_counts_once():
    batch = _batch()
    batch["masked_lm_weights"] = np.zeros_like(batch["masked_lm_weights"])
    batch["masked_lm_weights"][5, 0] = 1
    total, weight = BertPretrainer(QUIET, seed=1).loss_terms(
        batch, BertPretrainer(QUIET, seed=1)(batch)
    )["masked_lm_loss"]
    assert float(weight) == 1
    for accumulation in (1, 4):
        trainer = _trainer(StepOptions(accumulation=accumulation))
        loss = trainer.train_from(_iterator([batch]), 1)["masked_lm_loss"][0]
        np.testing.assert_allclose(loss, float(total) / (1 + 1e-5), rtol=2e-6)


def test_lengths_share_one_compilation():
    trainer = Trainer(lambda s: BertPretrainer(QUIET, seed=s), ONE, StepOptions())
    traced = []
    original = trainer.model.loss_terms
    trainer.model.loss_terms = lambda *a: traced.append(1) or original(*a)
    losses = [trainer.read([trainer.train_on(_batch(8, n))])["loss"] for n in (12, 20, 7)]
    assert np.isfinite(losses).all() and len(traced) == 1
    outputs = trainer.predict(_batch(3, 9))
    assert outputs["next_sentence_logits"].shape == (3, 2)


def test_padding_rows_and_padding_tokens_change_nothing():
    draw = np.random.default_rng(0)

    def build(seed):
        return BertClassifier(BertEncoder(QUIET, seed=seed), 3, seed=seed)

    ids = draw.integers(5, 20, (5, 10)).astype(np.int32)
    plain = {
        "input_ids": ids,
        "input_mask": np.ones_like(ids),
        "segment_ids": np.zeros_like(ids),
        "label_ids": np.array([0, 1, 2, 0, 1], np.int32),
        "example_weights": np.ones(5, np.float32),
    }
    padded = {name: np.pad(x, [(0, 3), (0, 6)][: x.ndim]) for name, x in plain.items()}
    padded["input_mask"][5:, 0] = 1
    results = []
    for batch in (plain, padded):
        trainer = get_trainer("classifier", build, ONE, StepOptions(), "float32", 3)
        trainer.set_schedule(1e-2, 0, 10)
        metrics = trainer.read([trainer.train_on(batch), trainer.train_on(batch)])
        results.append((metrics["loss"], trainer.weights(), trainer.predict(batch)["logits"][:5]))
    np.testing.assert_allclose(results[0][0], results[1][0], atol=1e-5)
    np.testing.assert_allclose(results[0][2], results[1][2], atol=1e-5)


@pytest.mark.parametrize("objective", ["masked_lm", "left_to_right"])
def test_step_compiles_under_xla_in_bfloat16(objective):
    """What a TPU would run: static shapes, no operation that XLA lacks, dropout, accumulation."""
    direction = "left_to_right" if objective == "left_to_right" else "bidirectional"
    bert = tiny_runs.bert(attention_direction=direction)
    options = StepOptions(
        jit_compile=True,
        accumulation=2 if objective == "masked_lm" else 1,
        fixed_shapes=True,
        train_metrics=True,
    )
    trainer = Trainer(
        lambda s: BertPretrainer(bert, of_bert(direction, True, 0.5), seed=s),
        ONE,
        options,
        "mixed_bfloat16",
        seed=1,
    )
    trainer.set_schedule(1e-2, 2, 20)
    batch = _batch()
    metrics = trainer.train_from(_iterator([batch] * 12), 12)
    assert np.isfinite(metrics["loss"]).all()
    assert metrics["loss"][-1] < metrics["loss"][0] - 0.1
    assert {v.dtype for v in trainer.model.trainable_variables} == {"float32"}


def test_remat_takes_the_same_steps():
    bert = tiny_runs.bert()
    remat = Trainer(
        lambda s: BertPretrainer(BertEncoder(bert, remat=True, seed=s), seed=s), ONE, PLAIN, seed=1
    )
    remat.set_schedule(1e-2, 2, 10)
    batches = [_batch(seed=i) for i in range(3)]
    losses = [one.train_from(_iterator(batches), 3)["loss"] for one in (_trainer(bert=bert), remat)]
    np.testing.assert_allclose(*losses, atol=1e-5)


def test_learning_rate_is_that_of_the_schedule():
    trainer = _trainer()
    trainer.set_schedule(3e-4, 10, 100)
    schedule = WarmupLinearDecay(3e-4, 10, 100)
    for step in (0, 1, 9, 10, 11, 55, 100, 120):
        assert trainer.learning_rate(step) == pytest.approx(float(schedule(step)), rel=1e-5)


def test_mistakes_are_named(monkeypatch):
    with pytest.raises(UserError, match="not a multiple of 3"):
        check_batch_size(8, ONE, 3)
    with pytest.raises(UserError, match="needs TF_CONFIG"):
        distribution.get_strategy("multi_worker")
    for task in ({"type": "worker", "index": 7}, {"type": "worker", "index": "a"}):
        told = {"cluster": {"worker": ["localhost:1"]}, "task": task}
        monkeypatch.setenv("TF_CONFIG", json.dumps(told))
        with pytest.raises(UserError, match=r"needs TF_CONFIG .* (id of worker|base 10: 'a')"):
            distribution.get_strategy("multi_worker")
    with pytest.raises(UserError, match="shard=weights is for KERAS_BACKEND=jax"):
        distribution.strategy_of(PretrainConfig(shard="weights", distribute="mirrored"))
    trainer = _trainer()
    arrays = trainer.arrays()
    with pytest.raises(UserError, match="of another model: model/0000 has shape"):
        trainer.load_arrays({**arrays, "model/0000": np.zeros(3)})
    with pytest.raises(UserError, match="it lacks"):
        trainer.load_arrays({k: v for k, v in arrays.items() if k != "model/0001"})


def test_steps_without_a_loss_term_are_those_of_a_model_that_lacks_it():
    batches = [_batch(seed=i) for i in range(4)]
    with_nsp, without_nsp = _trainer(), _trainer(key="no nsp", objectives=("masked_lm",))
    pooler = without_nsp.model.encoder.pooler.kernel.numpy()
    left_out = with_nsp.train_from(_iterator(batches), 3, ("next_sentence_loss",))
    lacking = without_nsp.train_from(_iterator(batches), 3)
    np.testing.assert_array_equal(left_out["loss"], lacking["loss"])
    for ours, theirs in zip(with_nsp.weights(), without_nsp.weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    # What the loss does not reach stays: it is not decayed either.
    np.testing.assert_array_equal(without_nsp.model.encoder.pooler.kernel.numpy(), pooler)
    head = with_nsp.model.next_sentence.kernel.numpy()
    table = with_nsp.train_from(_iterator(batches[3:]), 1)
    total = table["masked_lm_loss"] + table["next_sentence_loss"]
    np.testing.assert_allclose(table["loss"], total, rtol=1e-6)
    assert np.any(with_nsp.model.next_sentence.kernel.numpy() != head)


def test_one_replica_is_no_reason_to_pass_by_its_strategy():
    mirrored = tf.distribute.MirroredStrategy(["/cpu:0"])
    for strategy in (ONE, mirrored):
        assert strategy.num_replicas_in_sync == 1
        assert distribution.run(strategy, lambda: tf.distribute.get_strategy()) is strategy
    rows = distribution.distribute_batch({"x": np.arange(3)}, mirrored)["x"]
    np.testing.assert_array_equal(mirrored.experimental_local_results(rows)[0], [0, 1, 2])
    with pytest.raises(UserError, match="one_device only"):
        Trainer(lambda s: BertPretrainer(QUIET, seed=s), mirrored, StepOptions(jit_compile=True))


def test_steps_of_processes_are_compared_exactly():
    for step in (19_000, 21_000, 999_000):
        assert distribution.all_equal(np.full(3, step, np.float32))
        assert not distribution.all_equal(np.array([step, step, step + 1], np.float32))


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


def test_training_flops_of_base():
    # 545 GFLOP without the attention products of 2 x 12 x 8 x 128 x 128 x 768 x 2 x 3 = 14.5.
    flops = training_flops(named_config("base"), 8, 128, 20)
    assert flops / 1e9 == pytest.approx(559.6, abs=1)
    doubled = dataclasses.replace(named_config("base"), num_hidden_layers=24)
    assert 1.9 < training_flops(doubled, 8, 128, 20) / flops < 2.0


@pytest.mark.parametrize("kind", [tf.errors.UnavailableError, tf.errors.AbortedError])
def test_a_process_that_was_lost_is_told(monkeypatch, kind):
    def lose():
        with distribution.explained(ONE):
            raise kind(None, None, "Collective ops is aborted by: /job:worker/replica:0/task:1")

    with pytest.raises(kind):  # there is no other process
        lose()
    monkeypatch.setattr(distribution, "_num_processes", lambda strategy: 2)
    with pytest.raises(UserError, match="another process of this run ended, .* Start all of them"):
        lose()
