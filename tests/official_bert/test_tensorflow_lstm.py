"""LSTMs over whole texts agree with Keras' own, forward and backward."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from official_bert.backend import tensorflow_lstm
from official_bert.bilstm import BidirectionalLSTM

X = tf.constant(np.random.default_rng(0).normal(0, 3, (4, 5, 16)), tf.float32)
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 0]], bool)


@pytest.mark.parametrize(
    "wrap",
    [lambda f: f, tf.function, functools.partial(tf.function, jit_compile=True)],
    ids=["eager", "graph", "xla"],
)
@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_lstms_in_both_directions(wrap, dtype):
    layer = BidirectionalLSTM(12, 0, dtype)
    layer.build((None, None, 16))
    weights = [v.value for v in layer.trainable_variables]

    def results(training):
        with tf.GradientTape() as tape:
            tape.watch(X)
            outputs = layer(X, mask=tf.constant(MASK), training=training)
            loss = tf.reduce_sum(tf.sin(tf.cast(outputs, tf.float32)))
        return [outputs, *tape.gradient(loss, [X, *weights])]

    ours, keras_own = wrap(lambda: results(training=True))(), results(training=False)
    assert ours[0].dtype == keras_own[0].dtype and ours[0].shape == (4, 5, 12)
    for one, other in zip(ours, keras_own, strict=True):
        one, other = (tf.cast(tensor, tf.float32) for tensor in (one, other))
        exact = dtype == "float32"
        np.testing.assert_allclose(one, other, atol=3e-6 if exact else 0.1, rtol=1e-4)


def test_not_in_inference_and_not_on_accelerators(monkeypatch):
    calls = []
    monkeypatch.setattr(
        tensorflow_lstm, "bidirectional_lstm", lambda x, *_: calls.append(1) or x[..., :12]
    )
    layer = BidirectionalLSTM(12, 0, "float32")
    mask = tf.constant(MASK)
    layer(X, mask=mask)
    layer(X, mask=mask, training=True)
    assert calls == [1]
    monkeypatch.setattr(tensorflow_lstm, "on_processors", lambda: False)
    layer(X, mask=mask, training=True)
    assert calls == [1]
