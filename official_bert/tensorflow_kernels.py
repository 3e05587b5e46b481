"""TensorFlow kernels behind functions that are written with `keras.ops` elsewhere.

Each stands here because it was measured to pay (see benchmarks/README.md), and a test checks that
it agrees with the plain formula.
"""

import keras
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


def adamw(variable, m, v, gradient, learning_rate, decay, beta_1, beta_2, epsilon) -> None:
    """AdamW without bias correction, in place, by TensorFlow's fused Adam kernel.

    The kernel scales the learning rate by sqrt(1 - beta_2^t) / (1 - beta_1^t); zeros for both
    powers make that 1. Decay comes first: both parts of the update read the old weight, and
    (w - lr d w) - lr u = w - lr (u + d w).

    Args:
      variable, m, v: tf.Variable or keras.Variable, of one shape.
      gradient: tensor or tf.IndexedSlices.
      learning_rate: scalar tensor of the variable's dtype.
      decay, beta_1, beta_2, epsilon: floats.
    """
    variable, m, v = (x.value if isinstance(x, keras.Variable) else x for x in (variable, m, v))
    dtype = variable.dtype
    gradient = tf.cast(tf.convert_to_tensor(gradient), dtype)
    if decay:
        variable.assign(variable * (1 - learning_rate * tf.cast(decay, dtype)))
    zero = tf.zeros([], dtype)
    tf.raw_ops.ResourceApplyAdam(
        var=variable.handle,
        m=m.handle,
        v=v.handle,
        beta1_power=zero,
        beta2_power=zero,
        lr=learning_rate,
        beta1=tf.cast(beta_1, dtype),
        beta2=tf.cast(beta_2, dtype),
        epsilon=tf.cast(epsilon, dtype),
        grad=gradient,
    )
