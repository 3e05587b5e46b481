"""The hash of places: the same bits everywhere, draws that look like chance to stated bounds."""

import itertools
import math

import numpy as np
import pytest
import tensorflow as tf

from official_bert.backend import place_hash
from official_bert.randomness import dropout, fold_in, make_seed

SHAPES = [(5,), (3, 5, 20), (2, 64), (7, 128), (3, 2, 192), (11, 300)]


def by_hand(shape, seed):
    """Return the draws of `place_hash.draws`, in Python's own integers, place after place."""
    mask = 2**32 - 1

    def mix(x, first, second):
        x = (x + first) & mask
        x = ((x ^ x >> 16) * 0x7FEB352D + second) & mask
        x = (x ^ x >> 17) * 0xED5AD4BB & mask
        x = (x ^ x >> 11) * 0xAC4C1B51 & mask
        x = (x ^ x >> 15) * 0x31848BAB & mask
        return x ^ x >> 14

    first, second = (int(number) & mask for number in seed)
    keys = mix(first, 0x9E3779B1, second), mix(second, 0x85EBCA77, first)
    columns, found = shape[-1], []
    for place in range(math.prod(shape)):
        row, column = divmod(place, columns)
        word = row * (-(-columns // 128) * 64) + column // 128 * 64 + column % 64
        found.append(mix(word, *keys) >> (16 if column % 128 >= 64 else 0) & 0xFFFF)
    return np.reshape(found, shape)


def draws(shape, seed):
    return np.asarray(place_hash.draws(shape, place_hash.keys(tf.constant(seed, tf.int32))))


def signs(shape, seed, rate=0.5):
    """Return +1 for a kept place, -1 for another, of mean 0 and variance 1 at the rate."""
    kept = draws(shape, seed) >= place_hash.threshold(rate)
    return (kept - (1 - rate)) / math.sqrt(rate * (1 - rate))


def correlation(a, b):
    """In standard errors of independent signs."""
    return abs(float((a * b).mean())) * math.sqrt(a.size)


@pytest.mark.parametrize("seed", [(0, 0), (5, 7), (-3, 2**31 - 1)])
def test_draws_are_those_of_python(seed):
    for shape in SHAPES:
        np.testing.assert_array_equal(draws(shape, seed), by_hand(shape, seed))


def test_a_graph_of_unknown_sizes_and_xla_draw_the_same():
    seed = make_seed(3, 4)
    unknown = tf.TensorSpec([None, None, None], tf.float32)
    graph = tf.function(lambda x: dropout(x, 0.1, seed), input_signature=[unknown])
    compiled = tf.function(lambda x: dropout(x, 0.1, seed), jit_compile=True)
    for shape in ((2, 20, 20), (3, 4, 192)):
        expected = dropout(tf.ones(shape), 0.1, seed)
        np.testing.assert_array_equal(graph(tf.ones(shape)), expected)
        np.testing.assert_array_equal(compiled(tf.ones(shape)), expected)


def test_every_level_is_drawn_alike():
    """Chi-square of 2**22 draws over the upper and the lower eight bits, each 255 degrees."""
    found = draws((2**15, 128), (11, 12))
    for byte in (found >> 8, found & 255):
        counts = np.bincount(byte.ravel(), minlength=256)
        chi = float(((counts - found.size / 256) ** 2).sum() / (found.size / 256))
        assert abs(chi - 255) < 6 * math.sqrt(2 * 255)


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_neighbours_rows_and_halves_of_a_word_are_uncorrelated(rate):
    """Each of 2**21 pairs, to six standard errors: 0.004."""
    x = signs((2**14, 128), (21, 22), rate)
    for lag in (1, 2, 3, 4, 8, 16, 32, 63, 64, 65):
        assert correlation(x[:, lag:], x[:, :-lag]) < 6, f"columns {lag} apart"
        assert correlation(x[lag:], x[:-lag]) < 6, f"rows {lag} apart"
    assert np.abs(x.mean(axis=0)).max() < 6 / math.sqrt(x.shape[0])
    assert np.abs(x.mean(axis=1)).max() < 6 / math.sqrt(x.shape[1])


def test_heads_steps_layers_runs_and_replicas_are_uncorrelated():
    heads = signs((64, 12, 32, 32), (5, 6))
    assert correlation(heads[:, 1:], heads[:, :-1]) < 6
    parts = itertools.product((1, 2), (0, 1, 2, 999_999), (0, 1), (0, 1, 2, 4))
    seeds = [np.asarray(fold_in(make_seed(*part), layer)) for *part, layer in parts]
    drawn = np.stack([signs((2**16,), seed) for seed in seeds])
    together = np.abs(np.corrcoef(drawn) - np.eye(len(seeds))) * math.sqrt(2**16)
    assert together.max() < 6


def test_streams_that_overlap_after_a_shift_are_uncorrelated():
    """Two seeds may have first keys that lie near each other; the second keys then tell them apart,
    were it by their highest bit alone."""
    places = tf.range(2**20, dtype=tf.int32)

    def half(keys):
        return np.asarray(place_hash.mix(places, keys)) & 0x8000 == 0

    for bit in (0, 1, 15, 16, 30, 31):
        other = int(np.int32(np.uint32(1 << bit) ^ np.uint32(123456789)))
        a, b = half((1000, 123456789))[7:], half((1007, other))[:-7]
        assert abs(np.mean(a == b) - 0.5) < 6 * 0.5 / math.sqrt(len(a)), f"bit {bit}"
