"""Imports every module of checks, so that the registry is full."""

from tests import guests
from tests.parity import (  # noqa: F401 (imported for what they register)
    backend_checks,
    corpus_checks,
    foreign_checks,
    other_checks,
    tokenizer_checks,
    training_checks,
    transformers_checks,
)
from tests.parity.results import CHECKS

BEYOND = guests.added("parity", "MODULES", frozenset())
__all__ = ["BEYOND", "CHECKS"]
