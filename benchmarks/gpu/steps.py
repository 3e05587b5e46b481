"""Steps by size and length: this project on JAX beside transformers on PyTorch.

Every contestant is a process that compiles its step and then takes turns. Compiling takes longer
than measuring, so those that fit the memory together are started side by side; GPU and cores are
one contestant's alone while its steps are timed.
"""

import contextlib
import importlib.util
import os
import signal
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
FIRST = ("base", "large", "small", "tiny")
OURS, THEIRS = "official_bert on JAX", "transformers, compiled, sdpa"
SCRIPTS = {
    OURS: ("official_bert_jax_step.py", "plain"),
    THEIRS: ("transformers_step.py", "compiled"),
}
NEEDS = {THEIRS: ("torch", "transformers")}  # packages of the extra `peers`
MASKED = 0.15


def run(piece, options):
    """Measure the missing steps; return whether all steps of this project ran.

    Programs that fit the memory and the cores compile side by side. When both contestants of a
    shape stand ready the others are stopped, these two take turns alone, and their figures are
    written.
    """
    results = Results(options.output / f"{piece}.json", options.device)
    asked = asked_of(options)
    left = [[one for one in pair if one[0] not in results] for pair in asked]
    waiting, running = [pair for pair in left if pair], []
    with contextlib.ExitStack() as block:
        while (waiting or running) and time.time() < options.until:
            while waiting and _fits([*(pair for pair, _ in running), waiting[0]], options):
                pair = waiting.pop(0)
                running.append((pair, {one[0]: _start(one, block) for one in pair}))
            ready = next((one for one in running if all(map(_is_ready, one[1].values()))), None)
            if ready is None:
                time.sleep(0.2)
                continue
            running.remove(ready)
            with _stopped(process for _, others in running for process in others.values()):
                _measure(*ready, results, options)
        for pair, contestants in running:  # the time is over; who waits for another goes alone
            alone = [one for one in pair if _is_ready(contestants[one[0]])]
            others = [one for _, every in running for one in every.values()]
            ready = [contestants[one[0]] for one in alone]
            with _stopped(one for one in others if one not in ready):
                _measure(alone, {one[0]: contestants[one[0]] for one in alone}, results, options)
        for part in (one[0] for pair in (*(pair for pair, _ in running), *waiting) for one in pair):
            if part not in results:
                print(f"{part}: no time was left", flush=True)
    runs = results.values["runs"]
    ours = [one[0] for pair in asked for one in pair if one[1] == OURS]
    return all("failed" not in runs.get(part, {"failed": ""}) for part in ours)


def _measure(pair, contestants, results, options):
    _ask(contestants, lambda contestant: contestant.first_step)
    for _ in range(options.rounds):
        _ask(contestants, lambda contestant: contestant.turn(1))
    for part, name, _, _, size in pair:
        results.add(part, _result(name, contestants[part], size, options))
        print(part, results.values["runs"][part], flush=True)


def asked_of(options):
    """Return pairs of contestants, each (part, name, script, mode, shape), the most important
    first."""
    sizes = sorted(options.shapes.split(","), key=FIRST.index)
    lengths = list(map(int, options.lengths.split(",")))
    shapes = [(size, length, options.tokens) for size in sizes for length in lengths]
    if options.more_tokens:  # behind those of the two largest sizes
        more = [(sizes[0], length, options.more_tokens) for length in lengths]
        shapes[2 * len(lengths) : 2 * len(lengths)] = more
    return [
        [(_part(one, options, name), name, *SCRIPTS[name], shape(*one)) for name in SCRIPTS]
        for one in shapes
    ]


def _part(asked, options, name):
    size, length, tokens = asked
    more = "" if tokens == options.tokens else f", {tokens:,} tokens"
    return f"{size} {length}{more}: {name}"


def shape(size, length, tokens):
    """Return (layers, width, heads, rows, length, predictions) of a step of so many tokens."""
    return (*SIZES[size], max(1, tokens // length), length, max(1, round(MASKED * length)))


def _fits(pairs, options):
    """Return whether pairs fit nine tenths of the memory, and the cores; one pair always does."""
    needed = sum(gib(one[-1]) for pair in pairs for one in pair)
    cores = max(2, os.cpu_count() or 2)
    fit = needed <= 0.9 * options.memory_gib and sum(map(len, pairs)) <= cores
    return fit or len(pairs) == 1


def _is_ready(contestant):
    """Return whether it has taken its first step, or has ended, or never began."""
    return isinstance(contestant, str) or contestant.has_answered


@contextlib.contextmanager
def _stopped(contestants):
    """Stop processes, and those that they started, for the block."""
    groups = [one.process.pid for one in contestants if not isinstance(one, str)]
    try:
        _signal(groups, signal.SIGSTOP)
        yield
    finally:
        _signal(groups, signal.SIGCONT)


def _signal(groups, sign):
    for group in groups:
        with contextlib.suppress(ProcessLookupError):  # it has ended
            os.killpg(group, sign)


def gib(shape):
    """Return memory of a step in bfloat16, generously: weights, moments, activations, logits, a
    context.

    Attention is taken to be one kernel, of either contestant.
    """
    layers, width, _, rows, length, predictions = shape
    kept = rows * length * layers * 32 * width
    weights = 20 * (layers * 12 * width**2 + 31_000 * width)
    return 1.5 + (kept + weights + 14 * rows * predictions * 30_522) / 2**30


def _start(one, block):
    """Return the contestant, which ends with the block; or the reason why there is none."""
    _, name, script, mode, size = one
    if reason := _lacks(name):
        return reason
    contestant = Contestant(name, script, mode, size, "bfloat16", wait=False)
    machine.end_with(block, contestant.process)
    return contestant


def _ask(running, what):
    """Call `what` with each contestant; in place of one that fails then stands why."""
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
    gib = getattr(contestant, "device_gib", None)
    seconds = statistics.median(contestant.seconds)
    return {
        "rows": size[3],
        "step_ms": 1e3 * seconds,
        "tokens_per_s": size[3] * size[4] / seconds,
        "share": flops(size) / seconds / (options.peak_tflops * 1e12),
        "first_step_s": contestant.first_step,
        **({"peak_gib": gib} if gib else {}),
    }
