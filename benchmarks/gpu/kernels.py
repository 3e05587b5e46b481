"""Attention's kernels on this GPU: whether they are right, and which division of work is fastest.

The steps that are measured afterwards use that division.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks import machine
from benchmarks.gpu.results import Results

BLOCKS = "BENCHMARKED_BLOCKS"  # in the environment of a step: JSON, read by peers/turns.py
_PEER = Path(__file__).parents[1] / "peers" / "kernels_jax.py"


def run(piece, options):
    """Check all cases in one process, unless they are checked; return whether all kernels are
    accepted.

    In a case whose kernel is refused the steps use plain products too, and say so.
    """
    results = Results(options.output / f"{piece}.json", options.device)
    if not results.values["runs"]:
        command = [sys.executable, str(_PEER)]
        ran = subprocess.run(command, env=machine.importing(), capture_output=True, text=True)
        lines = [line for line in ran.stdout.splitlines() if line.startswith("{")]
        if not lines:
            print(ran.stderr[-2000:], flush=True)
            return False
        for part, found in json.loads(lines[-1]).items():
            results.add(part, found)
            print(part, json.dumps(found), flush=True)
    os.environ[BLOCKS] = json.dumps(results.values["runs"]["chosen"])
    return options.device == "CPU" or not any(results.values["runs"]["refused"].values())
