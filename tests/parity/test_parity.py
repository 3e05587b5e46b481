"""Every check of this folder, as a test."""

import os
from pathlib import Path

import pytest

from tests.parity.all_checks import BEYOND, CHECKS
from tests.parity.results import why_not


def _marked(name):
    beyond = CHECKS[name].run.__module__ in BEYOND
    return pytest.param(name, marks=[pytest.mark.beyond] * beyond)


@pytest.mark.parity
@pytest.mark.timeout(7200)  # the slow ones, on two busy cores
@pytest.mark.parametrize("name", [*map(_marked, sorted(CHECKS))])
def test_equal(name, capsys):
    one = CHECKS[name]
    data = os.environ.get("BERT_DATA_DIR")
    data_dir = Path(data) if data else None
    if reason := why_not(one, data_dir):
        pytest.skip(reason)
    results = [*(one.run(data_dir) if one.needs_data else one.run())]
    assert results
    for result in results:
        assert result.holds, f"{result.what}: {result.figure} against a bound of {result.bound}"
