"""Examples in docstrings are right."""

import doctest
import importlib

import pytest

MODULES = ["byte_pair.tokenizer", "gpt.word_ends", "common.words"]


@pytest.mark.parametrize("module", MODULES)
def test_docstrings(module):
    failed, tried = doctest.testmod(importlib.import_module(f"experiments.beyond.{module}"))
    assert tried and not failed
