"""Packed and UTF-16 files by their first bytes, and bytes that are not UTF-8."""

import bz2
import gzip
import io
import itertools
import lzma
import os
import tracemalloc
from collections import Counter

import pytest
from corpora import documents
from hypothesis import given, settings
from hypothesis import strategies as st

from data_prep.corpus import packed_files, text_files
from data_prep.corpus.text_files import decode_lines, line_blocks, stretches, text_lines
from data_prep.create_pretraining_data import create
from data_prep.sentences import report, split_files
from data_prep.vocab import count_words
from official_bert.common.errors import UserError

TEXT = "Caf\u00e9 und M\u00fcller\n\nzwei\n" * 2000


def zstandard(data):
    return pytest.importorskip("zstandard").ZstdCompressor().compress(data)


KINDS = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "Zstandard": zstandard,
    "two frames": lambda data: zstandard(data[:9000]) + zstandard(data[9000:]),
    "UTF-16": lambda data: data.decode().encode("utf-16"),
    "UTF-16 without mark": lambda data: data.decode().encode("utf-16-le"),
    "UTF-16 big-endian": lambda data: data.decode().encode("utf-16-be"),
    "UTF-32": lambda data: data.decode().encode("utf-32"),
    "UTF-16 packed": lambda data: gzip.compress(data.decode().encode("utf-16")),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_plain_is_read_as_its_text(tmp_path, kind):
    path = tmp_path / "text.txt"  # the name says nothing
    path.write_bytes(KINDS[kind](TEXT.encode()))
    assert list(text_lines(str(path))) == TEXT.split("\n")[:-1]
    assert stretches(str(path), 1 << 30, 1 << 20) == [(0, None)]
    assert b"".join(line_blocks(str(path))) == TEXT.encode()


@pytest.mark.parametrize("pack", [gzip.compress, bytes], ids=["packed", "plain"])
def test_a_line_of_all_memory_is_refused(write, monkeypatch, pack):
    monkeypatch.setattr(text_files, "_LONGEST_LINE", 1000)
    monkeypatch.setattr(text_files, "_BLOCK_BYTES", 100)
    path = write("a.txt", pack(b"a" * 5000))
    for read in (text_lines, line_blocks):
        with pytest.raises(UserError, match=r"a.txt: it has a line of more than 1,000 bytes"):
            list(read(path))
    assert len(list(text_lines(write("a.txt", pack((b"a" * 900 + b"\n") * 5))))) == 5


def test_a_file_of_zeros_is_no_text(tmp_path):
    (tmp_path / "a.txt").touch()
    os.truncate(tmp_path / "a.txt", 3 << 30)  # as a download begins for which room is kept
    for read in (text_lines, line_blocks):
        with pytest.raises(UserError, match=r"a.txt is full of zeros at its start"):
            list(read(str(tmp_path / "a.txt")))


@pytest.mark.parametrize("kind", ["gzip", "bzip2", "xz", "Zstandard"])
def test_a_packed_file_is_read_in_bounded_pieces(tmp_path, monkeypatch, kind):
    """A few hundred bytes that unpack to many are never in memory as a whole, nor read to the
    end."""
    line = b" " * ((1 << 16) - 1) + b"\n"
    monkeypatch.setattr(packed_files, "_FREE", 1 << 23)
    (tmp_path / "a").write_bytes(KINDS[kind](line * 2000))
    assert (tmp_path / "a").stat().st_size < 200_000
    lines = text_lines(str(tmp_path / "a"))
    tracemalloc.start()
    with pytest.raises(UserError, match="a: unpacked, it is more than 200 times as large"):
        assert sum(map(len, lines)) < 0
    assert tracemalloc.get_traced_memory()[1] < 70_000_000
    tracemalloc.stop()


