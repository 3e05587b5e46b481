"""The machine that benchmarks run on: its name, its rate, and whether something disturbed a run."""

import contextlib
import functools
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PRODUCT_FLOPS = 10 * 2 * 1024 * 768 * 3072  # of a step of peers/matrix_product.py
A_TENTH = 0.1
_HERE = Path(__file__).parent


def name() -> str:
    """Cores and processor, as far as the system says."""
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), model)
    return f"{os.cpu_count()} cores of {model}"


def importing(root=None) -> dict[str, str]:
    """The environment of a process that imports this project, of a checkout if one is given."""
    paths = [str(Path(root or _HERE.parent).resolve()), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def end_with(block, process):
    """The process, which is killed, at the latest, where an ExitStack's block ends."""
    block.enter_context(process)  # waits
    block.callback(process.kill)
    return process


class Steps:
    """A process of `peers/` that runs steps on request.

    Args:
      script: its file.
      arguments: shape, mode and precision; see `peers/turns.py`.
      python: the interpreter.
      root: the checkout whose code it runs; this one by default.
      environment: variables that it has besides.
      wait: for its first step; else who asks for `first_step` does.
    """

    def __init__(
        self, script, arguments, python=sys.executable, root=None, environment=None, wait=True
    ):
        self.seconds = []
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(
            [python, str(_HERE / "peers" / script), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**importing(root), **(environment or {}), "TF_CPP_MIN_LOG_LEVEL": "3"},
        )
        if wait:
            self.first_step  # noqa: B018

    @functools.cached_property
    def first_step(self):
        """Seconds that it took, to compile it too."""
        return self._answer()["first_step_s"]

    def turn(self, steps):
        self._say(steps)
        self.seconds += self._answer()["step_s"]

    def close(self):
        """Ends the process; its peak resident memory in GiB."""
        self._say(0)
        return self._answer()["peak_gib"]

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
    """The rate of plain matrix products now, GFLOP/s: the reference that others are related to."""
    products = Steps("matrix_product.py", ["[0]", "plain", precision])
    products.turn(steps)
    products.close()
    return PRODUCT_FLOPS / min(products.seconds) / 1e9


def disturbed(rates: dict[str, float]) -> list[str]:
    """Whose rate is more than a tenth off the usual one, the median: something ran beside it.

    Of two that differ it is the slower one.

    >>> disturbed({"a": 466, "b": 239, "c": 463, "d": 452})
    ['b']
    """
    if not rates:
        return []
    usual = statistics.median_high(rates.values())
    return [name for name, rate in rates.items() if abs(rate / usual - 1) > A_TENTH]
