"""Hierarchical k-means by hand."""

import numpy as np

from experiments.beyond.video.visual_words import VisualWords

SIX = np.array([[0], [1], [10], [11], [100], [103]], np.float32)


def test_six_points():
    words = VisualWords(SIX, k=2, depth=2, seed=0)
    # First 0 to 11 and 100 to 103, then each of these again.
    found = words(SIX)
    assert found[0] == found[1] and found[2] == found[3] and len({*found.tolist()}) == 4
    np.testing.assert_allclose(words.centroids[found, 0], [0.5, 0.5, 10.5, 10.5, 100, 103])
    # 56 is nearer to the first step's 101.5 than to its 5.5, and 54 is not that far.
    new = words(np.array([[56], [53], [-7], [101.6]], np.float32))
    np.testing.assert_allclose(words.centroids[new, 0], [100, 10.5, 0.5, 103])


def test_no_word_is_empty():
    words = VisualWords(np.repeat(SIX[:3], 4, axis=0), k=4, depth=3, seed=0)
    assert sorted(words.centroids[:, 0].tolist()) == [0, 1, 10]
    one = VisualWords(SIX[:1], k=12, depth=4, seed=0)
    assert one.centroids.tolist() == [[0]] and one(SIX).tolist() == [0] * 6


def test_the_same_seed_gives_the_same_words():
    points = np.random.default_rng(0).normal(size=(200, 5))
    one, other = (VisualWords(points, k=3, depth=2, seed=7) for _ in range(2))
    np.testing.assert_array_equal(one.centroids, other.centroids)
    np.testing.assert_array_equal(np.unique(one(points)), np.arange(9))
