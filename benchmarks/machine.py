"""The machine that benchmarks run on: its name, its rate, and whether something disturbed a run."""

import concurrent.futures
import functools
import json
import multiprocessing
import os
import select
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from experiments.training.folder import provenance

PRODUCT_FLOPS = 10 * 2 * 1024 * 768 * 3072  # of a step of peers/matrix_product.py
A_TENTH = 0.1
_HERE = Path(__file__).parent


def name() -> str:
    """Return the number of cores and the processor, as far as the system tells."""
    return f"{os.cpu_count()} cores of {provenance.here()['processor']}"


def importing() -> dict[str, str]:
    """Return the environment of a process that imports this project."""
    paths = [str(_HERE.parent), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def in_a_process(function, *arguments):
    """Call a function in a new process; return its result or raise its error."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, context) as pool:
        return pool.submit(function, *arguments).result()


def kept(path: Path, wanted, measure) -> dict:
    """Return {name: result} of a JSON file; measure missing names and write each at once.

    Args:
      measure: function of a name -> JSON value.
    """
    known = json.loads(path.read_text()) if path.exists() else {}
    for name in wanted:
        if name not in known:
            known[name] = measure(name)
            print(f"{name}: {known[name]}", file=sys.stderr, flush=True)
            path.write_text(json.dumps(known, indent=1) + "\n")
    return known


def end_with(block, process):
    """Return the process, which is killed at the latest when an ExitStack's block ends."""
    block.enter_context(process)  # waits
    block.callback(process.kill)
    return process


class Steps:
    """A process of `peers/` that runs steps on request.

    Args:
      script: its file.
      arguments: shape, mode and precision; see `peers/turns.py`.
      python: the interpreter.
      wait: for its first step; else who asks for `first_step` does.
    """

    def __init__(self, script, arguments, python=sys.executable, wait=True):
        self.seconds = []
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(
            [python, str(_HERE / "peers" / script), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**importing(), "TF_CPP_MIN_LOG_LEVEL": "3"},
            start_new_session=True,  # a group, to be stopped whole (benchmarks/gpu)
        )
        if wait:
            self.first_step  # noqa: B018

    @functools.cached_property
    def first_step(self):
        """The seconds of the first step, compilation included."""
        return self._answer()["first_step_s"]

    @property
    def has_answered(self):
        """True where `first_step` would not wait: something was said, or the process has ended."""
        readable, _, _ = select.select([self.process.stdout], [], [], 0)
        return bool(readable) or self.process.poll() is not None

    def turn(self, steps):
        self._say(steps)
        self.seconds += self._answer()["step_s"]

    def close(self):
        """End the process; its peak resident memory in GiB (`device_gib`: that of a GPU)."""
        self._say(0)
        answer = self._answer()
        self.device_gib = answer.get("device_gib")
        return answer["peak_gib"]

    def _say(self, steps):
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()

    def _answer(self):
        # Libraries print to stdout too; answers are the lines that are JSON objects.
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        code = self.process.wait()
        self._errors.seek(0)
        lines = self._errors.read().strip().splitlines() or [""]
        raise RuntimeError(f"the process ended ({code}): {lines[-1][:300]}")


def matrix_gflops(precision: str = "float32", steps: int = 30) -> float:
    """Return the rate of plain matrix products now, GFLOP/s: the reference that others are related
    to."""
    products = Steps("matrix_product.py", ["[0]", "plain", precision])
    products.turn(steps)
    products.close()
    return PRODUCT_FLOPS / min(products.seconds) / 1e9


def disturbed(rates: dict[str, float]) -> list[str]:
    """Return the names whose rate is more than a tenth off the median: something ran beside them.

    If two differ, it is the slower one.

    >>> disturbed({"a": 466, "b": 239, "c": 463, "d": 452})
    ['b']
    """
    if not rates:
        return []
    usual = statistics.median_high(rates.values())
    return [name for name, rate in rates.items() if abs(rate / usual - 1) > A_TENTH]
