"""A second or so of each target of `python -m tests.fuzz`, the same inputs every time."""

import types

import pytest

from tests import flips, fuzz

EXAMPLES = {"model_folder": 5, "huggingface": 6, "google": 5, "keras_hub": 3, "checkpoint": 40,
            "records": 30, "task_files": 60, "corpora": 30, "arrays": 30, "vocabulary": 60,
            "configuration": 150, "server": 80}  # fmt: skip


@pytest.mark.parametrize("target", fuzz.TARGETS, ids=lambda target: target.__name__)
def test_damaged_input_is_refused_in_one_line(target):
    assert fuzz.run(target, EXAMPLES[target.__name__], derandomize=True)


def test_flipped_bits_change_nothing_unsaid():
    counts = flips.count(share=0.04)
    for name, found in counts.items():
        assert not found[flips.FOUND], f"{name}: {dict(found)}"
        assert found[flips.ERROR] or found[flips.FALLBACK], f"{name}: no flip was noticed"
    assert counts["checkpoint"][flips.FALLBACK] > 20


def test_every_target_gets_its_share_of_the_time(monkeypatch):
    def quick(data):
        """Takes a hundredth of a second."""

    def slow(data):
        """Takes a second."""

    clock = [0.0]

    def run(target, examples, derandomize=False):
        clock[0] += examples * (1.0 if target is slow else 0.01)
        return examples

    monkeypatch.setattr(fuzz, "time", types.SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(fuzz, "run", run)
    counts = fuzz.in_turns([quick, slow], minutes=1)
    assert counts["slow"]["seconds"] >= 24 and counts["quick"]["seconds"] >= 24
    assert counts["quick"]["inputs"] > 50 * counts["slow"]["inputs"] > 1000
