"""`benchmarks.gpu`: pieces keep what they found and go on; nothing is timed here."""

import argparse
import json
import os
import subprocess
import time
from pathlib import Path
from unittest import mock

import pytest

from benchmarks.gpu import __main__ as command
from benchmarks.gpu import equality, kernels, report, steps, tables
from benchmarks.gpu.results import Results
from official_bert.common.errors import UserError

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results" / "gpu"


class Fake:
    """A contestant of a known rate; of two sizes they fail, at their start and at a turn."""

    started: list = []

    def __init__(self, name, script, mode, size, precision, wait):
        self.name, self.size, self.seconds = name, size, []
        self.process = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        Fake.started.append(self)

    has_answered = True

    @property
    def first_step(self):
        if self.size[0] == 24:
            raise RuntimeError("the process ended (1): out of memory")
        return 1.0

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
        tokens=1024, more_tokens=0, rounds=2, peak_tflops=1.0, until=float("inf"),
    )  # fmt: skip


def test_what_was_measured_is_not_measured_again_and_failures_say_why(options):
    assert not steps.run("steps", options) and not steps.run("steps", options)
    assert [one.size[0] for one in Fake.started] == [12, 12, 24, 24, 2, 2]  # once
    found = Results(options.output / "steps.json", "A GPU").values["runs"]
    ours = found[f"tiny 128: {steps.OURS}"]
    assert ours["step_ms"] == 500 and ours["tokens_per_s"] == 2048 and ours["rows"] == 8
    assert found[f"base 128: {steps.OURS}"]["failed"] == "the process ended (9): "
    assert "out of memory" in found[f"large 128: {steps.THEIRS}"]["failed"]
    report.write(options.output)
    told = (options.output / "gpu.md").read_text()
    assert "did not run: the process ended (1): out of memory" in told


def test_what_is_not_installed_is_skipped_by_name_until_it_is(options, monkeypatch):
    options.shapes = "tiny"
    with monkeypatch.context() as patch:
        patch.setattr(steps, "NEEDS", {steps.THEIRS: ("a_missing_package",)})
        assert steps.run("steps", options) and steps.run("steps", options)
    report.write(options.output)
    told = (options.output / "gpu.md").read_text()
    assert "did not run: not installed: a_missing_package" in told
    assert [one.name for one in Fake.started] == [steps.OURS]
    monkeypatch.setattr(steps, "NEEDS", {})
    assert steps.run("steps", options)
    assert [one.name for one in Fake.started] == [steps.OURS, steps.THEIRS]


def test_no_piece_begins_when_the_time_is_over(options):
    options.until = time.time() - 1
    assert not steps.run("steps", options) and not Fake.started
    assert not tables.table("table5", options)


@pytest.mark.parametrize(("seconds", "code"), [("0", 1), ("1000", 1), ("10", 0)])
def test_a_piece_that_failed_is_told_from_one_without_time(tmp_path, monkeypatch, seconds, code):
    ran = []
    monkeypatch.setattr(command, "PIECES", {name: lambda *of: ran.append(of) for name in "ab"})
    assert _command(monkeypatch, tmp_path, f"--seconds={seconds}", pieces="a,b") == code
    assert len(ran) == (2 if code else 1)


def _command(monkeypatch, folder, *options, pieces="steps", device=("A GPU", 80.0)):
    monkeypatch.setattr(command, "device", lambda: device)
    monkeypatch.setattr("sys.argv", ["gpu", f"--output={folder}", f"--pieces={pieces}", *options])
    return command.main()


def test_figures_of_another_device_or_other_options_stay(options, monkeypatch):
    assert _command(monkeypatch, options.output, "--shapes=tiny") == 0
    kept = (options.output / "steps.json").read_bytes()
    with pytest.raises(UserError, match="of device A GPU, not CPU; choose another --output"):
        _command(monkeypatch, options.output, "--shapes=small", device=("CPU", 0.0))
    with pytest.raises(UserError, match="of tokens 16384, not 64, rounds 3, not 1; choose"):
        _command(monkeypatch, options.output, "--tokens=64", "--rounds=1")
    assert (options.output / "steps.json").read_bytes() == kept


@pytest.mark.parametrize(
    "damage", [b"", b'{"device": "A G', b"[]", b'{"device": "A", "date": "", "runs": {"x": 1}}']
)
def test_a_damaged_result_is_named(options, monkeypatch, damage):
    path = options.output / "attention.json"
    path.write_bytes(damage)
    with pytest.raises(UserError, match=r"attention\.json.*; move it away, and its piece is"):
        _command(monkeypatch, options.output, "--shapes=tiny")
    assert path.read_bytes() == damage


