"""Attention's kernels on this GPU: why they are refused, "" where they are taken. Prints JSON."""

import json
import os
from concurrent.futures import ThreadPoolExecutor

os.environ["KERAS_BACKEND"] = "jax"

from official_bert.backend import fused_attention

CASES = [  # length, width of a head, a bias for each query, rate of dropout
    (128, 64, False, 0.1),
    (512, 64, False, 0.1),
    (20, 64, False, 0.1),
    (300, 64, True, 0.1),
    (128, 32, True, 0.0),
    (512, 128, False, 0.1),
]


def found(case):
    length, width, wide, rate = case
    kind = "a mask for each query" if wide else "one mask"
    name = f"length {length}, heads {width} wide, {kind}, dropout {rate}"
    return name, {"refused": fused_attention.refusal(*case)}


with ThreadPoolExecutor() as pool:
    print(json.dumps(dict(pool.map(found, CASES))))
