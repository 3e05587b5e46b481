"""cuDNN's attention (`jax.nn.dot_product_attention`) beside plain products.

By itself, forward and backward, on the shapes of a step; and in a step whose attention has no
dropout, which cuDNN's kernel of JAX does not have.
"""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks import machine
from benchmarks.gpu.results import Results
from benchmarks.gpu.steps import shape, take_turns

IN_A_STEP = ("small 128", "base 128", "base 512")
_PEER = Path(__file__).parents[1] / "peers" / "attention_jax.py"


def run(piece, options):
    """Measures what was not yet; returns whether all of it is."""
    results = Results(options.output / f"{piece}.json", options.device)
    cases = [f"{size} {length}" for size in options.shapes.split(",")
             for length in options.lengths.split(",")]  # fmt: skip
    if "alone" not in results:
        shapes = {case: shape(case.split()[0], int(case.split()[1]), options.tokens)
                  for case in cases}  # fmt: skip
        command = [sys.executable, str(_PEER), json.dumps(shapes)]
        ran = subprocess.run(command, env=machine.importing(), capture_output=True, text=True)
        lines = [line for line in ran.stdout.splitlines() if line.startswith("{")]
        found = json.loads(lines[-1]) if lines else {"failed": ran.stderr[-2000:]}
        results.add("alone", found)
        print(json.dumps(found, indent=1), flush=True)
    asked = [
        (f"{case}: {mode}", mode, "official_bert_jax_step.py", mode,
         shape(case.split()[0], int(case.split()[1]), options.tokens))
        for case in (IN_A_STEP if options.device != "CPU" else cases)
        for mode in ("quiet", "fused")
    ]  # fmt: skip
    return take_turns(asked, results, options)
