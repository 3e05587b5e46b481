"""A run that is killed, stopped or out of disk goes on to the same bits."""

import json
import os
import random
import signal
import types

import forked
import numpy as np
import pytest
import tiny_runs

from experiments.training.folder import checkpointing
from experiments.training.folder.checkpointing import Checkpoints
from experiments.training.settings.config import Phase
from experiments.training.step import loop
from official_bert.checkpoints import integrity
from official_bert.common.errors import UserError
from official_bert.common.json_files import read_json


@pytest.fixture(scope="module")
def uninterrupted(data, tmp_path_factory):
    """Return the final arrays and results of a run without interruption."""
    workdir = tmp_path_factory.mktemp("uninterrupted")
    assert _in_a_process(data, workdir) == 0
    return _final(workdir)


def test_kills_and_signals_then_the_same_bits(data, uninterrupted, tmp_path):
    draw = random.Random(20181011)
    # Calls take three steps, or fewer up to a point that logs or saves; the one in progress ends.
    assert _in_a_process(data, tmp_path, send=signal.SIGTERM, send_at=6) == 128 + signal.SIGTERM
    assert Checkpoints(tmp_path / "checkpoints").steps()[-1] in (6, 7, 8)
    kill_at = draw.randint(9, 16)
    assert _in_a_process(data, tmp_path, kill_at=kill_at) == -signal.SIGKILL
    assert _in_a_process(data, tmp_path, send=signal.SIGINT, send_at=18) == 130
    assert Checkpoints(tmp_path / "checkpoints").steps()[-1] in (18, 19, 20)
    assert _in_a_process(data, tmp_path) == 0
    _assert_equal(_final(tmp_path), uninterrupted)
    steps = [json.loads(line)["step"] for line in (tmp_path / "metrics.jsonl").open()]
    assert steps == sorted(steps)
    logged = [s for s in steps if s % 5 == 0]
    assert logged == sorted(set(logged)), "a step was logged twice"


def test_newest_and_best_are_kept(tmp_path):
    checkpoints = Checkpoints(tmp_path, keep=2)
    for step in range(1, 7):
        checkpoints.save(step, {"w": np.zeros(2)}, {}, best_step=2)
    assert checkpoints.steps() == [2, 5, 6]


def test_a_run_that_began_with_other_masks_does_not_go_on(tmp_path):
    """Checkpoints of a version whose dropout drew other masks are refused by name."""
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    for step in (1, 2):
        checkpoints.save(step, {"model/a": np.ones(3)}, {"loss": 1.5})
    assert checkpoints.load_newest()[1] == {"loss": 1.5, "step": 2}
    path = checkpoints.newest_state()
    state = read_json(path, finite=False)
    assert state.pop("masks")
    state.pop(integrity.CHECKSUMS)
    state = integrity.with_checksums(path.parent, path.name, state)  # as version 0.1 wrote it
    path.write_text(json.dumps(state))
    told = r"step-00000002 is of a version whose dropout draws other"
    with pytest.raises(checkpointing.OtherMasks, match=told):
        checkpoints.load_newest()


def test_a_checkpoint_of_another_version_is_refused(tmp_path):
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    checkpoints.save(4, {"w": np.ones(2)}, {"epoch": 1})
    trainer = types.SimpleNamespace(load_arrays=lambda arrays: None)
    with pytest.raises(UserError, match="checkpoints: state: unknown field epoch"):
        loop.restore(trainer, checkpoints)


def test_loss_that_is_not_finite_names_the_step(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(4, {"w": np.ones(2)}, {})
    metrics = {"loss": np.array([1.0, 2.0, np.nan]), "gradient_norm": np.array([1.0, np.inf, 1.0])}
    with pytest.raises(FloatingPointError, match=r"step 12: .* checkpoint of step 4 is kept"):
        loop._check_finite(metrics, 10, checkpoints)


def _in_a_process(data, workdir, **interruption):
    return forked.exit_code(forked.start(_run, data, workdir, interruption))


def _run(data, workdir, interruption):
    """Run one pre-training in the child, interrupted as told."""
    from experiments import pretrain
    from experiments.training.pretraining import pretrain_run

    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 2)
    take = pretrain_run.PretrainingBatches.take
    kill_at, send_at = interruption.get("kill_at"), interruption.get("send_at")

    def interrupted_take(batches, trainer, step, count):
        if send_at is not None and step < send_at <= step + count:
            os.kill(os.getpid(), interruption["send"])
        taken = take(batches, trainer, step, count)
        if kill_at is not None and step < kill_at <= step + count:
            _kill_while_saving()
        return taken

    pretrain_run.PretrainingBatches.take = interrupted_take
    try:
        records = str(data / "short")
        # Both phases have one length, so that they share a compiled step.
        phases = (Phase(records, 16, 16, records), Phase(records, 16, 8, records))
        config = tiny_runs.pretrain_config(data, phases=phases)
        pretrain.run(config, workdir, progress=False)
    except KeyboardInterrupt:
        os._exit(130)


def _kill_while_saving():
    def savez(file, **_arrays):
        file.write(b"PK half of an archive")
        file.flush()
        os.kill(os.getpid(), signal.SIGKILL)

    checkpointing.np.savez = savez


def _final(workdir):
    arrays, _ = Checkpoints(workdir / "checkpoints").load(24)
    results = json.loads((workdir / "results.json").read_text())
    return arrays, {k: results[k] for k in ("heldout", "steps", "examples", "tokens", "best_step")}


def _assert_equal(run, reference):
    arrays, results = run
    assert results == reference[1]
    assert arrays.keys() == reference[0].keys()
    for name, array in arrays.items():
        assert array.tobytes() == reference[0][name].tobytes(), name
