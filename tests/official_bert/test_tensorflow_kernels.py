"""The TensorFlow kernels agree with the plain formulas, forward and backward."""

import numpy as np
import pytest
import tensorflow as tf

from official_bert.backend import tensorflow_kernels

X = tf.constant(np.random.default_rng(0).normal(0, 3, (4, 5, 16)), tf.float32)


def value_and_gradients(function, *inputs):
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = function(*inputs)
        loss = tf.reduce_sum(tf.sin(tf.cast(outputs, tf.float32)))
    return [outputs, *tape.gradient(loss, inputs)]


def compare(function, plain, *inputs, atol=1e-5, rtol=1e-5):
    found = value_and_gradients(function, *inputs)
    for a, b in zip(found, value_and_gradients(plain, *inputs), strict=True):
        np.testing.assert_allclose(a, b, atol=atol, rtol=rtol)


def plain_gelu(x):
    return 0.5 * x * (1 + tf.math.erf(x / np.sqrt(2)))


def plain_layer_norm(x, gamma, beta):
    mean, variance = tf.nn.moments(x, axes=[-1], keepdims=True)
    return (x - mean) / tf.sqrt(variance + 1e-12) * gamma + beta


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
def test_gelu(wrap):
    compare(wrap(tensorflow_kernels.gelu), plain_gelu, X, atol=1e-6)


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
def test_layer_norm(wrap):
    rng = np.random.default_rng(1)
    gamma, beta = (tf.constant(rng.normal(size=16), tf.float32) for _ in range(2))
    ours = wrap(lambda x, g, b: tensorflow_kernels.layer_norm(x, g, b, 1e-12))
    compare(ours, plain_layer_norm, X, gamma, beta, rtol=1e-4)


@pytest.mark.parametrize("scale", [1.0, 200.0])
@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
def test_cross_entropy(wrap, scale):
    """At scale 200 most probabilities are 0 in float32, and their losses still exact."""
    labels = tf.constant(np.random.default_rng(2).integers(0, 16, (4, 5)), tf.int32)
    plain = tf.nn.sparse_softmax_cross_entropy_with_logits
    ours = wrap(lambda x: tensorflow_kernels.cross_entropy(x, labels))
    compare(ours, lambda x: plain(labels, x), scale * X, rtol=1e-6)


@pytest.mark.parametrize("dtype, atol", [("float32", 1e-5), ("bfloat16", 0.1)])
@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
def test_dense(wrap, dtype, atol):
    rng = np.random.default_rng(3)
    shapes = (6, 16), (16, 9), (9,)
    inputs = [tf.constant(rng.normal(0, 0.5, shape), tf.float32) for shape in shapes]
    rounded = [tf.cast(x, dtype) for x in inputs]
    ours = value_and_gradients(wrap(tensorflow_kernels.dense), *rounded)
    assert {x.dtype for x in ours} == {rounded[0].dtype}
    for a, b in zip(ours, value_and_gradients(lambda x, w, b: x @ w + b, *inputs), strict=True):
        np.testing.assert_allclose(tf.cast(a, tf.float32), b, atol=atol, rtol=atol)


def test_scores_of_table():
    rng = np.random.default_rng(3)
    inputs = [tf.constant(rng.normal(size=shape), tf.float32) for shape in ((6, 16), (9, 16), (9,))]
    plain = lambda x, table, bias: x @ tf.transpose(table) + bias  # noqa: E731
    compare(tensorflow_kernels.scores_of_table, plain, *inputs)


@pytest.mark.parametrize(
    "function",
    [
        tensorflow_kernels.gelu,
        lambda x: tensorflow_kernels.layer_norm(x, tf.ones(16), tf.zeros(16), 1e-12),
    ],
)
def test_bfloat16_stays_near_float32(function):
    exact = value_and_gradients(function, X)
    half = value_and_gradients(function, tf.cast(X, tf.bfloat16))
    assert half[0].dtype == half[1].dtype == tf.bfloat16
    for a, b in zip(half, exact, strict=True):
        np.testing.assert_allclose(tf.cast(a, tf.float32), b, atol=0.1, rtol=0.05)
