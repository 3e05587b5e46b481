"""Reading documents: what a file means, and every way in which it is refused."""

import gzip
import itertools
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_prep.corpus.documents import documents, expand_inputs, places_of
from data_prep.jobs import storage
from official_bert.common.errors import UserError

# Anything a stripped, non-empty line can hold: other Unicode separators stay inside a line.
sentences = (
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), min_size=1)
    .map(str.strip)
    .filter(lambda text: text and not text.startswith("\ufeff"))
)


@settings(max_examples=60, deadline=None)
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


def test_files_end_documents_and_blank_files_are_skipped(tmp_path):
    (tmp_path / "a.txt").write_text("One.\nTwo.\n\nThree.")
    (tmp_path / "b.txt").write_text("\n\n")
    (tmp_path / "c.txt").write_bytes(b"\xef\xbb\xbfFour.\r\n")
    paths = expand_inputs(str(tmp_path / "*.txt"))
    assert list(documents(paths)) == [["One.", "Two."], ["Three."], ["Four."]]


def test_reading_streams(tmp_path):
    """The first documents arrive before a fault further down the same file is met."""
    path = tmp_path / "long.txt"
    path.write_bytes(b"Good sentence.\n\n" * 200_000 + b"\xff\n")
    first = list(itertools.islice(documents(str(path)), 10))
    assert first == [["Good sentence."]] * 10
    with pytest.raises(UserError, match="line 400001"):
        list(documents(str(path)))


def test_remote_paths(tmp_path):
    (tmp_path / "a.txt").write_text("One.\n\nTwo.\n")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"Three.\n"))
    paths = expand_inputs(f"file://{tmp_path}/*")
    assert all(path.startswith("file://") for path in paths)
    assert list(documents(paths)) == [["One."], ["Two."], ["Three."]]
    with pytest.raises(UserError, match="cannot be read"):
        list(documents(f"file://{tmp_path}/missing.txt"))


def test_missing_empty_and_folder_inputs(tmp_path):
    empty = tmp_path / "empty.txt"
    empty.write_text("\n \n")
    with pytest.raises(UserError, match=r"nowhere\.txt: cannot be read .No such file"):
        list(documents(str(tmp_path / "nowhere.txt")))
    with pytest.raises(UserError, match=r"no text in the input: .*empty\.txt"):
        list(documents(str(empty)))
    with pytest.raises(UserError, match="but a folder"):
        list(documents(str(tmp_path)))
    with pytest.raises(UserError, match="no input files"):
        list(documents([]))


def test_expand_inputs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("deep/er").mkdir(parents=True)
    Path("empty").mkdir()
    for name in ["b.txt", "a.txt", "odd,[1].txt", "deep/er/c.txt"]:
        Path(name).write_text("x\n")
    assert expand_inputs("b.txt,*.txt") == ["b.txt", "a.txt", "odd,[1].txt"]
    assert expand_inputs(["odd,[1].txt"]) == ["odd,[1].txt"]
    assert places_of("b.txt,deep, deep/er") == ["deep", "deep/er"]
    assert expand_inputs("odd,[1].txt") == ["odd,[1].txt"]
    (tmp_path / " blank ").write_text("x")
    assert expand_inputs(" blank ") == expand_inputs(" blank , blank ") == [" blank "]
    assert expand_inputs("deep/**/*.txt") == ["deep/er/c.txt"]
    for name in [".hidden", "sentences.json", "articles-00000.jsonl.gz", "er/_SUCCESS", "wiki_00"]:
        (Path("deep") / name).write_text("x\n")
    assert expand_inputs("deep") == expand_inputs("deep/") == ["deep/er/c.txt", "deep/wiki_00"]
    storage.write_json("deep/report.json", {})
    Path("deep/options.json").write_text("texts of a user\n")
    assert expand_inputs("deep/*") == ["deep/options.json", "deep/sentences.json", "deep/wiki_00"]
    os.remove("deep/options.json")
    storage.write_json("deep/options.json", {})
    assert expand_inputs(["deep/*.json", "deep/report.json"]) == [
        "deep/sentences.json",
        "deep/report.json",
    ]
    for wrong, message in [
        ("*.gz", r"no file matches '\*\.gz'"),
        ("a.txt,none.txt", r"no file matches 'none\.txt'"),
        ("empty", "no file matches 'empty'"),
        ("", "no input files"),
        ([], "no input files"),
    ]:
        with pytest.raises(UserError, match=message):
            expand_inputs(wrong)
