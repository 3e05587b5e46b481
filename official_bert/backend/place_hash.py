"""Draws of 16 bits as a hash of their place in a tensor: the masks of dropout on every backend.

A counter-based generator (Salmon et al. 2011): a draw is a function of a seed and a place, nothing
is stored, any part of a tensor can be drawn alone, and a backward pass draws again. One round with
a key, then three with another; their constants are of Wellons' lowbias32 and triple32 (2018).
Integers are int32, which wraps, so `keras.ops` computes the same bits on TensorFlow, JAX and
PyTorch, and so do kernels (`pallas_attention`).
"""

import math

from keras import ops

LEVELS = 2**16


def _int32(constant: int) -> int:
    """Return the int32 with the bits of a uint32."""
    return constant - 2**32 if constant >= 2**31 else constant


_FIRST, _SECOND, _THIRD, _FOURTH = map(_int32, (0x7FEB352D, 0xED5AD4BB, 0xAC4C1B51, 0x31848BAB))
_GOLDEN, _SILVER = map(_int32, (0x9E3779B1, 0x85EBCA77))


def threshold(rate: float) -> int:
    """Return the number below which a draw is zeroed: the rate, rounded to a multiple of 2**-16."""
    return round(rate * LEVELS)


def scale(rate: float) -> float:
    """Return the factor of survivors, exactly 1 / (1 - rounded rate)."""
    return LEVELS / (LEVELS - threshold(rate))


def keys(seed):
    """Return the two keys of a seed: int32 [2] -> two int32 scalars.

    Neither is a function of the sum of both numbers: run 1 at step 2 is not run 2 at step 1.
    """
    first, second = seed[0], seed[1]
    return mix(first, (_GOLDEN, second)), mix(second, (_SILVER, first))


def mix(x, keys):
    """Hash int32 counters of any shape with two int32 keys, to int32."""
    x = _folded(x + keys[0], 16) * _FIRST
    x = _folded(x + keys[1], 17) * _SECOND
    x = _folded(x, 11) * _THIRD
    x = _folded(x, 15) * _FOURTH
    return _folded(x, 14)


def words_of(columns: int):
    """Return how many words a row has: columns c and c + 64 of a block of 128 share one."""
    return (columns + 127) // 128 * 64


def halves(words):
    """Split words into the draws of columns c and c + 64: int32 -> two of [0, 2**16)."""
    return ops.bitwise_and(words, LEVELS - 1), _shifted(words, 16)


def draws(shape, keys):
    """Draw for every place of a tensor: int32 [*shape], numbers of [0, 2**16).

    Args:
      shape: ints, or scalar tensors in a graph of TensorFlow.
      keys: of a seed.
    """
    *lead, columns = shape
    rows = ops.reshape(ops.arange(math.prod(lead), dtype="int32"), (*lead, 1))
    column = ops.arange(columns, dtype="int32")
    word = ops.right_shift(column, 7) * 64 + ops.bitwise_and(column, 63)
    words = mix(rows * words_of(columns) + word, keys)
    half = ops.bitwise_and(ops.right_shift(column, 6), 1)
    return ops.bitwise_and(ops.right_shift(words, 16 * half), LEVELS - 1)


def factors(x, rate: float, keys):
    """Return dropout's factors of a tensor, of its shape and dtype: 0, or the `scale`."""
    kept = draws(ops.shape(x), keys) >= threshold(rate)
    return ops.where(kept, ops.cast(scale(rate), x.dtype), ops.cast(0.0, x.dtype))


def _folded(x, bits: int):
    return ops.bitwise_xor(x, _shifted(x, bits))


def _shifted(x, bits: int):
    """Shift to the right, zeros from the left; of int32, which XLA and PyTorch fill with signs."""
    return ops.bitwise_and(ops.right_shift(x, bits), 2 ** (32 - bits) - 1)
