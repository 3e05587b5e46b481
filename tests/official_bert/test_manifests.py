"""The manifest of a folder: what is ours there, whatever its names and whatever happened to it."""

import os

import pytest

from official_bert.common import files, manifests
from official_bert.common.claims import claim
from official_bert.common.errors import UserError
from official_bert.common.files import atomic_folder, atomic_write, write_text


def listed(folder):
    return sorted(name for name in os.listdir(folder) if name != manifests.FILE)


def test_names_that_look_like_leftovers_stay(tmp_path):
    names = [".bashrc.old", ".env.tmp", ".backup.tmp/file", ".old.old/file"]
    number = "0123456789abcdef"
    names += [f".{number}.01234567.tmp", f".b.{number}.tmp/file", f".c.{number}.old/file"]
    for path in map(tmp_path.joinpath, names):
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    write_text(tmp_path / "ours", "ours")
    with atomic_folder(tmp_path / "model"):
        pass
    manifests.clean(tmp_path)
    assert all(tmp_path.joinpath(name).read_text() == "mine" for name in names)


def test_a_folder_goes_but_for_what_is_foreign(tmp_path):
    folder = tmp_path / "run"
    write_text(folder / "plots" / "a.svg", "ours")
    write_text(folder / "plots" / "b.svg", "ours")
    write_text(folder / "events" / "x", "ours")
    (folder / "plots" / "mine.svg").write_text("mine")
    for name in ("plots", "events", "mine"):
        manifests.remove(folder / name)
    assert listed(folder) == ["plots"] and listed(folder / "plots") == ["mine.svg"]
    with pytest.raises(UserError, match="did not write it"):
        write_text(folder / "plots" / "mine.svg", "new")


@pytest.mark.parametrize(
    "content", ["# notes of mine", "\x00\xff", manifests._TITLE.decode()[:40] + "x"]
)
def test_a_foreign_file_under_the_manifests_name_is_refused(tmp_path, content):
    path = tmp_path / manifests.FILE
    path.write_text(content)
    with pytest.raises(UserError, match="was not written by this project"):
        write_text(tmp_path / "file", "new")
    assert path.read_text() == content and os.listdir(tmp_path) == [manifests.FILE]
    path.unlink()
    (tmp_path / "mine").write_text("mine")
    path.symlink_to(tmp_path / "mine")
    with pytest.raises(UserError, match="was not written by this project"):
        write_text(tmp_path / "file", "new")
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_manifest_that_was_cut_off_goes_on(tmp_path):
    write_text(tmp_path / "one", "ours")
    whole = (tmp_path / manifests.FILE).read_bytes()
    for size in range(len(whole)):
        (tmp_path / manifests.FILE).write_bytes(whole[:size])
        write_text(tmp_path / f"{size}", "ours")
        write_text(tmp_path / f"{size}", "ours again")


def test_a_manifest_that_was_only_begun_keeps_no_folder(tmp_path):
    """As a full disk left it in a run's folder, which --overwrite could not begin again then."""
    for size in (0, 10, 90):
        with atomic_folder(tmp_path / "model") as folder:
            (folder / "inner").mkdir()
        begun = (tmp_path / "model" / manifests.FILE).read_bytes()[:size]
        (tmp_path / "model" / "inner" / manifests.FILE).write_bytes(begun)
        with atomic_folder(tmp_path / "model", overwrite=True) as folder:
            (folder / "inner").mkdir()
        files.make_folder(tmp_path / "run" / "inner")
        (tmp_path / "run" / "inner" / manifests.FILE).write_bytes(begun)
        manifests.remove(tmp_path / "run" / "inner", tmp_path / "model" / "inner")
        assert listed(tmp_path / "run") == listed(tmp_path / "model") == []
        (tmp_path / "model" / manifests.FILE).unlink()


def test_a_manifest_larger_than_any_of_ours_says_nothing(tmp_path):
    write_text(tmp_path / "one", "ours")
    with open(tmp_path / manifests.FILE, "r+b") as file:
        file.truncate(1 << 30)
    with pytest.raises(UserError, match="did not write it"):
        write_text(tmp_path / "one", "new")
    with pytest.raises(RuntimeError), atomic_write(tmp_path / "two"):
        raise RuntimeError
    assert (tmp_path / "one").read_text() == "ours" and listed(tmp_path) == ["one"]


@pytest.mark.parametrize(
    "name", ["a\nb", "ä", "[x]*?", " ", "-", '"', "\\", "\udcff", "+ x", "b" * 200]
)
def test_any_name(tmp_path, name):
    for text in ("one", "two"):
        write_text(tmp_path / name, text)
    with atomic_folder(tmp_path / f"{name}f"):
        pass
    manifests.remove(tmp_path / name)
    assert listed(tmp_path) == [f"{name}f"]
    with atomic_folder(tmp_path / f"{name}f", overwrite=True):
        pass


def test_the_cost_of_a_manifest_grows_with_its_files(tmp_path, monkeypatch):
    """Not with their square: who writes one of 10,000 shards does not read of the others."""
    parsed, parse, paths = [], manifests._parse, [tmp_path / f"{i}" for i in range(60)]
    monkeypatch.setattr(manifests, "_parse", lambda c: parsed.append(len(c)) or parse(c))
    for path in paths:
        write_text(path, "new")
    assert len(parsed) >= 60 and max(parsed) <= manifests._FIRST_LINE
    parsed.clear()
    claim(files=paths)
    for path in paths:
        write_text(path, "again")
    assert sum(size > manifests._FIRST_LINE for size in parsed) == 1
    parsed.clear()
    manifests.remove(*paths)
    assert sum(size > manifests._FIRST_LINE for size in parsed) <= 2 and listed(tmp_path) == []
