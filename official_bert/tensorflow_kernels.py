"""TensorFlow kernels behind functions that are written with `keras.ops` elsewhere.

Each stands here because it was measured to pay (see benchmarks/README.md), and a test checks that it
agrees with the plain formula.
"""

import tensorflow as tf


def dropout(x, rate: float, seed):
    """Stateless dropout from Philox bits, 16 bits a number: half the generator's work of floats.

    The rate is rounded to a multiple of 2**-16 and the survivors are scaled by exactly its
    complement, so the expectation is unbiased.

    Args:
      x: float tensor.
      rate: float in [0, 1).
      seed: int32 tensor [2].
    """
    threshold = round(rate * 65536)
    scale = 65536 / (65536 - threshold)
    size = tf.size(x)
    words = tf.random.stateless_uniform(
        [(size + 1) // 2], seed, minval=None, maxval=None, dtype=tf.int32, alg="philox"
    )
    halves = tf.reshape(tf.bitcast(words, tf.int16), [-1])[:size]  # uniform in [-32768, 32767]
    keep = tf.reshape(halves >= tf.constant(threshold - 32768, tf.int16), tf.shape(x))
    # One multiplication forward and one backward: the gradient of a product with a constant.
    return x * tf.stop_gradient(tf.cast(keep, x.dtype) * tf.cast(scale, x.dtype))
