"""`dynamic_masking` on JAX: the same masks from the same seed, made on the device that trains."""

import math

import jax.numpy as jnp
from jax import lax

from data_prep.pretraining.reading import dynamic_masking
from data_prep.pretraining.reading.dynamic_masking import MaskingRules
from data_prep.pretraining.reading.philox import KEY_STEPS, MULTIPLIERS, ROUNDS


def mask(batch: dict, state, rules: MaskingRules) -> dict:
    """Mask a batch as `dynamic_masking.mask` does, inside a compiled function.

    Args:
      batch: input_ids, input_mask, segment_ids, next_sentence_labels, int32 [rows, ...].
      state: uint32 [4], `philox.state` of (seed, number of the batch's first example in the run).
      rules: rules without whole-word masking.
    """
    numbers = uniform((len(batch["input_ids"]), rules.numbers), state)
    return dynamic_masking.mask_with(numbers, batch, rules, jnp)


def uniform(shape, state):
    """Return float32 [shape]: `philox.uniform` of the seed that has this `philox.state`."""
    count = math.prod(shape)
    blocks = jnp.arange(-(-count // 4), dtype=jnp.uint32)
    zeros = jnp.zeros_like(blocks)
    a, b, c, d = blocks, zeros, zeros + state[2], zeros + state[3]
    for number in range(ROUNDS):
        key = [word + jnp.uint32(number * step % 2**32)
               for word, step in zip(state[:2], KEY_STEPS, strict=True)]  # fmt: skip
        (high_a, low_a), (high_c, low_c) = map(_product, (a, c), MULTIPLIERS)
        a, b, c, d = high_c ^ b ^ key[0], low_c, high_a ^ d ^ key[1], low_a
    words = jnp.stack([a, b, c, d], axis=1).ravel()[:count]
    floats = lax.bitcast_convert_type((words & 0x7FFFFF) | 0x3F800000, jnp.float32)
    return (floats - 1.0).reshape(shape)


def _product(x, multiplier):
    """Return upper and lower 32 bits of products, computed by halves.

    By default JAX has no integers of 64 bits.
    """
    high, low = multiplier >> 16, multiplier & 0xFFFF
    x_high, x_low = x >> 16, x & 0xFFFF
    middle = x_high * jnp.uint32(low) + (x_low * jnp.uint32(low) >> 16)
    carried = x_low * jnp.uint32(high) + (middle & 0xFFFF)
    upper = x_high * jnp.uint32(high) + (middle >> 16) + (carried >> 16)
    return upper, x * jnp.uint32(multiplier)
