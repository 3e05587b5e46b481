"""Philox in numpy: TensorFlow's numbers, bit for bit."""

import numpy as np
import pytest

from data_prep.pretraining.reading import philox

tf = pytest.importorskip("tensorflow")

SEEDS = [(0, 0), (1, 2), (2**62 - 1, 2**40 + 3), (12345, -7)]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_numbers_are_tensorflows(seed):
    floats = tf.random.stateless_uniform([3, 37], seed, alg="philox")
    np.testing.assert_array_equal(philox.uniform((3, 37), seed), floats)
    options = {"minval": None, "maxval": None, "dtype": tf.int64, "alg": "philox"}
    integers = tf.random.stateless_uniform([41], tf.constant(seed, tf.int64), **options)
    np.testing.assert_array_equal(philox.integers(41, seed), integers)
    assert sorted(philox.permutation(1000, seed)) == list(range(1000))


@pytest.mark.parametrize("numbers", [(), (0,), (3, 2), (7, 1, 2**33)])
def test_places_fold_into_seeds_as_in_tensorflow(numbers):
    for seed in (0, 12345, 2**63 + 9):
        folded = tf.constant([seed % 2**62, 0], tf.int64)
        for number in numbers:
            number = tf.cast(number, tf.int64)
            folded = tf.random.experimental.stateless_fold_in(folded, number, alg="philox")
        assert philox.fold(seed, *numbers) == tuple(folded.numpy())
