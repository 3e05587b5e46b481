"""TensorFlow kernels behind functions that are written with `keras.ops` elsewhere.

Each stands here because it was measured to pay (see benchmarks/README.md), and a test checks that
it agrees with the plain formula.
"""

import math

import keras
import numpy as np
import tensorflow as tf

from official_bert.backend import place_hash


@tf.function(jit_compile=True, reduce_retracing=True, autograph=False)
def dropout_factors(x, rate: float, seed):
    """Return `place_hash.factors` of [N, M], some 25 operations on integers in one pass over
    memory."""
    return place_hash.factors(x, rate, place_hash.keys(seed))


def dropout(x, rate: float, seed):
    """Apply `randomness.dropout`: one product forward, one with the same factors backward."""
    rows = tf.reshape(x, [-1, tf.shape(x)[-1]])  # of one rank: new shapes trace nothing anew
    factors = tf.stop_gradient(dropout_factors(rows, rate, seed))
    return x * tf.reshape(factors, tf.shape(x))


@tf.custom_gradient
def cross_entropy(logits, labels):
    """Return -log softmax(logits)[label]: float32 [..., N], int32 [...] in [0, N) -> float32 [...].

    Logits of a vocabulary are by far the largest tensor of a step, so each pass over them counts:
    the softmax (a oneDNN kernel), two maxima, and a product in the gradient. TensorFlow's own
    `sparse_softmax_cross_entropy_with_logits` takes three times as long, and the gradient of a
    lookup by label ten times.
    """
    # The last axis of a span's scores is the text's length, unknown when the step is traced.
    flat = tf.reshape(logits, [-1, tf.shape(logits)[-1]])
    chosen = tf.stack([tf.range(tf.size(labels)), tf.reshape(labels, [-1])], axis=1)
    probabilities = tf.nn.softmax(flat)
    # The largest probability is at least 1 / N: its logarithm is exact, that of a label's might
    # not be.
    log_sum = tf.reduce_max(flat, -1) - tf.math.log(tf.reduce_max(probabilities, -1))
    losses = tf.reshape(log_sum - tf.gather_nd(flat, chosen), tf.shape(labels))

    def gradient(upstream):
        upstream = tf.reshape(upstream, [-1])
        to_logits = probabilities * upstream[:, None]
        to_logits = tf.tensor_scatter_nd_sub(to_logits, chosen, upstream)
        return tf.reshape(to_logits, tf.shape(logits)), None

    return losses, gradient


def dense(x, kernel, bias):
    """Return x @ kernel + bias: [N, H], [H, M], [M] -> [N, M].

    The bias's gradient is a product with ones.

    TensorFlow's own sum over rows takes about three times as long in bfloat16.
    """

    @tf.custom_gradient
    def product(x, kernel, bias):
        def gradient(upstream):
            ones = tf.ones([1, tf.shape(upstream)[0]], upstream.dtype)
            return (
                tf.matmul(upstream, kernel, transpose_b=True),
                tf.matmul(x, upstream, transpose_a=True),
                tf.matmul(ones, upstream)[0],
            )

        return tf.nn.bias_add(tf.matmul(x, kernel), bias), gradient

    return product(x, tf.convert_to_tensor(kernel), tf.convert_to_tensor(bias))


def scores_of_table(x, table, bias):
    """Return products with every row of a table, plus a bias or None.

    Shapes are [N, H], [V, H], [V] -> [N, V].

    The product has the dtype of `x` and `table`; bias and result are float32. With the table
    transposed inside the product its gradient needs no transposition either.
    """
    products = tf.cast(tf.matmul(x, table, transpose_b=True), tf.float32)
    return products if bias is None else tf.nn.bias_add(products, tf.convert_to_tensor(bias))


@tf.custom_gradient
def gelu(x):
    """Return x * Phi(x), the exact form, with half the passes over memory that autodiff makes.

    It is computed in float32 whatever the dtype, since a CPU converts bfloat16 for each operation.
    """
    dtype = x.dtype
    x = tf.cast(x, tf.float32)
    z = x * 0.5**0.5
    phi = 0.5 * (1.0 + tf.math.erf(z))

    def gradient(upstream):
        # x times the normal density at x is z exp(-z^2) / sqrt(pi).
        slope = phi + z * tf.exp(-0.5 * math.log(math.pi) - z * z)
        return tf.cast(tf.cast(upstream, tf.float32) * slope, dtype)

    return tf.cast(x * phi, dtype), gradient


