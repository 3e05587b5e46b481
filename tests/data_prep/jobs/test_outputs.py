"""Outputs of commands are looked at before any work, and stand apart from inputs."""

import os
import stat

import pytest

from data_prep.jobs.locks import LOCK_FILE
from data_prep.jobs.outputs import check_outputs, members
from official_bert.common.errors import UserError
from official_bert.common.files import write_text


def test_outputs_are_looked_at_before_any_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_outputs(outputs=["out.tsv", "-", "", "/dev/null", "/dev/stdout"])
    write_text("out.tsv", "one")
    check_outputs(outputs=["out.tsv"], overwrite=True)
    with pytest.raises(UserError, match="^out.tsv exists already; .* or pass --overwrite, which"):
        check_outputs(outputs=["out.tsv"])
    with pytest.raises(UserError, match="^new.txt/ names a folder, and a file is written"):
        check_outputs(files=["new.txt/"])
    check_outputs(files=["new.txt"], outputs=["new/"])
    assert os.listdir() == ["out.tsv"]
    (tmp_path / "sub").mkdir()
    check_outputs(outputs=["sub"])  # an empty folder
    monkeypatch.chdir(tmp_path / "sub")
    for path in ("..", tmp_path):
        with pytest.raises(UserError, match="is the folder that this command works in, or holds"):
            check_outputs(outputs=[path], overwrite=True)
    if os.geteuid() == 0:
        os.mknod("disk", stat.S_IFBLK | 0o600, os.makedev(7, 250))
        with pytest.raises(UserError, match="disk is a device"):
            check_outputs(outputs=["disk"], overwrite=True)


@pytest.mark.parametrize(
    ("source", "output", "kind"),
    [
        ("a.txt", "a.txt", "outputs"),
        ("a.txt", "link.txt", "outputs"),
        ("a.txt", "hard.txt", "outputs"),
        ("a.txt", "sub/../a.txt", "outputs"),
        ("books", "books", "work"),
        ("books/b.txt", "books", "work"),
        ("books", "books/out", "work"),
        ("books", "linked", "work"),
        ("linked", "books/out", "outputs"),
        ("books", "books/b.txt", "outputs"),
        ("books/b.txt", ".", "work"),
        ("*.txt", "new.txt", "outputs"),  # would be read the next time
        ("books/**/*", "books/deep/er.txt", "outputs"),
        ("linked/*", "books/new.txt", "outputs"),
    ],
)
def test_outputs_stand_apart_from_inputs(tmp_path, monkeypatch, source, output, kind):
    monkeypatch.chdir(tmp_path)
    for folder in ("books", "sub"):
        os.mkdir(folder)
    for name in ("a.txt", "books/b.txt"):
        with open(name, "w") as file:
            file.write("mine")
    os.symlink("a.txt", "link.txt")
    os.symlink("books", "linked")
    os.link("a.txt", "hard.txt")
    with pytest.raises(UserError, match=r"input"):
        check_outputs([source], **{kind: [output]}, overwrite=True)
    inputs = ["a.txt", "", "-", "gs://x/y", "no_such_model"]
    check_outputs(inputs, outputs=["new.txt", "-", ""], work=["sub"])
    check_outputs(["*.txt", "books/*"], outputs=["new.tsv", "books/deep/er.txt"], work=["sub"])
    with pytest.raises(UserError, match="input"):
        check_outputs(["gs://x/y/z"], work=["gs://x/y"])
    with pytest.raises(UserError, match="this project keeps"):
        check_outputs(outputs=[f"sub/{LOCK_FILE}/"])


def test_a_link_to_itself_is_no_member(tmp_path):
    """It ended in an OSError; who reads it says that there is no such file."""
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "file").touch()
    assert members(tmp_path) == [str(tmp_path / "file")]
