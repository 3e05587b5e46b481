"""The names and patterns of input files, and every way in which they are refused."""

import gzip
import os
from pathlib import Path

import pytest
from corpora import documents

from data_prep.corpus.input_files import expand_inputs, places_of
from data_prep.jobs import checked_json
from official_bert.common.errors import UserError


def test_remote_paths(tmp_path):
    (tmp_path / "a.txt").write_text("One.\n\nTwo.\n")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"Three.\n"))
    paths = expand_inputs(f"file://{tmp_path}/*")
    assert all(path.startswith("file://") for path in paths)
    assert list(documents(paths)) == [["One."], ["Two."], ["Three."]]
    with pytest.raises(UserError, match="cannot be read"):
        list(documents(f"file://{tmp_path}/missing.txt"))


def test_expand_inputs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("deep/er").mkdir(parents=True)
    Path("empty").mkdir()
    for name in ["b.txt", "a.txt", "odd,[1].txt", "deep/er/c.txt"]:
        Path(name).write_text("x\n")
    assert expand_inputs("b.txt,*.txt") == ["b.txt", "a.txt", "odd,[1].txt"]
    assert expand_inputs("./b.txt,b.txt,deep/../b.txt") == ["./b.txt"]
    os.symlink("deep/er", "link")  # so link/../b.txt is another file
    Path("deep/b.txt").write_text("x\n")
    assert expand_inputs("b.txt,link/../b.txt") == ["b.txt", "link/../b.txt"]
    os.remove("deep/b.txt")
    assert places_of("b.txt,deep, deep/er") == ["deep", "deep/er"]
    assert expand_inputs("odd,[1].txt") == expand_inputs(["odd,[1].txt"]) == ["odd,[1].txt"]
    (tmp_path / " blank ").write_text("x")
    assert expand_inputs(" blank ") == expand_inputs(" blank , blank ") == [" blank "]
    assert expand_inputs("deep/**/*.txt") == ["deep/er/c.txt"]
    for name in [".hidden", "sentences.json", "articles-00000.jsonl.gz", "er/_SUCCESS", "wiki_00"]:
        (Path("deep") / name).write_text("x\n")
    users = ["deep/articles-00000.jsonl.gz", "deep/sentences.json", "deep/wiki_00"]
    assert expand_inputs("deep/*") == users
    assert expand_inputs("deep") == expand_inputs("deep/") == sorted([*users, "deep/er/c.txt"])
    checked_json.write("deep/report.json", {})
    checked_json.write("deep/sentences.json", {}, overwrite=True)
    assert expand_inputs("deep") == ["deep/er/c.txt", "deep/wiki_00"]
    Path("deep/sentences.json").write_text("x\n")
    Path("deep/options.json").write_text("texts of a user\n")
    assert expand_inputs("deep/*") == ["deep/options.json", "deep/sentences.json", "deep/wiki_00"]
    os.remove("deep/options.json")
    checked_json.write("deep/options.json", {})
    found = expand_inputs(["deep/*.json", "deep/report.json"])
    assert found == ["deep/sentences.json", "deep/report.json"]
    for wrong, message in [
        ("*.gz", r"no file matches '\*\.gz'"),
        ("a.txt,none.txt", r"no file matches 'none\.txt'"),
        ("empty", "no file matches 'empty'"),
        ("", "no input files"),
        ([], "no input files"),
    ]:
        with pytest.raises(UserError, match=message):
            expand_inputs(wrong)