def layer_norm(x, gamma, beta, epsilon: float):
    """Return layer normalisation over the last axis, in float32, with the gradient in closed form.

    Args:
      x: [..., H] of any float dtype, which is also the result's.
      gamma, beta: float32 [H].
      epsilon: added to the variance.
    """

    @tf.custom_gradient
    def normalise(x, gamma, beta):
        dtype = x.dtype
        x = tf.cast(x, tf.float32)
        centred = x - tf.reduce_mean(x, axis=-1, keepdims=True)
        variance = tf.reduce_mean(centred * centred, axis=-1, keepdims=True)
        inverse = tf.math.rsqrt(variance + epsilon)
        normal = centred * inverse

        def gradient(upstream):
            upstream = tf.cast(upstream, tf.float32)
            scaled = upstream * gamma
            along = tf.reduce_mean(scaled * normal, axis=-1, keepdims=True)
            to_x = inverse * (scaled - tf.reduce_mean(scaled, -1, keepdims=True) - normal * along)
            rows = list(range(x.shape.rank - 1))
            to_gamma = tf.reduce_sum(upstream * normal, axis=rows)
            return tf.cast(to_x, dtype), to_gamma, tf.reduce_sum(upstream, axis=rows)

        return tf.cast(normal * gamma + beta, dtype), gradient

    return normalise(x, tf.convert_to_tensor(gamma), tf.convert_to_tensor(beta))


def adamw(
    variable, m, v, gradient, learning_rate, decay, beta_1, beta_2, epsilon, first=1.0, second=1.0
) -> None:
    """Update a variable by AdamW in place, with TensorFlow's fused Adam kernel.

    The kernel scales the learning rate by sqrt(1 - beta_2^t) / (1 - beta_1^t); zeros for both
    powers make that 1. Decay comes first: both parts of the update read the old weight, and
    (w - lr d w) - lr u = w - lr (u + d w).

    With corrections, (m / first) / (sqrt(v / second) + epsilon) is
    sqrt(second) / first * m / (sqrt(v) + epsilon sqrt(second)).

    The kernel computes 1 - beta in float32, where 1 - 0.999 is 5e-5 too large. Both moments
    come out larger by known constants, which the learning rate and epsilon make up for; the stored
    moments keep them.

    Args:
      variable, m, v: tf.Variable or keras.Variable, of one shape.
      gradient: tensor or tf.IndexedSlices.
      learning_rate: scalar tensor of the variable's dtype.
      decay, beta_1, beta_2, epsilon: floats.
      first, second: what the moments are divided by, scalar tensors; 1.0 for no bias correction.
    """
    variable, m, v = (x.value if isinstance(x, keras.Variable) else x for x in (variable, m, v))
    dtype = variable.dtype
    gradient = tf.cast(tf.convert_to_tensor(gradient), dtype)
    if decay:
        # Through the handle, which under tf.distribute is that of the replica's own copy; a
        # mirrored variable's `assign` would want to know how to combine the replicas' values.
        decayed = variable * (1 - learning_rate * tf.cast(decay, dtype))
        tf.raw_ops.AssignVariableOp(resource=variable.handle, value=decayed)
    m_factor = float(1 - np.float32(beta_1)) / (1 - beta_1)
    v_factor = float(1 - np.float32(beta_2)) / (1 - beta_2)
    zero = tf.zeros([], dtype)
    root = second**0.5
    tf.raw_ops.ResourceApplyAdam(
        var=variable.handle,
        m=m.handle,
        v=v.handle,
        beta1_power=zero,
        beta2_power=zero,
        lr=learning_rate * tf.cast(v_factor**0.5 / m_factor * root / first, dtype),
        beta1=tf.cast(beta_1, dtype),
        beta2=tf.cast(beta_2, dtype),
        epsilon=tf.cast(epsilon * v_factor**0.5 * root, dtype),
        grad=gradient,
    )
