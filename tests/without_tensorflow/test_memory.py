"""Memory of a compiled step: computed, in the committed results, and in a program of today."""

import json

import pytest

from benchmarks import memory
from experiments.training.step import jax_strategies
from official_bert.config import named_config

pytestmark = pytest.mark.timeout(1800)


def test_small_sizes_are_as_computed():
    known = json.loads(memory.RESULTS.read_text())["tiny 128"]
    found = memory.measured(named_config("tiny"), 128)
    for part, count in memory.computed(named_config("tiny"), 128).items():
        assert found[part] == pytest.approx(count, rel=0.1), part
        assert found[part] == pytest.approx(known[part], rel=0.1), part


def test_divided_weights_take_their_part_on_each_device():
    eight = jax_strategies.get_strategy("mirrored", "weights")
    bert = named_config("tiny", vocab_size=8000)
    whole, part = memory.computed(bert, 16), memory.measured(bert, 16, eight)
    assert part["arguments"] == pytest.approx(whole["arguments"] / 8, rel=0.1)


@pytest.mark.slow
def test_micro_batches_take_the_memory_of_one():
    bert = named_config("tiny", vocab_size=8000)
    one, four = (memory.measured(bert, 64, parts=parts) for parts in (1, 4))
    gradients = 4 * memory.parameters(bert)  # their sum
    assert four["temporary"] <= 1.1 * (one["temporary"] + gradients)
