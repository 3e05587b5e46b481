"""Attention by itself on JAX: milliseconds of forward and backward, and of forward alone.

    python attention_jax.py '{"base 128": [12, 768, 12, 128, 128, 19]}'

Prints JSON, case -> way -> [both, forward, distance of the output from plain products in float32].
A third of each row is padding.
"""

import functools
import json
import os
import statistics
import sys
import time

os.environ["KERAS_BACKEND"] = "jax"

import jax
import jax.numpy as jnp

AT_ONCE, ROUNDS = 8, 5


def plain(query, key, value, bias, softmax_dtype=None):
    """Compute what `official_bert.layers.SelfAttention` does."""
    query, key, value = (x.transpose(0, 2, 1, 3) for x in (query, key, value))
    scores = query * query.shape[-1] ** -0.5 @ key.transpose(0, 1, 3, 2) + bias
    weights = jax.nn.softmax(scores.astype(softmax_dtype or scores.dtype)).astype(value.dtype)
    return (weights @ value).transpose(0, 2, 1, 3)


def with_dropout(query, key, value, bias):
    """Compute `plain` with a tenth of the weights zeroed."""
    query, key, value = (x.transpose(0, 2, 1, 3) for x in (query, key, value))
    weights = jax.nn.softmax(query * query.shape[-1] ** -0.5 @ key.transpose(0, 1, 3, 2) + bias)
    keep = jax.random.uniform(jax.random.key(0), weights.shape) >= 0.1
    return (weights * (keep.astype(weights.dtype) / 0.9) @ value).transpose(0, 2, 1, 3)


def library(query, key, value, bias, implementation):
    rows, length = query.shape[:2]  # cuDNN takes no bias of one row for all queries
    bias = jnp.broadcast_to(jax.lax.stop_gradient(bias), (rows, 1, length, length))
    return jax.nn.dot_product_attention(query, key, value, bias, implementation=implementation)


def lengths(query, key, value, bias):
    """Compute cuDNN's attention with the length of each row in place of a bias."""
    real = jnp.sum(bias[:, 0, 0] == 0, axis=-1, dtype=jnp.int32)
    return jax.nn.dot_product_attention(
        query, key, value, key_value_seq_lengths=real, implementation="cudnn"
    )


WAYS = {
    "plain": plain,
    "plain, softmax in float32": functools.partial(plain, softmax_dtype="float32"),
    "plain, dropout": with_dropout,
    "jax.nn, xla": functools.partial(library, implementation="xla"),
    "jax.nn, cudnn": functools.partial(library, implementation="cudnn"),
    "jax.nn, cudnn, lengths": lengths,
}


def milliseconds(function, *arguments):
    """Return the time of one of AT_ONCE calls in one program, the median of ROUNDS."""

    @jax.jit
    def several(*arguments):
        def body(_, x):  # each call reads what the one before gave
            found = function(x, *arguments[1:])
            return x + 1e-3 * jax.tree.reduce(jnp.add, found).astype(x.dtype)

        return jax.lax.fori_loop(0, AT_ONCE, body, arguments[0])

    seconds = []
    for _ in range(ROUNDS + 1):
        start = time.perf_counter()
        several(*arguments).block_until_ready()
        seconds.append((time.perf_counter() - start) / AT_ONCE)
    return 1e3 * statistics.median(seconds[1:])


found = {}
for case, (_, width, heads, rows, length, _) in json.loads(sys.argv[1]).items():
    keys = jax.random.split(jax.random.key(0), 3)
    inputs = [jax.random.normal(k, (rows, length, heads, width // heads), "bfloat16") for k in keys]
    real = jnp.arange(length) < length - length // 3 * (jnp.arange(rows)[:, None] % 2)
    bias = jnp.where(real, 0.0, -10000.0).astype("bfloat16")[:, None, None, :]
    with jax.default_matmul_precision("highest"):
        truth = plain(*(x.astype("float32") for x in (*inputs, bias)))
    found[case] = {}
    for name, way in WAYS.items():
        try:
            both = jax.grad(lambda *x, way=way: way(*x).astype("float32").sum(), argnums=(0, 1, 2))
            distance = jnp.linalg.norm((way(*inputs, bias) - truth).ravel())
            found[case][name] = [
                milliseconds(lambda *x, both=both: both(*x), *inputs, bias),
                milliseconds(way, *inputs, bias),
                float(distance / jnp.linalg.norm(truth.ravel())),
            ]
        except Exception as error:
            found[case][name] = f"{type(error).__name__}: {str(error)[:300]}"
        print(case, name, found[case][name], file=sys.stderr, flush=True)
print(json.dumps(found))
