"""Outputs that remember their options."""

import os

import pytest

from data_prep.jobs import checked_json
from data_prep.jobs.locks import LOCK_FILE
from data_prep.jobs.output_folder import claim_folder, earlier, locked
from official_bert.common.errors import UserError
from official_bert.common.files import write_text

OPTIONS = {"length": 4, "files": ["a", "b"]}


def test_what_an_earlier_run_left(tmp_path):
    path = str(tmp_path / "record.json")
    assert earlier(path, OPTIONS, "the corpus") is None
    checked_json.write(path, {"options": OPTIONS, "done": 3})
    assert earlier(path, OPTIONS, "the corpus", "options")["done"] == 3
    other = OPTIONS | {"files": ["a", "c"], "new": True}
    told = "files.1: was b, now c; new: was absent, now True. Choose another output or pass --over"
    with pytest.raises(UserError, match=f"the corpus was made with other options: {told}"):
        earlier(path, other, "the corpus", "options")
    assert earlier(path, other, "the corpus", "options", overwrite=True) is None


@pytest.mark.parametrize("content", ["{", "[]", "{}", "3", "\xff"])
def test_a_damaged_record(tmp_path, content):
    path = tmp_path / "record.json"
    path.write_text(content, encoding="latin-1")
    with pytest.raises(UserError, match=r"record\.json is damaged"):
        earlier(str(path), OPTIONS, "the corpus", "options")
    assert earlier(str(path), OPTIONS, "the corpus", "options", overwrite=True) is None


def test_folders_are_begun_continued_and_replaced(tmp_path):
    folder = tmp_path / "out"
    claim_folder(str(folder), OPTIONS, False, "corpus")
    write_text(folder / "part", "made")
    (folder / "diary.txt").write_text("mine")
    claim_folder(str(folder), OPTIONS, True, "corpus")
    assert (folder / "part").exists()  # the same options: nothing to replace
    with pytest.raises(UserError, match="the corpus in .*out was made with other options: length"):
        claim_folder(str(folder), OPTIONS | {"length": 5}, False, "corpus")
    with locked(str(folder)) as lock:
        claim_folder(str(folder), OPTIONS | {"length": 5}, True, "corpus", lock)
        (folder / "part").write_text("made again")
    kept = [LOCK_FILE, "diary.txt", "options.json", "part"]
    assert sorted(os.listdir(tmp_path / "out.~1~")) == kept
    assert checked_json.read(str(folder / "options.json"))["length"] == 5
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "diary.txt").write_text("mine")
    with pytest.raises(UserError, match="diary.txt is in the way: .* has no options.json"):
        claim_folder(str(tmp_path / "else"), OPTIONS, False, "corpus")
    claim_folder(str(tmp_path / "else"), OPTIONS, True, "corpus")
    assert os.listdir(tmp_path / "else.~1~") == ["diary.txt"]
    assert os.listdir(tmp_path / "else") == ["options.json"]
