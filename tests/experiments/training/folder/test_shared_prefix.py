"""Warm-up, stable, decay: a run that goes on from a trunk is the run without one, to the bit."""

import dataclasses

import numpy as np
import pytest
import tiny_runs

from experiments import pretrain
from experiments.training.folder.checkpointing import Checkpoints
from official_bert.common.errors import UserError


def _config(data, steps, decay, trunk="", **changes):
    config = tiny_runs.pretrain_config(data)
    *shorter, last = config.phases
    before = sum(phase.num_train_steps for phase in shorter)
    last = dataclasses.replace(last, num_train_steps=steps - before)
    fields = {"phases": (*shorter, last), "num_decay_steps": decay, "trunk": str(trunk)}
    return dataclasses.replace(config, **fields, **changes)


@pytest.fixture(scope="module")
def trunk(data, tmp_path_factory):
    """Return a trunk of two stretches, the second of which goes on from the first."""
    first, second = (tmp_path_factory.mktemp(name) for name in ("first", "second"))
    pretrain.run(_config(data, 18, 0), first, progress=False)
    pretrain.run(_config(data, 20, 0, first), second, progress=False)
    return second


def test_a_decay_from_a_trunk_is_the_whole_run(data, trunk, tmp_path):
    branched, whole = tmp_path / "branched", tmp_path / "whole"
    results = pretrain.run(_config(data, 25, 5, trunk, snapshots=(25,)), branched, progress=False)
    expected = pretrain.run(_config(data, 25, 5), whole, progress=False)
    for name in ("steps", "examples", "tokens", "heldout"):
        assert getattr(results, name) == getattr(expected, name)
    arrays, others = (Checkpoints(f / "checkpoints").load(25)[0] for f in (branched, whole))
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, others[name], name)
    before, _ = Checkpoints(trunk / "checkpoints").load(20)
    assert any((array != before[name]).any() for name, array in arrays.items())


@pytest.mark.parametrize(
    "steps, decay, changes, message",
    [
        (25, 6, {}, "its rate after 20 steps is not this run's"),
        (25, -1, {}, "its rate after 20 steps is not this run's"),
        (25, 5, {"seed": 7}, "seed: 12345 -> 7"),
        (25, 5, {"objectives": ("masked_lm",)}, r"objectives: \[.*\] -> \[\"masked_lm\"\]"),
    ],
)
def test_a_trunk_of_another_run_is_refused(data, trunk, tmp_path, steps, decay, changes, message):
    with pytest.raises(UserError, match=message):
        pretrain.run(_config(data, steps, decay, trunk, **changes), tmp_path, progress=False)


def test_a_trunk_that_decays_is_refused(data, tmp_path):
    pretrain.run(_config(data, 18, 4), tmp_path / "decayed", progress=False)
    with pytest.raises(UserError, match="a trunk has num_decay_steps=0"):
        pretrain.run(_config(data, 25, 5, tmp_path / "decayed"), tmp_path / "on", progress=False)
