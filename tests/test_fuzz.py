"""Damaged inputs of every kind: each refused by name, or read right."""

import pytest

from tests import fuzz
from tests.damage import DAMAGES, MISTAKES
from tests.tiny_inputs import INPUTS

# Each has a sibling that always runs.
SLOW = ("keras_hub", "records, dynamic masks", "records, GZIP", "records without a manifest, ")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in INPUTS]
)
def test_every_damage_of_every_file_is_refused_by_name(name):
    given = INPUTS[name]
    damages = DAMAGES | MISTAKES
    if given.slow:
        damages = {kind: damages[kind] for kind in ("half", "a changed bit", "zeros", "noise")}
    for file in given.files:
        refused = {kind for kind in damages if given.check(file, damages[kind], kind in DAMAGES)}
        assert refused >= {"zeros", "noise"} | ({"half"} if not given.halves else set()), file


@pytest.mark.slow
@pytest.mark.parametrize("name", fuzz.TARGETS)
def test_damage_at_random_is_refused_in_one_line(name):
    """The same in every run; `python -m tests.fuzz` goes on."""
    few = name in INPUTS and INPUTS[name].slow
    assert fuzz.run(name, 4 if few else 20, derandomize=True)["inputs"]
