"""Cases that tests/beyond adds to tables of the core's tests; none where that folder is absent."""

import importlib
from pathlib import Path

import pytest


def added(module: str, name: str, absent):
    """Return an object of a module of tests/beyond, or what stands for it without that folder."""
    if not Path(__file__).with_name("beyond").is_dir():
        return absent
    return getattr(importlib.import_module(f"tests.beyond.{module}"), name)


def names(own, every) -> list:
    """Return names as parameters of a test; those that are not the core's are marked "beyond"."""
    return [name if name in own else pytest.param(name, marks=pytest.mark.beyond) for name in every]