@pytest.mark.parametrize(
    ("driver", "jax", "found"),
    [
        ("NVIDIA H100, 81920\nNVIDIA H100, 81920", "gpu\nNVIDIA H100", ("NVIDIA H100", 80.0)),
        ("", "gpu\nNVIDIA H100", ("NVIDIA H100", 0.0)),  # a container without its command
        ("Orin, [N/A]", "gpu\nOrin", ("Orin", 0.0)),
        ("", "cpu\ncpu", ("CPU", 0.0)),
        ("No devices were found", "cpu\ncpu", ("CPU", 0.0)),
        ("NVIDIA H100, 81920", "cpu\ncpu", "driver sees NVIDIA H100, but JAX computes on the CPU"),
        ("NVIDIA H100, 81920", "", "JAX sees no device"),
    ],
)
def test_the_device_is_the_one_that_jax_computes_on(monkeypatch, driver, jax, found):
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    monkeypatch.setattr(command, "_said", lambda asked: driver if "nvidia" in asked[0] else jax)
    if isinstance(found, tuple):
        assert command.device() == found
        return
    with pytest.raises(UserError, match=found):
        command.device()


def test_the_device_of_this_machine():
    name, gib = command.device()
    assert name and (name == "CPU") <= (gib == 0.0)


def test_a_failure_stays_one(options):
    results = Results(options.output / "equality.json", options.device)
    for part in equality.PRECISIONS:
        results.add(part, {"failed": "see output"})
    results.add("deterministic", {"same_bits": True})
    assert not equality.run("equality", options)


def test_what_was_started_ends_with_the_command(options, monkeypatch):
    monkeypatch.setattr(Fake, "turn", mock.Mock(side_effect=SystemExit(143)))
    with pytest.raises(SystemExit):
        steps.run("steps", options)
    assert [one.process.poll() for one in Fake.started] == [-9, -9]


def test_contestants_side_by_side_fit_the_memory_and_the_cores(options, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 16)
    options.shapes, options.lengths, options.tokens = ",".join(steps.SIZES), "128,512", 16_384
    options.more_tokens = 65_536
    asked = steps.asked_of(options)
    names = [pair[0][0].partition(":")[0] for pair in asked]
    assert names[:4] == ["base 128", "base 512", "large 128", "large 512"]
    assert len(names) == 10 and names[5] == "base 512, 65,536 tokens"
    for options.memory_gib, expected in ((0, 1), (78, 2), (139, 4)):
        together = [asked[0]]
        for pair in asked[1:]:
            if not steps._fits([*together, pair], options):
                break
            together.append(pair)
        ones = [one for pair in together for one in pair]
        needed = sum(steps.gib(one[-1]) for one in ones)
        assert len(together) == 1 or (needed <= 0.9 * options.memory_gib and len(ones) <= 16)
        assert len(together) == expected


def test_others_are_stopped_while_two_take_turns_and_go_on_behind_a_failure():
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as sleeping:

        def becomes(wanted):
            for _ in range(100):
                state = Path(f"/proc/{sleeping.pid}/stat").read_text().rpartition(")")[2].split()[0]
                if state == wanted:
                    return True
                time.sleep(0.02)

        other = argparse.Namespace(process=sleeping)
        with pytest.raises(KeyError), steps._stopped(["why it is not there", other]):
            assert becomes("T")
            raise KeyError
        assert becomes("S")
        sleeping.kill()


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


def test_a_table_that_is_stopped_has_ended(options, monkeypatch):
    class Process:
        told: list = []
        terminate = staticmethod(lambda: Process.told.append("to end"))

        def __init__(self, command, **how):
            assert how["start_new_session"]  # Ctrl-C is for the command alone

        def wait(self, **_):
            self.told.append("waited for")
            if self.told == ["waited for"]:
                raise SystemExit(143)

    monkeypatch.setattr(subprocess, "Popen", Process)
    options.scale, options.workers = "smoke", 1
    with pytest.raises(SystemExit):
        tables.table("table5", options)
    assert Process.told == ["waited for", "to end", "waited for"]


def test_divisions_of_kernels_are_checked_told_and_taken_by_the_steps(options, monkeypatch):
    found = {
        "refused": {"length 128": "", "length 20": "no memory"},
        "microseconds": {"forward, length 128": {"(64, 4, 2)": 51.3, "(128, 8, 2)": "an error"}},
        "chosen": {"True": {"forward": [64, 4, 2]}},
    }
    ran = []

    def run(command, **how):
        ran.append(command)
        return argparse.Namespace(stdout=f"a warning\n{json.dumps(found)}\n", stderr="")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.delenv(kernels.BLOCKS, raising=False)
    for _ in range(2):
        assert not kernels.run("kernels", options)  # one of them is refused
        assert json.loads(os.environ.pop(kernels.BLOCKS)) == found["chosen"]
    assert len(ran) == 1
    report.write(options.output)
    told = (options.output / "gpu.md").read_text()
    assert "| length 128 | taken |" in told and "| length 20 | no memory |" in told
    assert "| 64, 4, 2 | 51 |" in told and "an error" in told
