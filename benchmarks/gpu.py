"""Pre-training steps on one GPU, this project on JAX beside transformers on PyTorch.

    python benchmarks/gpu.py --output=benchmarks/results

Shapes tiny, small, base and large at length 128 and 512 in bfloat16; neither TensorFlow nor a
download is needed. A share is of `--peak_tflops` in FLOPs counted from the shapes (see
`pretraining.py`): what padding or a head over all positions adds is no credit. transformers has
its attention by PyTorch (sdpa), its step compiled by torch.compile, and the head over the masked
positions only. On a CPU, to see that all of it runs:

    python benchmarks/gpu.py --shapes=tiny --lengths=16 --tokens=64 --rounds=1
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

if not __package__:
    sys.path[0] = str(Path(__file__).parents[1])  # the repository

from benchmarks.pretraining import Contestant, flops

SIZES = {  # layers, width, heads
    "tiny": (2, 128, 2),
    "small": (4, 512, 8),
    "base": (12, 768, 12),
    "large": (24, 1024, 16),
}
OURS, THEIRS = "official_bert on JAX", "transformers, compiled, sdpa"
SCRIPTS = {
    OURS: ("official_bert_jax_step.py", "plain"),
    THEIRS: ("transformers_step.py", "compiled"),
}
MASKED = 0.15


def measure(shape, rounds, peak, names):
    """{contestant: {"step_ms", "tokens_per_s", "share", "first_step_s"} or {"failed": why}}."""
    found, running = {}, []
    for name in names:
        try:
            running.append(Contestant(name, *SCRIPTS[name], shape, "bfloat16"))
        except RuntimeError as error:
            found[name] = {"failed": str(error)}
    for _ in range(rounds):
        for one in list(running):
            try:
                one.turn(1)
            except (RuntimeError, BrokenPipeError) as error:
                running.remove(one)
                found[one.name] = {"failed": str(error)}
    for one in running:
        one.close()
        seconds = statistics.median(one.seconds)
        found[one.name] = {
            "step_ms": 1e3 * seconds,
            "tokens_per_s": shape[3] * shape[4] / seconds,
            "share": flops(shape) / seconds / peak,
            "first_step_s": one.first_step,
        }
    return found


def row(size, length, rows, name, found):
    """A line of the table."""
    if "failed" in found:
        return f"| {size} | {length} | {rows} | {name} | did not run: {found['failed']} | | | |"
    return (
        f"| {size} | {length} | {rows} | {name} | {found['step_ms']:.1f} | "
        f"{found['tokens_per_s']:,.0f} | {found['share']:.1%} | {found['first_step_s']:.0f} |"
    )


def device():
    """The GPU's name, as its driver gives it; "CPU" without one."""
    try:
        asked = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "CPU"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shapes", default=",".join(SIZES))
    parser.add_argument("--lengths", default="128,512")
    parser.add_argument("--tokens", type=int, default=16_384, help="of a step")
    parser.add_argument("--contestants", default=f"{OURS};{THEIRS}", help="separated by ;")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each, 16 steps a turn")
    parser.add_argument("--peak_tflops", type=float, default=989.0, help="an H100's in bfloat16")
    parser.add_argument("--output", default="", help="folder for gpu.json and gpu.md")
    options = parser.parse_args()
    results = {"device": device(), "date": time.strftime("%Y-%m-%d"), "runs": {}}
    lines = [
        f"{results['date']}, {results['device']}; share of {options.peak_tflops:g} TFLOP/s",
        "",
        "| shape | length | rows | | step, ms | tokens/s | share of the peak | first step, s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    for size in options.shapes.split(","):
        for length in map(int, options.lengths.split(",")):
            rows = max(1, options.tokens // length)
            shape = (*SIZES[size], rows, length, max(1, round(MASKED * length)))
            names = options.contestants.split(";")
            found = measure(shape, options.rounds, options.peak_tflops * 1e12, names)
            results["runs"][f"{size} {length}"] = {"rows": rows, **found}
            for name in names:
                lines.append(row(size, length, rows, name, found[name]))
                print(lines[-1], flush=True)
    if options.output:
        folder = Path(options.output)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "gpu.json").write_text(json.dumps(results, indent=2) + "\n")
        (folder / "gpu.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
