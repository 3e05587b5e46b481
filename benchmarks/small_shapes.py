"""A training step at the shapes that tables on two cores are made of, as a table's worker runs it.

    python benchmarks/small_shapes.py --output=benchmarks/results
    python benchmarks/small_shapes.py --before=../older_checkout

Two and four layers, 128 and 256 wide, 8,192 pieces, no dropout, 2,048 tokens a step, in one thread.
The contestants, a process each, take turns; with --before this project as it was in another
checkout takes its turns too.
"""

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

if not __package__:
    sys.path[0] = str(Path(__file__).parents[1])  # the repository

from benchmarks import machine
from experiments.tables.devices import worker_environment

ROOT = Path(__file__).parents[1]
# Layers, width, heads, batch, length, predictions.
SHAPES = {
    "2/128, 128 x 16": (2, 128, 2, 128, 16, 3),
    "2/128, 32 x 64": (2, 128, 2, 32, 64, 10),
    "4/256, 128 x 16": (4, 256, 4, 128, 16, 3),
    "4/256, 32 x 64": (4, 256, 4, 32, 64, 10),
}
VOCABULARY = 8192
MODES = ("pre-training", "fine-tuning")
PRECISIONS = ("float32", "bfloat16")


def flops(shape: tuple, mode: str) -> float:
    """Floating-point operations of one step: 2 a multiply-add, backward twice forward."""
    layers, width, _, batch, length, predictions = shape
    block = 2 * batch * length * 12 * width**2 + 4 * batch * length**2 * width
    heads = 2 * batch * width**2
    if mode == "pre-training":
        heads += 2 * batch * predictions * (width**2 + width * VOCABULARY)
    return 3.0 * (layers * block + heads)


def measure(shape, mode, checkouts, rounds, steps):
    """[{"code", "precision", "median_ms", "min_ms"}] of one interleaved run.

    Args:
      shape: of SHAPES; mode: of MODES.
      checkouts: {name: folder} of the code that takes turns.
      rounds: turns each; steps: a turn.
    """
    arguments = [json.dumps([*shape, VOCABULARY]), mode]
    everyone = {
        (code, precision): machine.Steps(
            "small_step.py", [*arguments, precision], root=folder, environment=_one_core()
        )
        for code, folder in checkouts.items()
        for precision in PRECISIONS
    }
    for _ in range(rounds):
        for contestant in everyone.values():
            contestant.turn(steps)
    rows = []
    for (code, precision), contestant in everyone.items():
        contestant.close()
        rows.append(
            {
                "code": code,
                "precision": precision,
                "median_ms": 1e3 * statistics.median(contestant.seconds),
                "min_ms": 1e3 * min(contestant.seconds),
            }
        )
    return rows


def _one_core() -> dict[str, str]:
    """The environment of one of as many workers as there are cores."""
    return worker_environment(0, os.cpu_count() or 1, [])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shapes", default=";".join(SHAPES), help="names, separated by ;")
    parser.add_argument("--before", default="", help="another checkout, to compare with")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=10, help="steps a turn")
    parser.add_argument("--output", default="", help="folder for small_shapes.json")
    options = parser.parse_args()
    checkouts = {"now": ROOT} | ({"before": options.before} if options.before else {})
    results = {"machine": machine.name(), "date": time.strftime("%Y-%m-%d"), "runs": {}}
    for name in options.shapes.split(";"):
        for mode in MODES:
            rows = measure(SHAPES[name], mode, checkouts, options.rounds, options.steps)
            results["runs"][f"{name}, {mode}"] = rows
            work = flops(SHAPES[name], mode)
            print(f"\n{name}, {mode}, {work / 1e9:.1f} GFLOP a step")
            for row in rows:
                rate = work / row["median_ms"] / 1e6
                print(
                    f"  {row['code']:<7} {row['precision']:<9} {row['median_ms']:6.1f} ms "
                    f"(at least {row['min_ms']:.1f}), {rate:.0f} GFLOP/s",
                    flush=True,
                )
    if options.output:
        path = Path(options.output) / "small_shapes.json"
        path.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
