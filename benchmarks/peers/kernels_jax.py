"""Attention's kernels on this GPU: why they are refused, and which division of work is fastest.

Prints JSON: "refused" {case: reason, "" where they are taken}, "microseconds" {kernel: {division:
time}}, "chosen" {"True" and "False", of `pallas_attention.CHOSEN`: fields of Blocks}.
"""

import dataclasses
import json
import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

os.environ["KERAS_BACKEND"] = "jax"
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp

from official_bert.backend import fused_attention, jax_kernels, pallas_attention
from official_bert.backend.pallas_attention import Blocks, Calls

CASES = [  # length, width of a head, a bias for each query, rate of dropout
    (128, 64, False, 0.1),
    (512, 64, False, 0.1),
    (20, 64, False, 0.1),
    (300, 64, True, 0.1),
    (128, 32, True, 0.0),
    (512, 128, False, 0.1),
]
DIVISIONS = {
    (128, "forward"): [(64, 4, 2), (64, 4, 1), (128, 8, 2), (128, 4, 2)],
    (128, "one_block"): [(128, 8, 1), (128, 16, 1)],
    (512, "forward"): [(64, 4, 2), (64, 4, 3), (128, 8, 2)],
    (512, "by_keys"): [(64, 4, 2), (64, 8, 2), (32, 4, 2), (64, 8, 2, True), (32, 4, 2, True)],
    (512, "by_queries"): [(64, 4, 2), (64, 8, 2), (128, 8, 2)],
}
HEADS, WIDTH, TOKENS, CALLS, ROUNDS = 12, 64, 16_384, 10, 5


def found(case):
    length, width, wide, rate = case
    kind = "a mask for each query" if wide else "one mask"
    name = f"length {length}, heads {width} wide, {kind}, dropout {rate}"
    return name, fused_attention.refusal(*case)


def arrays(length):
    """Return (qkv, bias, seed, upstream, log_sum, along) of a shape of base."""
    rows, key = TOKENS // length, jax.random.key(0)
    qkv = jax.random.normal(key, (rows, length, 3, HEADS, WIDTH), "bfloat16")
    upstream, numbers = qkv[:, :, 0], jnp.zeros((rows, HEADS, length), "float32")
    bias, seed = jnp.zeros((rows, 1, length), "bfloat16"), jnp.array([1, 2, 0], "int32")
    return qkv, bias, seed, upstream, numbers + 8, numbers


def kernel(name, division):
    """Return one kernel as a function of `arrays`."""
    size, more = division[:3], {"pairs": len(division) > 3}
    blocks = Blocks(**{name: size}, **more)

    def run(qkv, bias, seed, upstream, log_sum, along):
        if name == "forward":
            return pallas_attention.attention(qkv, bias, seed, 0.1, blocks)
        calls = Calls(qkv, bias, 0.1, blocks, False)
        if name == "one_block":
            return pallas_attention.one_block(calls, seed, upstream, upstream, log_sum)
        if name == "by_keys":
            return pallas_attention.by_keys(calls, seed, upstream, log_sum, along)
        return pallas_attention.by_queries(calls, seed, upstream, log_sum, along, qkv)

    return run


def compiled(asked):
    (length, name), division = asked
    try:
        return jax.jit(kernel(name, division)).lower(*arrays(length)).compile()
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"


def microseconds(program, length):
    if isinstance(program, str):
        return program
    given, times = arrays(length), []
    for _ in range(ROUNDS + 1):
        jax.block_until_ready(given)
        start = time.perf_counter()
        for _ in range(CALLS):
            last = program(*given)
        last.block_until_ready()
        times.append((time.perf_counter() - start) / CALLS)
    return 1e6 * statistics.median(times[1:])


def chosen(measured):
    """Return the fastest division of each kernel, as fields of Blocks, for both of CHOSEN."""
    best = {}
    for (length, name), times in measured.items():
        numbers = {one: t for one, t in times.items() if not isinstance(t, str)}
        if numbers:
            fastest = min(numbers, key=numbers.get)
            best.setdefault(str(length <= 128), {})[name] = fastest[:3]
            if name == "by_keys":
                best[str(length <= 128)]["pairs"] = len(fastest) > 3
    return best


def main():
    with ThreadPoolExecutor() as pool:
        asked = [(key, one) for key, divisions in DIVISIONS.items() for one in divisions]
        programs = pool.map(compiled, asked) if jax_kernels.on_nvidia() else ()
        refused = dict(pool.map(found, CASES))
        measured = {}
        for (key, division), program in zip(asked, list(programs), strict=False):
            measured.setdefault(key, {})[division] = microseconds(program, key[0])
    each = {
        f"{name}, length {length}": {str(division): t for division, t in times.items()}
        for (length, name), times in measured.items()
    }
    print(json.dumps({"refused": refused, "microseconds": each, "chosen": chosen(measured)}))


if __name__ == "__main__":
    assert {f.name for f in dataclasses.fields(Blocks)} >= {name for _, name in DIVISIONS}
    main()
