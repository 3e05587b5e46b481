"""The rate of matrix products alone: what a training step's FLOP/s are compared with."""

import functools
import time


@functools.cache
def matrix_rate(precision):
    """FLOP/s of one device's (of a CPU: all its cores') large matrix products.

    Measured once a process, in about 0.2 s on two cores.

    Args:
      precision: "float32" or "mixed_bfloat16".
    """
    import tensorflow as tf

    size = 8192 if tf.config.list_logical_devices("GPU") else 1024
    dtype = tf.bfloat16 if precision == "mixed_bfloat16" else tf.float32
    matrix = tf.cast(tf.random.stateless_uniform([size, size], seed=[0, 0]), dtype)
    product = tf.function(lambda x: tf.matmul(x, x)[0, 0], autograph=False)
    best = float("inf")
    for _ in range(6):  # the first one compiles
        start = time.perf_counter()
        product(matrix).numpy()
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best


def peak_flops(strategy, precision):
    """FLOP/s of all devices of a strategy together; logical devices of one CPU are one device."""
    import tensorflow as tf

    devices = strategy.num_replicas_in_sync
    if not tf.config.list_logical_devices("GPU"):
        devices //= max(1, len(tf.config.list_logical_devices("CPU")))
    return matrix_rate(precision) * max(1, devices)
