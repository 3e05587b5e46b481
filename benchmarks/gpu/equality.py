"""The same 50 steps on the GPU and on the CPU, with dropout: how far losses and weights part."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks import machine
from benchmarks.gpu.results import Results

SHAPE = (2, 128, 2, 32, 64, 10)  # layers, width, heads, rows, length, predictions
MINIATURE = (1, 32, 2, 4, 16, 2)  # without a GPU
STEPS = 50
PRECISIONS = ("float32", "tensorfloat32", "bfloat16")
DETERMINISTIC = "--xla_gpu_deterministic_ops=true"
_PEER = Path(__file__).parents[1] / "peers" / "losses_jax.py"


def run(piece, options):
    """Run the missing runs; return whether all ran, and the repeated one gave the same bits."""
    results = Results(options.output / f"{piece}.json", options.device)
    folder = options.output / piece
    folder.mkdir(exist_ok=True)
    platform = "cpu" if options.device == "CPU" else "cuda"
    runs = {(p, where): {} for p in PRECISIONS for where in ("cpu", platform)}
    flags = f"{os.environ.get('XLA_FLAGS', '')} {DETERMINISTIC}"
    runs |= {("float32", f"again {i}"): {"XLA_FLAGS": flags} for i in (1, 2)}
    if all(part in results for part in (*PRECISIONS, "deterministic")):
        return _all_well(results)
    size = SHAPE if platform == "cuda" else MINIATURE
    with contextlib.ExitStack() as block:
        found = _found(runs, size, platform, folder, block)
    for precision in PRECISIONS:
        here, there = found.get((precision, "cpu")), found.get((precision, platform))
        results.add(precision, apart(here, there) if here and there else {"failed": "see output"})
    first, second = (found.get(("float32", f"again {i}")) for i in (1, 2))
    same = bool(first and second) and all(np.array_equal(first[n], second[n]) for n in first)
    results.add("deterministic", {"same_bits": same})
    print(json.dumps(results.values["runs"], indent=1), flush=True)
    return _all_well(results)


def _all_well(results):
    runs = results.values["runs"]
    return runs["deterministic"]["same_bits"] and not any("failed" in run for run in runs.values())


def _found(runs, size, platform, folder, block):
    """Return {key of `runs`: what its process wrote}, of those that did not fail."""
    started = {}
    for (precision, where), more in runs.items():
        path = folder / f"{precision} {where}.npz"
        place = where if where == "cpu" else platform
        environment = {
            **machine.importing(),
            **more,
            "JAX_PLATFORMS": place,
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        }
        command = [sys.executable, str(_PEER), json.dumps(size), precision, str(STEPS), str(path)]
        process = machine.end_with(block, subprocess.Popen(command, env=environment))
        started[precision, where] = process, path
    found = {}
    for key, (process, path) in started.items():
        if process.wait() == 0:
            found[key] = dict(np.load(path))
    return found


def apart(one, other):
    """Return the distance of two runs from each other, relative to the first."""
    losses = np.abs(other["loss"] / one["loss"] - 1)
    distance = np.linalg.norm(other["weights"] - one["weights"])
    return {
        "first_loss": float(one["loss"][0]),
        "last_losses": [float(one["loss"][-1]), float(other["loss"][-1])],
        "loss_apart_at_first": float(losses[0]),
        "loss_apart_at_most": float(losses.max()),
        "gradient_norm_apart_at_most": float(
            np.abs(other["gradient_norm"] / one["gradient_norm"] - 1).max()
        ),
        "weights_apart": float(distance / np.linalg.norm(one["weights"])),
    }
