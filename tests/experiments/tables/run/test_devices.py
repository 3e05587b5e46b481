"""Workers on machines with GPUs, faked: how many, and which GPUs each of them sees."""

import subprocess

import pytest

from experiments.tables.run import devices, pool
from experiments.tables.run.grid import Cell, Grid
from experiments.training.folder import provenance


@pytest.fixture
def fake_gpus(monkeypatch):
    """Return a function that sets how many GPUs the driver lists; None: there is no driver."""
    for name in ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)  # what the tests themselves run with

    def list_gpus(number):
        def run(command, **options):
            assert command == ["nvidia-smi", "-L"]
            if number is None:
                raise FileNotFoundError(command[0])
            lines = [f"GPU {i}: NVIDIA H100 (UUID: GPU-{i})\n  MIG 1g.10gb" for i in range(number)]
            return subprocess.CompletedProcess(command, 0, "\n".join(lines), "")

        monkeypatch.setattr(provenance.shutil, "which", lambda name: name)
        monkeypatch.setattr(provenance.subprocess, "run", run)
        monkeypatch.setattr(provenance, "gpus", provenance.gpus.__wrapped__)

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(devices, "available_cores", lambda: 16)
    return list_gpus


@pytest.mark.parametrize(
    "listed, chosen, gpus, workers",
    [
        (None, None, [], 16),
        (0, "0", [], 16),
        (1, None, ["0"], 1),
        (4, None, ["0", "1", "2", "3"], 4),
        (4, "2,3", ["2", "3"], 2),
        (4, "", [], 16),
        (4, "-1", [], 16),
        (2, "GPU-1", ["GPU-1"], 1),
    ],
)
def test_a_worker_a_gpu_or_a_core(fake_gpus, monkeypatch, listed, chosen, gpus, workers):
    fake_gpus(listed)
    if chosen is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    assert devices.available_gpus() == gpus
    assert devices.default_workers() == workers


@pytest.mark.parametrize(
    "workers, gpus, seen",
    [
        (2, ["2", "3"], ["2", "3"]),
        (1, ["0", "1"], ["0,1"]),  # one worker may train on all of them
        (3, ["0", "1"], ["0", "1", "0"]),  # more workers than GPUs share them
        (2, ["0", "1", "2", "3"], ["0,2", "1,3"]),
    ],
)
def test_gpus_are_dealt_out(fake_gpus, monkeypatch, workers, gpus, seen):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "what the user allows")
    found = [devices.worker_environment(slot, workers, gpus) for slot in range(workers)]
    assert [environment["CUDA_VISIBLE_DEVICES"] for environment in found] == seen
    for environment in found:
        assert environment["TF_FORCE_GPU_ALLOW_GROWTH"] == "true"
        assert environment["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
        assert environment["TF_NUM_INTRAOP_THREADS"] == str(16 // workers)


def test_without_gpus_the_users_environment_stays(fake_gpus, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    environment = devices.worker_environment(0, 2, [])
    assert "CUDA_VISIBLE_DEVICES" not in environment
    assert environment["OMP_NUM_THREADS"] == "3"


def test_a_worker_that_replaces_a_dead_one_gets_its_gpu(monkeypatch, tmp_path):
    monkeypatch.setattr(pool, "available_gpus", lambda: ["5", "6"])
    cells, go = [Cell("dies", "fake", {"die": True})], tmp_path / "go"
    work = {"environment": "CUDA_VISIBLE_DEVICES", "steps": 5, "go": str(go)}
    cells += [Cell(f"c{i}", "fake", work | {"value": i}) for i in range(4)]

    def let_go(*_):
        if len(list(tmp_path.glob("c*/progress"))) == 2:  # of two workers
            go.touch()

    runner = "tests.experiments.tables.run.fake_cells:run_cell"
    found = Grid(cells, tmp_path).run(2, runner, on_event=let_go, poll_seconds=0.02)
    seen = {status.result["pid"]: status.result["environment"]
            for name, status in found.items() if name != "dies"}  # fmt: skip
    assert sorted(seen.values()) == ["5", "6"]
