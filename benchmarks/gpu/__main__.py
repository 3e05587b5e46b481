"""One command for a machine with a GPU: steps, equality with the CPU, attention, Tables 5 and 6.

    python -m benchmarks.gpu --output=runs/gpu --seconds=570

Without TensorFlow and without a network. The pieces run in this order, each leaves its result in
the output folder as soon as it has one, and the same command goes on where it was stopped; with
`--seconds` it stops by itself. A finished piece is not run again; without PyTorch its steps are
skipped, and say so. `gpu.md` is the report so far. The exit code is 1 where a piece failed.

  kernels    attention's kernels beside plain products, at every width and kind of mask
  data       the records of the tables, on the CPU
  steps      pre-training steps by size and length, beside transformers on PyTorch (torch.compile,
             sdpa): tokens/s, share of the peak, memory; base also at `--more_tokens` a step
  equality   50 steps on the GPU and on the CPU: losses and weights
  attention  cuDNN's attention beside plain products, by itself and in a step
  table5, table6  `experiments.ablate` at `--scale`

A share is of `--peak_tflops` in FLOPs counted from the shapes (`benchmarks/pretraining.py`): what
padding or a head over all positions adds is no credit. On a CPU, to see that all of it runs:

    python -m benchmarks.gpu --output=runs/miniature --scale=smoke --shapes=tiny --lengths=16 \\
        --tokens=64 --rounds=1
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.gpu import attention, equality, kernels, report, steps, tables
from benchmarks.gpu.results import check_options
from data_prep.jobs import commands
from data_prep.jobs.locks import exclusive
from official_bert.common.errors import UserError

PIECES = {
    "kernels": kernels.run,
    "data": tables.data,
    "steps": steps.run,
    "equality": equality.run,
    "attention": attention.run,
    "table5": tables.table,
    "table6": tables.table,
}


_SEEN_BY_JAX = "import jax; d = jax.devices()[0]; print('', d.platform, d.device_kind, sep='\\n')"


def device():
    """Return (the name of the device that JAX computes on, its GiB); ("CPU", 0.0) without a GPU.

    The driver of NVIDIA says how much memory there is; 0.0 where it does not.

    Raises:
      UserError: JAX cannot start, or does not see the GPU that the driver sees.
    """
    asked = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"]
    driver, _, mib = (_said(asked).splitlines() or [""])[0].rpartition(", ")
    platform, name = _said([sys.executable, "-c", _SEEN_BY_JAX]).splitlines()[-2:] or ("", "")
    if not platform:
        raise UserError(f"JAX sees no device: try {sys.executable} -c 'import jax; jax.devices()'")
    if platform != "cpu":
        return name, float(mib) / 1024 if mib.isdecimal() else 0.0
    if driver and os.environ.get("JAX_PLATFORMS") != "cpu":
        raise UserError(
            f"the driver sees {driver}, but JAX computes on the CPU; install JAX for CUDA "
            "(pip install 'official-bert[jax-cuda]'), or set JAX_PLATFORMS=cpu"
        )
    return "CPU", 0.0


def _said(command):
    """Return what a command prints; "" where it is not there or fails."""
    environment = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=True, env=environment
        ).stdout.strip()  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return ""


def _lengths(text):
    return ",".join(str(int(length)) for length in text.split(","))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", default="runs/gpu", help="folder of results and runs")
    parser.add_argument("--pieces", default=",".join(PIECES))
    parser.add_argument("--seconds", type=float, default=0, help="stop after; 0: when all is done")
    parser.add_argument("--shapes", default=",".join(steps.SIZES))
    parser.add_argument("--lengths", type=_lengths, default="128,512")
    parser.add_argument("--tokens", type=int, default=16_384, help="of a step")
    parser.add_argument("--more_tokens", type=int, default=0, help="of further steps; 0: of none")
    parser.add_argument(
        "--rounds", type=int, default=3, help="turns of each, a compiled call a turn"
    )
    parser.add_argument("--peak_tflops", type=float, default=989.0, help="an H100's in bfloat16")
    parser.add_argument("--scale", default="gpu", help="of the tables")
    parser.add_argument("--workers", type=int, default=0, help="of the tables; 0: as configured")
    options = parser.parse_args()
    for name, known in (("pieces", PIECES), ("shapes", steps.SIZES)):
        if unknown := set(getattr(options, name).split(",")) - set(known):
            names = ", ".join(sorted(unknown))
            parser.error(f"--{name}: there is no {names!r}; choose from {', '.join(known)}")
    options.until = time.time() + options.seconds if options.seconds else float("inf")
    options.output = Path(options.output).resolve()
    with exclusive(options.output), commands.ended_in_order():
        options.device, options.memory_gib = device()
        decide = ("device", "tokens", "rounds", "peak_tflops", "scale")
        check_options(options.output, {name: getattr(options, name) for name in decide})
        report.write(options.output)  # a damaged result is named before anything is measured
        return _pieces(options)


def _pieces(options):
    """Run the pieces until the time is over; return the exit code."""
    failed = []
    for piece in options.pieces.split(","):
        started = time.time()
        done = PIECES[piece](piece, options)
        took = f"{time.time() - started:.0f} s"
        print(f"== {piece}: {'done' if done else 'not finished'}, {took}", flush=True)
        report.write(options.output)
        if time.time() > options.until - tables.IN_ORDER:
            print("== the time is over; the same command goes on", flush=True)
            break
        failed += [piece] * (not done)
    return 1 if failed else 0


if __name__ == "__main__":
    commands.end(lambda: sys.exit(main()))
