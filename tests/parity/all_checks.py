"""Imports every module of checks, so that the registry is full."""

from tests.parity import (  # noqa: F401 (imported for what they register)
    backend_checks,
    beyond_checks,
    corpus_checks,
    family_checks,
    foreign_checks,
    other_checks,
    seq2seq_checks,
    tokenizer_checks,
    training_checks,
    transformers_checks,
)
from tests.parity.results import CHECKS

__all__ = ["CHECKS"]
