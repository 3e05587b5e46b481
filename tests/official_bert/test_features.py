"""The layer combinations of Table 7."""

import keras
import numpy as np
import pytest

from official_bert import UserError
from official_bert.features import COMBINATIONS, LayerCombination, select_layers

STATES = [keras.ops.full([2, 3, 4], float(i)) for i in range(13)]


@pytest.mark.parametrize(
    "combination, expected",
    [
        ("embeddings", 0.0),
        ("second_to_last", 11.0),
        ("last", 12.0),
        ("weighted_sum_last_four", 10.5),
        ("weighted_sum_all", 6.5),
        ("elmo", 6.0),
    ],
)
def test_which_layers_are_read(combination, expected):
    states = select_layers(STATES, combination)
    joined = LayerCombination(combination, len(states))(states)
    np.testing.assert_allclose(joined, np.full([2, 3, 4], expected), rtol=1e-6)


def test_concatenation_of_the_last_four():
    states = select_layers(STATES, "concat_last_four")
    joined = np.asarray(LayerCombination("concat_last_four", 4)(states))
    assert joined.shape == (2, 3, 16)
    np.testing.assert_array_equal(joined[0, 0, ::4], [9, 10, 11, 12])


def test_only_the_weighted_sums_learn():
    for combination, (_, join) in COMBINATIONS.items():
        layer = LayerCombination(combination, 4)
        assert bool(layer.trainable_variables) == (join == "weighted_sum")


def test_errors():
    with pytest.raises(UserError, match="middle"):
        select_layers(STATES, "middle")
    with pytest.raises(UserError, match="the encoder has 2"):
        select_layers(STATES[:3], "concat_last_four")
