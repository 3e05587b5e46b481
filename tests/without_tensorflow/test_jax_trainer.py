"""The training step on JAX: one program, devices, divided weights."""

import re
from collections import Counter

import jax
import numpy as np
import pytest
import tiny_runs
from jax.sharding import Mesh

from experiments.training.settings.config import PretrainConfig
from experiments.training.step import jax_strategies
from experiments.training.step.jax_strategies import Devices, stacked
from experiments.training.step.jax_trainer import JaxTrainer
from official_bert.common.errors import UserError

pytestmark = pytest.mark.timeout(1800)  # XLA compiles a program or two in each
QUIET = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def _trainer(
    distribute="one_device", precision="float32", bert=None, shard="", devices=None, **options
):
    devices = devices or jax_strategies.get_strategy(distribute, shard)
    return tiny_runs.trainer(
        JaxTrainer, tiny_runs.bert(**bert or {}), devices, precision, **options
    )


def _batches(first, last):
    return iter([tiny_runs.batch(seed=step % 3) for step in range(first, last)])


def _train(trainer, calls, **options):
    return tiny_runs.train(trainer, _batches(0, sum(calls)), calls, **options)


@pytest.fixture(scope="module")
def one_device():
    """Return (trainer, losses, weights) of five steps on one device."""
    trainer = _trainer()
    return trainer, *_train(trainer, [5])


@pytest.mark.parametrize("shard", ["", "weights"])
def test_eight_devices_draw_the_same_masks_and_take_the_same_steps(one_device, shard):
    one, losses, weights = one_device
    eight = _trainer("mirrored", shard=shard)
    assert len(jax.devices()) == eight.strategy.num_replicas_in_sync == 8
    found, others = _train(eight, [5])
    np.testing.assert_allclose(found, losses, atol=1e-5)
    for ours, theirs in zip(others, weights, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    batch = {name: x[:6] for name, x in tiny_runs.batch().items()}
    expected = one.predict(batch)
    for name, values in eight.predict(batch).items():
        np.testing.assert_allclose(values, expected[name], atol=1e-4)
        assert len(values) == 6


def test_a_checkpoint_goes_on_on_any_number_of_devices(one_device):
    _, losses, weights = one_device
    kept = {}
    for first, last, place in ((0, 2, "weights"), (2, 4, "one"), (4, 5, "weights")):
        sharded = place == "weights"
        trainer = _trainer("mirrored", shard="weights") if sharded else _trainer()
        if kept:
            trainer.load_arrays(kept)
        found = trainer.train_from(_batches(first, last), last - first)["loss"]
        np.testing.assert_allclose(found, losses[first:last], atol=1e-5)
        kept = trainer.arrays()
    for ours, theirs in zip(trainer.model.get_weights(), weights, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("shard", ["weights", pytest.param("", marks=pytest.mark.slow)])
def test_a_program_for_eight_devices(shard):
    """Rows are divided, matrices where they are to be; gradients are summed once, all at once."""
    trainer = _trainer("mirrored", shard=shard)
    program = trainer.lowered(stacked(iter([tiny_runs.batch()]), 1, 1, 1)).compile()
    _, divided = program.input_shardings
    assert {tuple(x.spec) for x in divided["batches"].values()} == {(None, None, "rows")}
    trained = trainer.model.trainable_variables
    matrices = [len(v.shape) == 2 and any(n % 8 == 0 for n in v.shape) for v in trained]
    kept = ["rows" in x.spec for x in divided["state"][0]]
    assert kept == [bool(shard) and matrix for matrix in matrices] and sum(matrices) > 0
    text = program.as_text()
    assert text.count(" all-gather(") >= sum(kept)
    if shard:
        return
    assert not re.search(r" (all-gather|all-to-all|collective-permute)\(", text)
    sums = re.findall(r"= (.*?) all-reduce\(", text)
    found = [np.prod([*map(int, x.split(","))]) for x in re.findall(r"f32\[([\d,]+)\]", str(sums))]
    table = trainer.model.encoder.embeddings
    sizes = [np.prod(v.shape) for v in trained if v is not table.position_embeddings]
    # The words' table is looked up and scores: two gradients. Only 12 positions are used.
    sizes += [np.prod(table.word_embeddings.shape), 12 * 16]
    assert Counter(found) == Counter(sizes)
    assert sum("[" in each.replace("f32[]", "") for each in sums) == 1


@pytest.mark.parametrize(
    ("precision", "near"),
    [("float32", 1e-5), pytest.param("mixed_bfloat16", 5e-3, marks=pytest.mark.slow)],
)
def test_divided_weights_with_micro_batches(precision, near):
    found = []
    for place in (("one_device", ""), ("mirrored", "weights")):
        trainer = _trainer(place[0], precision, QUIET, place[1], accumulation=2)
        batches = iter([tiny_runs.batch(seed=step, rows=16) for step in range(2)])
        found.append([trainer.train_from(batches, 2)["loss"], *trainer.model.get_weights()])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=near)


def test_places_that_jax_has_not():
    with pytest.raises(UserError, match="KERAS_BACKEND=tensorflow"):
        jax_strategies.get_strategy("multi_worker")
    with pytest.raises(UserError, match="found no TPU, JAX sees cpu"):
        jax_strategies.get_strategy("tpu")


def test_deterministic_on_a_gpu_needs_xla_to_be_told(monkeypatch):
    jax_strategies.make_deterministic()  # a CPU is so anyway
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    with pytest.raises(UserError, match="xla_gpu_deterministic_ops=true"):
        jax_strategies.make_deterministic()
    monkeypatch.setenv("XLA_FLAGS", "--xla_gpu_deterministic_ops=true --another")
    jax_strategies.make_deterministic()


def test_weights_that_would_stay_whole_are_refused():
    seven = Mesh(np.array(jax.devices()[:7]), ("rows",))
    with pytest.raises(UserError, match="0% of the weights .* divides by 7 devices"):
        _trainer(devices=Devices(seven, "weights"))
    assert _trainer(devices=Devices(seven)).strategy.num_replicas_in_sync == 7


def test_shard_is_for_several_devices():
    with pytest.raises(UserError, match="set distribute=mirrored or tpu instead of one_device"):
        PretrainConfig(shard="weights")
    config = PretrainConfig(shard="weights", distribute="mirrored")
    assert jax_strategies.strategy_of(config).shard == "weights"
