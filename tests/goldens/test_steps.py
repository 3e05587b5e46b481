"""Models begin and learn as they did."""

import json

import pytest
from tiny_steps import NAMES

from tests.goldens import steps

KNOWN = json.loads(steps.PATH.read_text())


@pytest.mark.parametrize("name", NAMES)
def test_three_steps_are_those_of_earlier_versions(name):
    found = steps.taken(name)
    assert found["variables"] == KNOWN[name]["variables"]
    for what in ("initial", "losses", "trained"):
        assert found[what] == pytest.approx(KNOWN[name][what], rel=1e-5, abs=1e-4)
