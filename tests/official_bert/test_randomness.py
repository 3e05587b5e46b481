"""Dropout masks: functions of the seed that differ by layer, step and replica."""

import numpy as np
import pytest
import tensorflow as tf

from official_bert import BertEncoder
from official_bert.randomness import dropout, make_seed


def test_dropout_without_a_seed_or_a_rate_is_the_identity():
    x = tf.random.normal([4, 5])
    assert dropout(x, 0.1, None) is x
    assert dropout(x, 0.0, make_seed(1, 1)) is x


def test_gradient_passes_through_the_kept_numbers():
    x = tf.Variable(tf.ones([64, 3]))
    with tf.GradientTape() as tape:
        y = dropout(x, 0.3, make_seed(5, 7))
    np.testing.assert_allclose(tape.gradient(y, x), y)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_a_seed_makes_training_calls_repeatable(config, inputs, dtype):
    encoder = BertEncoder(config, seed=0, dtype=dtype)

    def pooled(seed):
        return tf.cast(encoder(inputs, training=True, seed=seed)["pooled_output"], tf.float32)

    np.testing.assert_array_equal(pooled(make_seed(1, 2)), pooled(make_seed(1, 2)))
    assert np.abs(pooled(make_seed(1, 2)) - pooled(make_seed(1, 3))).max() > 1e-4
    assert np.abs(pooled(None) - pooled(None)).max() > 1e-4