@pytest.mark.parametrize("kind", ["gzip", "bzip2", "xz", "Zstandard"])
def test_frames_behind_each_other_are_one_file(write, kind):
    pack = KINDS[kind]
    parts = [b"one\n", b"", b"two\n" * 50_000]
    found = list(text_lines(write("a", b"".join(map(pack, parts)))))
    assert found == ["one"] + ["two"] * 50_000
    assert list(text_lines(write("a", pack(b"one\n") + bytes(8)))) == ["one"]
    with pytest.raises(UserError, match=f"a: 10,001 frames hold 0 bytes of {kind}; if that is"):
        list(text_lines(write("a", pack(b"") * 20_000)))
    with pytest.raises(UserError, match=f"a is a damaged or truncated {kind} file"):
        list(text_lines(write("a", pack(b"one\n") + b"something else")))


def test_packed_twice_and_far_from_its_start(write, monkeypatch):
    monkeypatch.setattr(packed_files, "_FREE", 1 << 16)
    lines = [f"{i:07} {i * i}" for i in range(20_000)]
    packed = gzip.compress(gzip.compress("\n".join(lines).encode(), 1), 1)
    assert list(text_lines(write("a.gz", packed))) == lines


def test_what_is_packed_over_and_over_is_refused(write):
    packed = [b"text\n"]
    for _ in range(1000):
        packed.append(gzip.compress(packed[-1]))
    assert list(text_lines(write("a.gz", packed[4]))) == ["text"]
    for content in (packed[5], packed[1000]):
        with pytest.raises(UserError, match="a.gz is packed more than 4 times"):
            list(text_lines(write("a.gz", content)))


def test_words_that_begin_like_a_packed_file_and_archives(write):
    assert list(text_lines(write("a.txt", "BZh 1 is a word\n"))) == ["BZh 1 is a word"]
    with pytest.raises(UserError, match=r"b\.zip is an archive of files; unpack it"):
        list(text_lines(write("b.zip", b"PK\x03\x04 and so on")))


DAMAGED = b"worda wordb.\nwordc \xff\xfe wordd.\nworde\xe9.\n\n" * 30


def test_bytes_that_are_not_utf8(write):
    path = write("a.txt", DAMAGED)
    with pytest.raises(UserError, match="line 2: byte 0xff at column 7 is not UTF-8.*--inval"):
        list(text_lines(path, "error"))
    with pytest.raises(UserError, match="iconv -f CP1252 -t UTF-8$"):
        list(text_lines(path))  # of commands that have no such option
    counts = Counter()
    assert list(text_lines(path, "ignore", counts))[1:3] == ["wordc  wordd.", "worde."]
    assert counts == {"invalid_utf8": 60}
    assert list(text_lines(path, "replace"))[2] == "worde\ufffd."


@pytest.mark.parametrize(
    ("lines", "advice"),
    [
        ("Jos\xe9 B\n\x93visita O\nOslo B\n", "iconv -f CP1252 "),
        ("\x93quoted\x94\n", "iconv -f CP1252 "),
        ("Ole\nGr\xf6\xdfe\n", "iconv -f CP1252 "),
        ("Сад у реки\n\n".encode("cp1251"), "iconv -f ENCODING "),
        ("河边的旧磨坊 mill\n".encode("gb18030"), "iconv -f ENCODING "),
        ("das alte Haus am Fl\x81\xe1chen\n", "iconv -f ENCODING "),  # of DOS
        ("Schöne Grüße, süß\n".encode("mac-roman"), "iconv -f ENCODING "),
        ("un café crème, ça va\n".encode("mac-roman"), "iconv -f ENCODING "),
        ("c\x9cur d\x92\xe9t\xe9\x85 na\xefve \x96 br\xfbl\xe9\n", "iconv -f CP1252 "),
        ("It\x92s \x93fine\x94 \x96 don\x92t\x85\n", "iconv -f CP1252 "),
        ("好吃的汤\n汤\n".encode("utf-16-le"), "iconv -f UTF-16LE "),
        ("好吃的汤\n汤\n".encode("utf-16-be"), "iconv -f UTF-16LE .or BE"),
        ("Größe\nAbc\n".encode() + b"Gr\xf6sse\n", "other letters of the file are; mend the line"),
        (b"Gr\xf6sse\n" + "Größe süß\n".encode(), "other letters of the file are; mend the line"),
    ],
)
def test_the_encoding_is_advised_from_all_bytes(lines, advice):
    content = lines if isinstance(lines, bytes) else lines.encode("latin-1")
    with pytest.raises(UserError, match=advice):
        list(decode_lines(io.BytesIO(content), "a.txt"))


