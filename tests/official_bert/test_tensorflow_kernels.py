"""The TensorFlow kernels agree with the plain formulas, forward and backward."""

import numpy as np
import pytest
import tensorflow as tf

from official_bert import tensorflow_kernels
from official_bert.bilstm import BidirectionalLSTM

X = tf.constant(np.random.default_rng(0).normal(0, 3, (4, 5, 16)), tf.float32)


def value_and_gradients(function, *inputs):
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = function(*inputs)
        loss = tf.reduce_sum(tf.sin(tf.cast(outputs, tf.float32)))
    return [outputs, *tape.gradient(loss, inputs)]


def plain_gelu(x):
    return 0.5 * x * (1 + tf.math.erf(x / np.sqrt(2)))


def plain_layer_norm(x, gamma, beta):
    mean, variance = tf.nn.moments(x, axes=[-1], keepdims=True)
    return (x - mean) / tf.sqrt(variance + 1e-12) * gamma + beta


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
def test_gelu(wrap):
    ours = value_and_gradients(wrap(tensorflow_kernels.gelu), X)
    for a, b in zip(ours, value_and_gradients(plain_gelu, X), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
def test_layer_norm(wrap):
    rng = np.random.default_rng(1)
    gamma, beta = (tf.constant(rng.normal(size=16), tf.float32) for _ in range(2))
    ours = wrap(lambda x, g, b: tensorflow_kernels.layer_norm(x, g, b, 1e-12))
    results = value_and_gradients(ours, X, gamma, beta)
    for a, b in zip(results, value_and_gradients(plain_layer_norm, X, gamma, beta), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("scale", [1.0, 200.0])
@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
def test_cross_entropy(wrap, scale):
    """At scale 200 most probabilities are 0 in float32, and their losses still exact."""
    labels = tf.constant(np.random.default_rng(2).integers(0, 16, (4, 5)), tf.int32)
    ours = value_and_gradients(
        wrap(lambda x: tensorflow_kernels.cross_entropy(x, labels)), scale * X
    )
    plain = value_and_gradients(
        lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x), scale * X
    )
    for a, b in zip(ours, plain, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5, rtol=1e-6)


def test_scores_of_table():
    rng = np.random.default_rng(3)
    x, table, bias = (
        tf.constant(rng.normal(size=shape), tf.float32) for shape in ((6, 16), (9, 16), (9,))
    )
    ours = value_and_gradients(tensorflow_kernels.scores_of_table, x, table, bias)
    plain = value_and_gradients(lambda x, t, b: x @ tf.transpose(t) + b, x, table, bias)
    for a, b in zip(ours, plain, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5, rtol=1e-5)


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


MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 0]], bool)


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_lstms_in_both_directions(wrap, dtype):
    layer = BidirectionalLSTM(12, 0, dtype)
    layer.build((None, None, 16))
    weights = [v.value for v in layer.trainable_variables]

    def outputs(training):
        def call(x, *_):
            return layer(x, mask=tf.constant(MASK), training=training)

        return value_and_gradients(call, X, *weights)

    kernel, loop = (outputs(training) for training in (True, False))
    assert kernel[0].dtype == loop[0].dtype and kernel[0].shape == (4, 5, 12)
    for ours, keras_own in zip(kernel, loop, strict=True):
        ours, keras_own = (tf.cast(tensor, tf.float32) for tensor in (ours, keras_own))
        exact = dtype == "float32"
        np.testing.assert_allclose(ours, keras_own, atol=2e-6 if exact else 0.1, rtol=1e-4)


def test_lstms_take_the_kernel_in_training_alone(monkeypatch):
    calls = []
    monkeypatch.setattr(
        tensorflow_kernels, "bidirectional_lstm", lambda x, *_: calls.append(1) or x[..., :12]
    )
    layer = BidirectionalLSTM(12, 0, "float32")
    mask = tf.constant(MASK)
    layer(X, mask=mask)
    layer(X, mask=mask, training=True)
    assert calls == [1]
    layer.fused = False
    layer(X, mask=mask, training=True)
    layer.fused = True
    monkeypatch.setattr(tensorflow_kernels, "on_processors", lambda: False)
    layer(X, mask=mask, training=True)
    assert calls == [1]
