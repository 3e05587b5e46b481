"""The vocabulary of `corpora`, blocks so small that its corpora have several, files of a test."""

import pytest
from corpora import write_vocabulary

from data_prep.pretraining import token_store


@pytest.fixture
def vocab(tmp_path):
    return write_vocabulary(tmp_path / "vocab.txt")


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(token_store, "BLOCK_TOKENS", 20_000)


@pytest.fixture
def write(tmp_path):
    """Return write(name, text or bytes) -> path of the new file."""

    def write_file(name: str, content) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return str(path)

    return write_file