def test_every_command_counts_and_reports_them(tmp_path, write, vocab, capsys):
    path = write("a.txt", DAMAGED)
    counts = split_files(path, tmp_path / "out", layout="articles", invalid_utf8="ignore")
    assert counts["a.txt.gz"]["invalid_utf8"] == 60
    assert "60 lines held bytes that are not UTF-8" in report(counts)
    words = count_words(path, invalid_utf8="ignore")[0]
    assert words["wordd"] == 30 and "60 lines held bytes" in capsys.readouterr().err
    options = {"max_seq_length": 16, "progress": False, "dynamic_masking": True}
    manifests = {
        how: create(path, vocab, str(tmp_path / how), invalid_utf8=how, **options)
        for how in ("replace", "ignore")
    }
    assert all(manifest["counts"]["invalid_utf8"] == 60 for manifest in manifests.values())
    # Either way the tokeniser sees the words around them: U+FFFD is removed from texts.
    assert manifests["replace"]["shards"] == manifests["ignore"]["shards"]
    with pytest.raises(UserError, match="line 2: byte 0xff .* pass --invalid_utf8=replace"):
        create(path, vocab, str(tmp_path / "error"), **options)


# Lines of a file: sentences, blank lines of several kinds, a long document without any.
line = st.sampled_from(["", "", " ", "\t", "\r", "one", "two three", "é" * 9, "word " * 20])
lines = st.lists(line, max_size=60)


@settings(max_examples=300)
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
            path.with_name("part").write_bytes(b"".join(blocks))
            found += documents(str(path.with_name("part")))
    assert found == list(documents(str(path)))


def test_a_large_file_is_cut(write):
    text = b"one\ntwo\n\n" * 500
    path = write("a.txt", text)
    assert len(stretches(path, len(text), 1000)) == len(text) // 1000
    assert stretches(path, len(text), len(text)) == [(0, None)]


def test_a_byte_order_mark_goes_and_a_line_end_comes(write):
    assert list(line_blocks(write("a.txt", b"\xef\xbb\xbfone\ntwo"))) == [b"one\ntwo\n"]


# Anything a stripped, non-empty line can hold: other Unicode separators stay inside a line.
sentences = (
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), min_size=1)
    .map(str.strip)
    .filter(lambda text: text and not text.startswith("\ufeff"))
)


@settings(max_examples=60)
@given(
    corpus=st.lists(st.lists(sentences, min_size=1), min_size=1),
    blank=st.sampled_from(["\n", "\n\n\n", " \t\n", "\r\n"]),
    end=st.sampled_from(["\n", "\r\n", "  \n"]),
    packed=st.booleans(),
)
def test_documents_come_back(tmp_path_factory, corpus, blank, end, packed):
    text = blank.join("".join(line + end for line in document) for document in corpus)
    path = tmp_path_factory.mktemp("corpus") / "file"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    assert list(documents(str(path))) == corpus


def test_reading_streams(write):
    """The first documents arrive before a fault further down the same file is met."""
    path = write("long.txt", b"Good sentence.\n\n" * 200_000 + b"\xff\n")
    assert list(itertools.islice(documents(path), 10)) == [["Good sentence."]] * 10
    with pytest.raises(UserError, match="line 400001"):
        list(documents(path))
