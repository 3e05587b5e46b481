"""A second or so of each target of `python -m tests.fuzz`, the same inputs every time."""

import pytest

from tests import fuzz

EXAMPLES = {"model_folder": 20, "huggingface": 8, "foreign_folder": 8, "checkpoint": 80,
            "records": 40, "task_files": 60, "task_folders": 40, "corpora": 30, "arrays": 40,
            "vocabulary": 60, "configuration": 150, "server": 80}  # fmt: skip


@pytest.mark.parametrize("target", fuzz.TARGETS, ids=lambda target: target.__name__)
def test_damaged_input_is_refused_in_one_line(target):
    assert fuzz.run(target, EXAMPLES[target.__name__], derandomize=True)
