"""Speed of one pre-training step, this project beside its peers, in one interleaved run.

    python benchmarks/pretraining.py --shapes=base,mini --rounds=5 --output=benchmarks/results

Each contestant is a process of its own that builds its model, waits, and runs a few steps whenever
it is its turn; turns go round, so that a machine whose speed drifts slows everybody alike. A step
is forward, backward, clipping and update on random ids, with dropout 0.1 and 20 masked positions
a row: what differs between contestants is said in their names. FLOPs are counted from the shapes
(multiplications and additions of the matrix products, backward twice forward), so that "useful"
FLOP/s are comparable: whoever computes more for the same result gets no credit for it.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
SHAPES = {  # layers, width, heads, batch, length, predictions
    "base": (12, 768, 12, 8, 128, 20),
    "mini": (4, 256, 4, 32, 128, 20),
}
VOCABULARY = 30522
# name -> script beside this one, its mode, its precision
CONTESTANTS = {
    "official_bert float32": ("peers/official_bert_step.py", "plain", "float32"),
    "official_bert bfloat16": ("peers/official_bert_step.py", "plain", "bfloat16"),
    "Model Garden float32": ("peers/model_garden_step.py", "plain", "float32"),
    "Model Garden bfloat16": ("peers/model_garden_step.py", "plain", "bfloat16"),
    "KerasHub (no NSP) float32": ("peers/keras_hub_step.py", "plain", "float32"),
    "transformers float32": ("peers/transformers_step.py", "shipped", "float32"),
    "transformers bfloat16": ("peers/transformers_step.py", "shipped", "bfloat16"),
    "transformers gathered bfloat16": ("peers/transformers_step.py", "gathered", "bfloat16"),
    "transformers gathered compiled bfloat16": (
        "peers/transformers_step.py",
        "compiled",
        "bfloat16",
    ),
}


def flops(shape: str) -> float:
    """Floating-point operations of one step: 2 a multiply-add, backward twice forward."""
    layers, width, _, batch, length, predictions = SHAPES[shape]
    tokens = batch * length
    block = 2 * tokens * (4 * width**2 + 8 * width**2) + 4 * batch * length**2 * width
    heads = 2 * batch * predictions * (width**2 + width * VOCABULARY) + 2 * batch * width**2
    return 3.0 * (layers * block + heads)


class Contestant:
    """A process that runs steps on request."""

    def __init__(self, name, shape, python):
        script, mode, precision = CONTESTANTS[name]
        self.name = name
        self.seconds = []
        self.process = subprocess.Popen(
            [python, str(HERE / script), json.dumps(SHAPES[shape]), mode, precision],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(HERE.parent)},
        )
        self.first_step = self._answer()["first_step_s"]

    def turn(self, steps):
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        self.seconds += self._answer()["step_s"]

    def close(self):
        self.process.stdin.write("0\n")
        self.process.stdin.flush()
        return self._answer()["peak_gib"]

    def _answer(self):
        # Libraries print to stdout too; answers are the lines that are JSON objects.
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        raise RuntimeError(f"{self.name}: the process ended ({self.process.wait()})")


def matrix_rate(dtype: str, seconds: float = 1.0) -> float:
    """TensorFlow's rate for one 1024 x 768 by 768 x 3072 product, in FLOP/s: the ceiling here."""
    code = (
        "import tensorflow as tf, time, sys\n"
        f"a = tf.cast(tf.random.normal([1024, 768]), '{dtype}')\n"
        f"b = tf.cast(tf.random.normal([768, 3072]), '{dtype}')\n"
        "f = tf.function(lambda: tf.reduce_sum(tf.cast(tf.linalg.matmul(a, b)[0], tf.float32)))\n"
        "best = 9e9; end = time.time() + 3\n"
        "while time.time() < end:\n"
        "    t = time.perf_counter(); f(); best = min(best, time.perf_counter() - t)\n"
        "print(2 * 1024 * 768 * 3072 / best)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    return float(run.stdout.split()[-1])


def measure(shape, names, rounds, steps, pythons):
    contestants, failed = [], {}
    for name in names:
        python = pythons.get(name.split()[0], sys.executable)
        try:
            contestants.append(Contestant(name, shape, python))
        except (RuntimeError, OSError) as error:
            failed[name] = str(error)
    for _ in range(rounds):
        for contestant in contestants:
            contestant.turn(steps)
    rows = []
    for contestant in contestants:
        best, middle = min(contestant.seconds), statistics.median(contestant.seconds)
        rows.append(
            {
                "contestant": contestant.name,
                "min_ms": 1e3 * best,
                "median_ms": 1e3 * middle,
                "sequences_per_s": SHAPES[shape][3] / middle,
                "gflops_per_s": flops(shape) / middle / 1e9,
                "first_step_s": contestant.first_step,
                "peak_gib": contestant.close(),
            }
        )
    return rows, failed


def markdown(shape, rows, failed, rates):
    layers, width, heads, batch, length, predictions = SHAPES[shape]
    lines = [
        f"### {shape}: {layers} layers, {width} wide, {heads} heads, batch {batch}, "
        f"length {length}, {predictions} predictions; {flops(shape) / 1e9:.0f} GFLOP a step",
        "",
        "| | median ms | min ms | sequences/s | GFLOP/s | of the matrix rate | first step, s | "
        "peak memory, GiB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: row["median_ms"]):
        rate = rates["bfloat16" if "bfloat16" in row["contestant"] else "float32"]
        lines.append(
            f"| {row['contestant']} | {row['median_ms']:.0f} | {row['min_ms']:.0f} | "
            f"{row['sequences_per_s']:.1f} | {row['gflops_per_s']:.0f} | "
            f"{row['gflops_per_s'] * 1e9 / rate:.0%} | {row['first_step_s']:.0f} | "
            f"{row['peak_gib']:.1f} |"
        )
    lines += [f"- {name}: did not run ({reason})" for name, reason in failed.items()]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shapes", default="base,mini")
    parser.add_argument("--contestants", default="", help="comma-separated names; empty: all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=4, help="steps a turn")
    parser.add_argument(
        "--model_garden_python", default="", help="a Python that has tf-models-official installed"
    )
    parser.add_argument("--output", default="", help="folder for pretraining.json and .md")
    options = parser.parse_args()
    names = [name for name in options.contestants.split(",") if name] or list(CONTESTANTS)
    if not options.model_garden_python:
        names = [name for name in names if not name.startswith("Model Garden")]
    rates = {dtype: matrix_rate(dtype) for dtype in ("float32", "bfloat16")}
    text, results = [], {"matrix_rate": rates, "machine": platform.processor(), "shapes": {}}
    text.append(
        "Matrix products here: "
        + ", ".join(f"{rate / 1e9:.0f} GFLOP/s {dtype}" for dtype, rate in rates.items())
    )
    for shape in options.shapes.split(","):
        pythons = {"Model": options.model_garden_python}
        rows, failed = measure(shape, names, options.rounds, options.steps, pythons)
        results["shapes"][shape] = {"rows": rows, "failed": failed}
        text.append(markdown(shape, rows, failed, rates))
        print(text[-1], flush=True)
    if options.output:
        folder = Path(options.output)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "pretraining.json").write_text(json.dumps(results, indent=2) + "\n")
        (folder / "pretraining.md").write_text("\n\n".join(text) + "\n")


if __name__ == "__main__":
    main()
