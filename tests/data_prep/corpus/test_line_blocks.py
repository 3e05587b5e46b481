"""Stretches of a file hold its documents once, whole; blocks are whole lines."""

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_prep.corpus import text_files
from data_prep.corpus.documents import documents

# Lines of a file: sentences, blank lines of several kinds, a long document without any.
lines = st.lists(
    st.sampled_from(["", "", " ", "\t", "\r", "one", "two three", "é" * 9, "word " * 20]),
    max_size=60,
)


def of(blocks):
    """The documents of blocks of lines."""
    found = [[]]
    for line in b"".join(blocks).decode().split("\n"):
        found.append([]) if not line.strip() else found[-1].append(line.strip())
    return [document for document in found if document]


@settings(max_examples=300, deadline=None)
@given(lines, st.integers(1, 40), st.integers(1, 60), st.booleans())
def test_every_document_is_in_one_stretch(tmp_path_factory, lines, wanted, block, ends):
    path = tmp_path_factory.mktemp("stretch") / "a.txt"
    path.write_bytes(("\n".join(lines) + "\n" * ends).encode())
    parts = text_files.stretches(str(path), path.stat().st_size, wanted)
    found = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(text_files, "_BLOCK_BYTES", block)
        for start, stop in parts:
            blocks = list(text_files.line_blocks(str(path), start, stop))
            assert all(data.endswith(b"\n") for data in blocks)
            found += of(blocks)
    expected = list(documents(str(path))) if any(line.strip() for line in lines) else []
    assert found == expected


def test_a_large_file_is_cut_and_a_gzip_file_is_not(tmp_path):
    text = b"one\ntwo\n\n" * 500
    (tmp_path / "a.txt").write_bytes(text)
    (tmp_path / "a.gz").write_bytes(gzip.compress(text, compresslevel=0))
    assert len(text_files.stretches(str(tmp_path / "a.txt"), len(text), 1000)) == len(text) // 1000
    assert text_files.stretches(str(tmp_path / "a.txt"), len(text), len(text)) == [(0, None)]
    assert text_files.stretches(str(tmp_path / "a.gz"), 5000, 1000) == [(0, None)]
    assert b"".join(text_files.line_blocks(str(tmp_path / "a.gz"))) == text


def test_a_byte_order_mark_goes_and_a_line_end_comes(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\ntwo")
    assert list(text_files.line_blocks(str(tmp_path / "a.txt"))) == [b"one\ntwo\n"]
