"""Steps by size and length: this project on JAX beside transformers on PyTorch.

Every contestant is a process that compiles its step and then takes turns. Compiling takes longer
than measuring, so those that fit the memory together are started side by side; the GPU is one
contestant's alone while its steps are timed.
"""

import contextlib
import importlib.util
import os
import statistics
import time

from benchmarks import machine
from benchmarks.gpu.results import Results
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
NEEDS = {THEIRS: ("torch", "transformers")}  # packages of the extra `peers`
MASKED = 0.15


def run(piece, options):
    """Measures what was not yet; returns whether all steps of this project ran."""
    results = Results(options.output / f"{piece}.json", options.device)
    asked = [
        (f"{size} {length}: {name}", name, *SCRIPTS[name], shape(size, length, options.tokens))
        for size in options.shapes.split(",")
        for length in map(int, options.lengths.split(","))
        for name in SCRIPTS
    ]
    left = [one for one in asked if one[0] not in results]
    for group in groups(left, options.memory_gib):
        if time.time() > options.until:
            return False
        with contextlib.ExitStack() as block:
            running = {one[0]: _start(one, block) for one in group}
            _ask(running, lambda contestant: contestant.first_step)
            for _ in range(options.rounds):
                _ask(running, lambda contestant: contestant.turn(1))
            for part, name, _, _, size in group:
                results.add(part, _result(name, running[part], size, options))
                print(part, results.values["runs"][part], flush=True)
    return all("failed" not in results.values["runs"][one[0]] for one in asked if one[1] == OURS)


def shape(size, length, tokens):
    """(layers, width, heads, rows, length, predictions) of a step of so many tokens."""
    return (*SIZES[size], max(1, tokens // length), length, max(1, round(MASKED * length)))


def groups(asked, memory_gib):
    """`asked` in its order, in lists that fit the memory and the cores; a list has one at least.

    A tenth of the memory is left free.
    """
    found, room = [], 0.0
    for one in asked:
        needed = gib(one[-1])
        if not found or needed > room or len(found[-1]) >= max(2, os.cpu_count() or 2):
            found.append([])
            room = 0.9 * memory_gib
        found[-1].append(one)
        room -= needed
    return found


def gib(shape):
    """Memory of a step in bfloat16, generously: weights, moments, activations, logits, a context.

    Attention is taken to keep its scores, their exponentials and masks.
    """
    layers, width, heads, rows, length, predictions = shape
    tokens = rows * length
    kept = tokens * layers * (40 * width + 8 * heads * length)
    weights = 20 * (layers * 12 * width**2 + 31_000 * width)
    return 1.5 + (kept + weights + 14 * rows * predictions * 30_522) / 2**30


def _start(one, block):
    """The contestant, which ends with the block; or why there is none."""
    _, name, script, mode, size = one
    if reason := _lacks(name):
        return reason
    contestant = Contestant(name, script, mode, size, "bfloat16", wait=False)
    machine.end_with(block, contestant.process)
    return contestant


def _ask(running, what):
    """Calls `what` with each contestant; in place of one that fails then stands why."""
    for part, contestant in running.items():
        if isinstance(contestant, str):
            continue
        try:
            what(contestant)
        except (RuntimeError, OSError) as error:
            running[part] = str(error)


def _lacks(name):
    missing = [each for each in NEEDS.get(name, ()) if importlib.util.find_spec(each) is None]
    return f"not installed: {', '.join(missing)}" if missing else ""


def _result(name, contestant, size, options):
    if isinstance(contestant, str):
        return {"skipped" if _lacks(name) else "failed": contestant}
    contestant.close()
    seconds = statistics.median(contestant.seconds)
    return {
        "rows": size[3],
        "step_ms": 1e3 * seconds,
        "tokens_per_s": size[3] * size[4] / seconds,
        "share": flops(size) / seconds / (options.peak_tflops * 1e12),
        "first_step_s": contestant.first_step,
    }
