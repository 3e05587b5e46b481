"""`benchmarks.gpu`: pieces keep what they found and go on; nothing is timed here."""

import argparse
import time
from pathlib import Path

import pytest

from benchmarks.gpu import __main__ as command
from benchmarks.gpu import equality, report, steps, tables
from benchmarks.gpu.results import Results

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results" / "gpu"


class Fake:
    """A contestant of a known rate; `broken` ones fail at their first turn."""

    started: list = []

    def __init__(self, name, script, mode, size, precision):
        if size[0] == 24:
            raise RuntimeError("the process ended (1): out of memory")
        self.size, self.seconds, self.first_step = size, [], 1.0
        Fake.started.append((name, size))

    def turn(self, count):
        if self.size[0] == 12:
            raise RuntimeError("the process ended (9): ")
        self.seconds.append(0.5)

    def close(self):
        pass


@pytest.fixture
def options(tmp_path, monkeypatch):
    monkeypatch.setattr(steps, "Contestant", Fake)
    monkeypatch.setattr(steps, "NEEDS", {})
    Fake.started = []
    return argparse.Namespace(
        output=tmp_path, device="A GPU", memory_gib=80, shapes="tiny,base,large", lengths="128",
        tokens=1024, rounds=2, peak_tflops=1.0, until=float("inf"),
    )  # fmt: skip


def test_what_was_measured_is_not_measured_again_and_failures_say_why(options):
    assert not steps.run("steps", options) and not steps.run("steps", options)
    assert [size[0] for _, size in Fake.started] == [2, 2, 12, 12]  # once
    found = Results(options.output / "steps.json", "A GPU").values["runs"]
    ours = found[f"tiny 128: {steps.OURS}"]
    assert ours["step_ms"] == 500 and ours["tokens_per_s"] == 2048 and ours["rows"] == 8
    assert found[f"base 128: {steps.OURS}"]["failed"] == "the process ended (9): "
    assert "out of memory" in found[f"large 128: {steps.THEIRS}"]["failed"]
    report.write(options.output)
    assert "did not run: the process ended (1): out of memory" in (
        options.output / "gpu.md"
    ).read_text()  # fmt: skip


def test_what_is_not_installed_is_skipped_by_name_until_it_is(options, monkeypatch):
    options.shapes = "tiny"
    with monkeypatch.context() as patch:
        patch.setattr(steps, "NEEDS", {steps.THEIRS: ("a_missing_package",)})
        assert steps.run("steps", options) and steps.run("steps", options)
    report.write(options.output)
    told = (options.output / "gpu.md").read_text()
    assert "did not run: not installed: a_missing_package" in told
    assert [name for name, _ in Fake.started] == [steps.OURS]
    monkeypatch.setattr(steps, "NEEDS", {})
    assert steps.run("steps", options)
    assert [name for name, _ in Fake.started] == [steps.OURS, steps.THEIRS]


def test_no_piece_begins_when_the_time_is_over(options):
    options.until = time.time() - 1
    assert not steps.run("steps", options) and not Fake.started
    assert not tables.table("table5", options)


@pytest.mark.parametrize(("seconds", "code"), [("0", 1), ("1000", 1), ("10", 0)])
def test_a_piece_that_failed_is_told_from_one_without_time(tmp_path, monkeypatch, seconds, code):
    ran = []
    monkeypatch.setattr(command, "PIECES", {name: lambda *of: ran.append(of) for name in "ab"})
    monkeypatch.setattr("sys.argv", ["gpu", f"--output={tmp_path}", f"--seconds={seconds}"])
    assert command.main() == code
    assert len(ran) == (2 if code else 1)


def test_another_device_measures_anew(options):
    steps.run("steps", options)
    assert f"tiny 128: {steps.OURS}" not in Results(options.output / "steps.json", "Another")


def test_contestants_side_by_side_fit_the_memory():
    asked = [
        (name, name, "", "", steps.shape(name, length, 16_384))
        for name in steps.SIZES for length in (128, 512)
    ]  # fmt: skip
    for memory in (78, 139):
        groups = steps.groups(asked, memory)
        assert [one for group in groups for one in group] == asked
        for group in groups:
            assert len(group) == 1 or sum(steps.gib(one[-1]) for one in group) <= 0.9 * memory


def test_distance_of_two_runs():
    import numpy as np

    one = {"loss": np.array([2.0, 1.0]), "gradient_norm": np.array([1.0, 1.0]),
           "weights": np.array([3.0, 4.0])}  # fmt: skip
    other = {**one, "loss": np.array([2.0, 1.1]), "weights": np.array([3.0, 4.5])}
    found = equality.apart(one, other)
    assert found["loss_apart_at_first"] == 0 and found["weights_apart"] == pytest.approx(0.1)
    assert found["loss_apart_at_most"] == pytest.approx(0.1)


def test_the_committed_report_is_that_of_the_committed_figures(tmp_path):
    for path in RESULTS.glob("*.json"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    report.write(tmp_path)
    assert (tmp_path / "gpu.md").read_text() == (RESULTS / "gpu.md").read_text()
