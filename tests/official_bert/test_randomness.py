"""Dropout masks: functions of the seed that differ by layer, step and replica."""

import numpy as np
import pytest
import tensorflow as tf

from official_bert import BertEncoder
from official_bert.randomness import dropout, fold_in, make_seed


def test_dropout_keeps_the_rate_and_the_mean():
    x = tf.ones([1000, 1001])
    dropped = dropout(x, 0.1, make_seed(1, 0)).numpy()
    kept = dropped != 0
    # Ten standard errors of a Bernoulli mean over a million draws.
    assert abs(kept.mean() - 0.9) < 10 * np.sqrt(0.09 / x.shape.num_elements())
    np.testing.assert_allclose(dropped[kept], 1 / 0.9, rtol=1e-4)
    rows, columns = kept.mean(0), kept.mean(1)
    assert rows.std() < 0.011 and columns.std() < 0.011  # sqrt(0.09 / 1000) = 0.0095


def test_dropout_differs_by_run_step_replica_and_layer():
    seeds = [
        make_seed(run, step, replica) for run in (1, 2) for step in (0, 1) for replica in (0, 1)
    ]
    seeds += [fold_in(seed, layer) for seed in seeds for layer in (1, 2)]
    masks = {dropout(tf.ones([512]), 0.5, seed).numpy().tobytes() for seed in seeds}
    assert len(masks) == len(seeds)


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
