"""The vocabulary of `corpora`, and blocks so small that its corpora have several."""

import pytest
from corpora import write_vocabulary

from data_prep.pretraining import token_store


@pytest.fixture
def vocab(tmp_path):
    return write_vocabulary(tmp_path / "vocab.txt")


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(token_store, "BLOCK_TOKENS", 20_000)
