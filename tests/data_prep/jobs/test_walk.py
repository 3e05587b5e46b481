"""Names that exist are those names, other names are patterns, and each folder is read once."""

import os

import pytest

from data_prep.corpus import input_look
from data_prep.corpus.input_files import expand_inputs
from data_prep.jobs import storage, walk
from data_prep.records import open_records
from official_bert.common.errors import UserError


@pytest.fixture
def corpora(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("corpus1", "corpus[1]", "b*", "bb", "q?", "qq"):
        os.makedirs(f"{name}/deep")
        for path in (f"{name}/x.txt", f"{name}/deep/y.txt", f"{name}/.hidden"):
            with open(path, "w") as file:
                file.write("text\n")
    return tmp_path


@pytest.mark.parametrize("name", ["corpus[1]", "b*", "q?"])
def test_a_folder_that_exists_is_no_pattern(corpora, name):
    below = [f"{name}/deep/y.txt", f"{name}/x.txt"]
    assert expand_inputs(name) == expand_inputs(f"{name}/") == below
    assert expand_inputs(f"{name}/*.txt") == storage.matches(f"{name}/x.txt") == below[1:]
    assert expand_inputs(f"{name}/**/*.txt") == below
    assert storage.matches(str(corpora / name / "*.txt")) == [str(corpora / name / "x.txt")]
    with pytest.raises(UserError, match="holds no records"):
        open_records(name)


def test_patterns(corpora):
    assert walk.matches("corpus*/x.txt") == ["corpus1/x.txt", "corpus[1]/x.txt"]
    deep = [f"{name}/deep/y.txt" for name in ("corpus1", "corpus[1]", "q?", "qq")]
    assert walk.matches("[cq]*/deep/?.txt") == deep
    assert walk.matches("b*b") == [] and walk.matches("b*b", folders=True) == ["bb"]
    assert walk.matches("**/x.txt") == [f"{n}/x.txt" for n in sorted(os.listdir())]
    assert walk.matches("bb/.*") == ["bb/.hidden"] and walk.matches("none/*") == []
    with pytest.raises(UserError, match="no file matches"):
        expand_inputs("nothing[1]")


def test_a_loop_of_links_is_read_once(corpora):
    os.symlink("..", "bb/deep/up")
    os.symlink(".", "bb/itself")
    os.symlink("../qq", "bb/other")
    expected = ["bb/deep/y.txt", "bb/other/deep/y.txt", "bb/other/x.txt", "bb/x.txt"]
    assert expand_inputs("bb") == expand_inputs("bb/**/*.txt") == expected


@pytest.mark.parametrize("target", ["nowhere", "link.txt"])
def test_a_link_that_leads_nowhere_is_refused_where_it_is_read(corpora, target):
    os.symlink(target, "bb/link.txt")
    assert "bb/link.txt" in expand_inputs("bb") and "bb/link.txt" in expand_inputs("bb/*.txt")
    with pytest.raises(UserError, match="bb/link.txt: cannot be read"):
        input_look.look(expand_inputs("bb"))
