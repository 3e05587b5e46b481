"""cuDNN's attention (`jax.nn.dot_product_attention`) beside plain products, by itself.

JAX's has no dropout of the weights, which BERT's training has.
"""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks import machine
from benchmarks.gpu.results import Results
from benchmarks.gpu.steps import shape

_PEER = Path(__file__).parents[1] / "peers" / "attention_jax.py"


def run(piece, options):
    """Measure all shapes of the steps that are not measured yet; return whether it worked."""
    results = Results(options.output / f"{piece}.json", options.device)
    asked = {
        f"{size} {length}": shape(size, int(length), options.tokens)
        for size in options.shapes.split(",")
        for length in options.lengths.split(",")
    }
    left = {case: shape for case, shape in asked.items() if case not in results}
    if not left:
        return True
    command = [sys.executable, str(_PEER), json.dumps(left)]
    ran = subprocess.run(command, env=machine.importing(), capture_output=True, text=True)
    lines = [line for line in ran.stdout.splitlines() if line.startswith("{")]
    if not lines:
        print(ran.stderr[-2000:], flush=True)
        return False
    for case, ways in json.loads(lines[-1]).items():
        results.add(case, ways)
    return True
