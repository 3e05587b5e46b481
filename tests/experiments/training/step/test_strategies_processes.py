"""Processes that share the rows of a batch take the steps of one device."""

import dataclasses
import json
import os
import time

import forked
import numpy as np
import pytest
import tiny_runs

from official_bert.common.errors import UserError

STEPS = 20
_CLIP = 0.5
pytestmark = pytest.mark.timeout(1800)  # generous, for busy machines


def test_three_processes_with_accumulation_equal_one_device(data, tmp_path):
    from experiments import pretrain
    from official_bert.checkpoints import model_folder

    with forked.cluster(3) as workers:
        processes = [
            forked.start(_worker, data, tmp_path / "three", environment, index)
            for index, environment in enumerate(workers)
        ]
        one = pretrain.run(_config(data), tmp_path / "one", progress=False)
        for process in processes:
            assert forked.exit_code(process) == 0
    three = json.loads((tmp_path / "three" / "results.json").read_text())
    for name, value in one.heldout.items():
        assert three["heldout"][name] == pytest.approx(value, abs=1e-5)
    norms, _ = (tiny_runs.logged(tmp_path / name, "gradient_norm") for name in ("one", "three"))
    assert len(norms) == STEPS and min(norms) > _CLIP  # all of them clipped
    losses = [tiny_runs.logged(tmp_path / name, "loss") for name in ("one", "three")]
    np.testing.assert_allclose(*losses, rtol=0, atol=1e-5)
    first, others = (
        model_folder.load(tmp_path / name / "model").model.get_weights()
        for name in ("one", "three")
    )
    for a, b in zip(first, others, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)
    for index in range(3):
        found = json.loads((tmp_path / f"agreement-{index}.json").read_text())
        refused = found.pop("refused")
        assert ("learning_rate: 0.001 -> 0.002; start" in refused) == (index == 2), refused
        assert ("another process says which" in refused) == (index < 2)
        assert found == {"19000": True, "21000": True, "999000": True, "index": False}


@pytest.mark.parametrize("first", [0, 2])
def test_a_process_that_has_all_results_may_end_before_others(first, tmp_path):
    with forked.cluster(3) as workers:
        processes = [
            forked.start(_lost, tmp_path, environment, index, first)
            for index, environment in enumerate(workers)
        ]
        assert [forked.exit_code(process) for process in processes] == [
            7 if index == first else 0 for index in range(3)
        ]


def _lost(folder, environment, index, first):
    os.environ.update(environment)
    from experiments.training.step import strategies

    strategy = strategies.get_strategy("multi_worker")
    with strategies.explained(strategy):
        assert strategies._gathered(strategy, index).tolist() == [0, 1, 2]
        (folder / str(index)).touch()
        while len(os.listdir(folder)) < 3:
            time.sleep(0.01)
        if index == first:
            os._exit(7)
    assert strategies.local_replicas(strategy) == 1


def _worker(data, workdir, environment, index):
    os.environ.update(environment)
    from experiments import pretrain

    config = _config(data, distribute="multi_worker", gradient_accumulation=2)
    pretrain.run(config, workdir, progress=False)
    from experiments.training.step import strategies

    strategy = strategies.get_strategy("multi_worker")
    found = {n: strategies.same_everywhere(strategy, n) for n in (19_000, 21_000, 999_000)}
    found["index"] = strategies.same_everywhere(strategy, 19_000 + index // 2)
    other = dataclasses.replace(config, learning_rate=1e-3 * (1 + index // 2))
    try:
        pretrain.run(other, workdir.parent / "other", progress=False)
    except UserError as error:
        found["refused"] = str(error)
    (workdir.parent / f"agreement-{index}.json").write_text(json.dumps(found))


def _config(data, **fields):
    fields |= {"bert": tiny_runs.quiet_bert(), "train_batch_size": 12, "learning_rate": 1e-3}
    fields |= {"clip_norm": _CLIP, "log_every": 1, "max_heldout_examples": 32}
    return tiny_runs.short_config(data, STEPS, **fields)
