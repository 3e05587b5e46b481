"""Speed of one pre-training step, this project beside its peers, in one interleaved run.

    python -m benchmarks.pretraining --shapes=base,mini --output=benchmarks/results

Each contestant is a process of its own that builds its model, waits, and runs a few steps whenever
it is its turn; turns go round, so that a machine whose speed drifts slows everybody alike. A step
is forward, backward, clipping and update on random ids, with dropout 0.1 and 20 masked positions
a row: what differs between contestants is said in their names. FLOPs are counted from the shapes
(multiplications and additions of the matrix products, backward twice forward), so that "useful"
FLOP/s are comparable: whoever computes more for the same result gets no credit for it.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

from benchmarks import machine
from benchmarks.peers.turns import sizes
from experiments.training.settings.flops import pretraining_step_flops
from official_bert.common.markdown import markdown_table
from official_bert.config import named_config

SHAPES = {  # layers, width, heads, batch, length, predictions
    "base": (12, 768, 12, 8, 128, 20),
    "mini": (4, 256, 4, 32, 128, 20),
}
PRECISIONS = ("float32", "bfloat16")
CEILING = "matrix products"
MOST_TRIES = 3  # of a group that something disturbs
# name -> script beside this one, its mode, the precisions it runs in
CONTESTANTS = {
    CEILING: ("matrix_product.py", "plain", PRECISIONS),
    "official_bert": ("official_bert_step.py", "plain", PRECISIONS),
    "Model Garden": ("model_garden_step.py", "plain", PRECISIONS),
    "KerasHub (no NSP)": ("keras_hub_step.py", "plain", PRECISIONS),
    "transformers": ("transformers_step.py", "shipped", PRECISIONS),
    "transformers, gathered": ("transformers_step.py", "gathered", PRECISIONS),
    # Compiling takes minutes; its better precision is enough.
    "transformers, gathered, compiled": ("transformers_step.py", "compiled", ("bfloat16",)),
}
# Who takes turns with whom; all at once would want 25 GiB at base shape.
GROUPS = {
    "TensorFlow": (CEILING, "official_bert", "Model Garden", "KerasHub (no NSP)"),
    "PyTorch": (CEILING, "official_bert", *(n for n in CONTESTANTS if "transformers" in n)),
}


def flops(shape: tuple) -> float:
    """Return floating-point operations of one step: 2 a multiply-add, backward twice forward."""
    *size, batch, length, predictions = shape
    bert = named_config("base", **sizes(*size))
    return pretraining_step_flops(bert, ("masked_lm",), batch, length, predictions)


class Contestant(machine.Steps):
    """A process that runs steps on request.

    Args:
      name: of the contestant.
      script: in peers/; mode: of the script.
      shape: (layers, width, heads, batch, length, predictions).
      precision: one of PRECISIONS.
      python: the interpreter; how: further arguments of `Steps`.
    """

    def __init__(self, name, script, mode, shape, precision, python=sys.executable, **how):
        super().__init__(script, [json.dumps(shape), mode, precision], python, **how)
        self.name = name
        self.slow = name.startswith("transformers")


def measure(shape, precision, names, rounds, steps, pythons):
    """Make one interleaved run of the contestants of a precision: matrix rate, rows, who failed
    why."""
    contestants, failed = [], {}
    for name in names:
        script, mode, precisions = CONTESTANTS[name]
        if precision not in precisions:
            continue
        try:
            python = pythons.get(name, sys.executable)
            shape_of = SHAPES[shape]
            contestants.append(Contestant(name, script, mode, shape_of, precision, python))
        except (RuntimeError, OSError) as error:
            failed[name] = str(error)
    for _ in range(rounds):
        for contestant in contestants:
            contestant.turn(1 if contestant.slow else steps)
    rows, rate = [], None
    for contestant in contestants:
        best, middle = min(contestant.seconds), statistics.median(contestant.seconds)
        peak = contestant.close()
        if contestant.name == CEILING:
            rate = machine.PRODUCT_FLOPS / best
            continue
        rows.append(
            {
                "contestant": contestant.name,
                "steps": len(contestant.seconds),
                "median_ms": 1e3 * middle,
                "min_ms": 1e3 * best,
                "sequences_per_s": SHAPES[shape][3] / middle,
                "gflops_per_s": flops(SHAPES[shape]) / middle / 1e9,
                "of_matrix_rate": flops(SHAPES[shape]) / middle / rate if rate else None,
                "first_step_s": contestant.first_step,
                "peak_gib": peak,
            }
        )
    return {"matrix_gflops_per_s": rate and rate / 1e9, "rows": rows, "failed": failed}


def measure_again(runs, run):
    """Run the groups again that something disturbed, by the rate of their matrix products.

    Args:
      runs: {(shape, precision, group): result}, of one run; results are replaced.
      run: function of such a key to a new result.
    """
    for precision in {precision for _, precision, _ in runs}:
        for _ in range(MOST_TRIES - 1):
            rates = {
                key: result["matrix_gflops_per_s"]
                for key, result in runs.items()
                if key[1] == precision and result["matrix_gflops_per_s"]
            }
            for key in machine.disturbed(rates):
                print(f"{' '.join(key)}: {rates[key]:.0f} GFLOP/s, again", file=sys.stderr)
                runs[key] = run(*key) | {"measured_again": True}


def markdown(shape, precision, group, result):
    layers, width, heads, batch, length, predictions = SHAPES[shape]
    rate = result["matrix_gflops_per_s"]
    lines = [
        f"### {shape}, {precision}, beside {group}",
        "",
        f"{layers} layers, {width} wide, {heads} heads, batch {batch}, length {length}, "
        f"{predictions} predictions: {flops(SHAPES[shape]) / 1e9:.0f} GFLOP a step. "
        + (f"Matrix products in the same run: {rate:.0f} GFLOP/s." if rate else "")
        + (" Measured again: something ran beside the first." * ("measured_again" in result)),
        "",
    ]
    cells = [["", "median ms", "min ms", "steps", "sequences/s", "GFLOP/s", "of the matrix rate",
              "first step, s", "peak memory, GiB"]]  # fmt: skip
    for row in sorted(result["rows"], key=lambda row: row["median_ms"]):
        share = "" if row["of_matrix_rate"] is None else f"{row['of_matrix_rate']:.0%}"
        cells.append([
            row["contestant"], f"{row['median_ms']:.0f}", f"{row['min_ms']:.0f}",
            str(row["steps"]), f"{row['sequences_per_s']:.1f}", f"{row['gflops_per_s']:.0f}",
            share, f"{row['first_step_s']:.0f}", f"{row['peak_gib']:.1f}",
        ])  # fmt: skip
    lines += [*markdown_table(cells), *[""] * bool(result["failed"])]
    lines += [f"- {name}: did not run ({reason})" for name, reason in result["failed"].items()]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shapes", default="base,mini")
    parser.add_argument("--precisions", default=",".join(PRECISIONS))
    parser.add_argument("--contestants", default="", help="names, separated by ;  empty: all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=3, help="steps a turn")
    parser.add_argument(
        "--slow_rounds", type=int, default=3, help="rounds with transformers, one step each"
    )
    parser.add_argument(
        "--model_garden_python", default="", help="a Python that has tf-models-official installed"
    )
    parser.add_argument("--output", default="", help="folder for pretraining.json and .md")
    options = parser.parse_args()
    names = [name for name in options.contestants.split(";") if name] or list(CONTESTANTS)
    if CEILING not in names:
        names.insert(0, CEILING)
    if not options.model_garden_python:
        names = [name for name in names if name != "Model Garden"]
    pythons = {"Model Garden": options.model_garden_python}
    started = time.time()
    results = {"machine": machine.name(), "date": time.strftime("%Y-%m-%d"), "runs": {}}
    text = [f"{results['date']}, {results['machine']}"]

    def run(shape, precision, group):
        rounds = options.slow_rounds if group == "PyTorch" else options.rounds
        present = [name for name in GROUPS[group] if name in names]
        return measure(shape, precision, present, rounds, options.steps, pythons)

    runs = results["runs"]
    for shape in options.shapes.split(","):
        for precision in options.precisions.split(","):
            for group in GROUPS:
                runs[shape, precision, group] = run(shape, precision, group)
                table = markdown(shape, precision, group, runs[shape, precision, group])
                print(table + "\n", flush=True)
    measure_again(runs, run)
    text += [markdown(*key, result) for key, result in runs.items()]
    results["runs"] = {" ".join(key): result for key, result in runs.items()}
    results["seconds"] = round(time.time() - started)
    if options.output:
        folder = Path(options.output)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "pretraining.json").write_text(json.dumps(results, indent=2) + "\n")
        (folder / "pretraining.md").write_text("\n\n".join(text) + "\n")


if __name__ == "__main__":
    main()
