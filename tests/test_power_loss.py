"""After a kill or a loss of power at any point: the old state or the new one, never a mixture."""

import json
import os

import keras
import numpy as np
import pytest
from power_loss import Recorder
from tiny import CONFIG, VOCAB

import official_bert as ob
from data_prep.create_pretraining_data import create
from data_prep.jobs import checked_json
from data_prep.jobs.locks import LOCK_FILE
from experiments.tables.run import pool as statuses
from experiments.training.folder.checkpointing import Checkpoints
from official_bert.common import files, system


@pytest.fixture(
    params=[True, pytest.param(False, marks=pytest.mark.slow)], ids=["renameat2", "older systems"]
)
def both_systems(request, monkeypatch):
    """Run once with a system that renames without replacing and once with one that cannot."""
    if not request.param:
        monkeypatch.setattr(system, "_renameat2", lambda: None)
    return request.param


@pytest.fixture
def root(tmp_path):
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def contents(folder):
    """Return the files of a folder but for its lock, which says when it was held."""
    paths = (path for path in folder.iterdir() if path.name != LOCK_FILE)
    return {path.name: path.read_bytes() for path in paths}


def test_the_recorder_sees_what_is_not_synced(root, monkeypatch):
    (root / "file").write_text("old")
    recorder = Recorder(root)
    with recorder.recording(monkeypatch):
        (root / "new").write_text("new!")
        (root / "new").rename(root / "file")
    found = {content for state in recorder.states for _, content in state}
    assert found == {b"old", b"new!", b"ne", b""}


def test_files(root, monkeypatch):
    files.write_text(root / "file", "old")
    recorder = Recorder(root)
    with recorder.recording(monkeypatch), files.atomic_write(root / "file", own=True) as file:
        file.write("new")
    for state, where in recorder.states.items():
        assert dict(state)["file"] in (b"old", b"new"), where
    assert recorder.on_disk["file"] == b"new"


def test_an_output_that_is_renamed(root, monkeypatch, both_systems):
    files.write_text(root / "file", "old")
    recorder = Recorder(root)
    with recorder.recording(monkeypatch), files.atomic_write(root / "file", overwrite=True) as file:
        file.write("new")
    seen = set()
    for state, where in recorder.states.items():
        found = tuple(dict(state).get(name) for name in ("file", "file.~1~"))
        seen.add(found)
        assert found[0] in (None, b"old", b"new") and found[1] in (None, b"old"), where
        assert b"old" in found, where
    assert seen >= {(b"old", None), (None, b"old"), (b"new", b"old")}
    assert recorder.on_disk["file"] == b"new" and recorder.on_disk["file.~1~"] == b"old"


def test_a_folder_that_a_command_replaces(root, monkeypatch, both_systems):
    def make(text):
        with files.atomic_folder(root / "folder", own=True) as folder:
            files.write_text(folder / "file", text)

    make("old")
    recorder = Recorder(root)
    with recorder.recording(monkeypatch):
        make("new")
    found = {dict(state).get("folder/file") for state in recorder.states}
    # Without renameat2 there is a moment between two renames.
    assert found == {b"old", b"new"} | ({None} if not both_systems else set())
    assert recorder.on_disk["folder/file"] == b"new"


def test_new_folders_above_a_file_are_synced(root, monkeypatch):
    recorder = Recorder(root)
    with recorder.recording(monkeypatch), files.atomic_write(root / "a" / "b" / "file") as file:
        file.write("new")
    assert recorder.on_disk["a/b/file"] == b"new"


def test_model_folders(root, tmp_path, monkeypatch, both_systems):
    path, tokenizer = root / "model", ob.BertTokenizer(VOCAB)
    ob.save(tmp_path / "new", ob.BertEncoder(CONFIG, seed=2), tokenizer)
    ob.save(path, ob.BertEncoder(CONFIG, seed=1), tokenizer)
    old, new = contents(path), contents(tmp_path / "new")
    recorder = Recorder(root)
    with recorder.recording(monkeypatch):
        ob.save(path, ob.BertEncoder(CONFIG, seed=2), tokenizer, overwrite=True)
    found = []
    for state, where in recorder.states.items():
        recorder.restore(state)
        whole = {p.name: contents(p) for p in root.iterdir() if p.name[0] != "."}
        assert old in whole.values() and whole.get("model") in (old, new, None), where
        found.append(whole.get("model") == new)
    print(f"model folders: {recorder.points} points, {len(found)} states")
    assert recorder.points > 15 and set(found) == {True, False}
    assert recorder.on_disk["model/vocab.txt"] == new["vocab.txt"]
    ob.load(path)
    keras.utils.clear_session()


def test_checkpoints(root, monkeypatch, both_systems):
    checkpoints = Checkpoints(root / "checkpoints", keep=1)
    recorder = Recorder(root)
    saved = [0]
    with recorder.recording(monkeypatch):
        for step in (1, 2, 3, 4):
            checkpoints.save(step, {"w": np.full(5, step)}, {"note": step})
            saved.append(step)
    assert sorted(checkpoints.steps()) == [4]
    reached = []
    for state, where in recorder.states.items():
        recorder.restore(state)
        found = checkpoints.load_newest()
        step = 0 if found is None else found[1]["step"]
        if found is not None:
            assert found[0]["w"].tolist() == [step] * 5 and found[1]["note"] == step, where
        reached.append(step)
    # The states come in the order of the calls: nothing that was saved is lost later.
    print(f"checkpoints: {recorder.points} points, {len(reached)} states")
    assert set(reached) == {0, 1, 2, 3, 4} and recorder.points > 30
    for earlier, later in zip(reached, reached[4:], strict=False):
        assert later >= earlier - 1
    assert recorder.on_disk["checkpoints/step-00000004/state.json"]


def test_a_damaged_checkpoint_is_written_again(root, monkeypatch):
    checkpoints = Checkpoints(root / "checkpoints", keep=2)
    for step in (1, 2):
        checkpoints.save(step, {"w": np.full(5, step)}, {})
    (root / "checkpoints" / "step-00000002" / "arrays.npz").write_bytes(b"damaged")
    recorder = Recorder(root)
    with recorder.recording(monkeypatch):
        checkpoints.save(2, {"w": np.full(5, 2)}, {})
    reached = []
    for state in recorder.states:
        recorder.restore(state)
        reached.append(checkpoints.load_newest()[1]["step"])
    assert set(reached) == {1, 2} and recorder.on_disk["checkpoints/step-00000002/state.json"]


def test_cells_of_a_table(root, monkeypatch):
    monkeypatch.setattr(statuses.provenance, "here", lambda: {"code": "one"})
    folder = root / "cell"
    recorder = Recorder(root)
    with recorder.recording(monkeypatch):
        folder.mkdir()
        status = statuses.run_cell(lambda *_: {"score": 0.5}, "fake", {}, folder)
    assert status.result["score"] == 0.5 and status.provenance == [{"code": "one"}]
    found = []
    for state in recorder.states:
        recorder.restore(state)
        found.append(statuses.read_status(folder))
        assert found[-1] in (None, status)
    print(f"cells: {recorder.points} points, {len(found)} states")
    assert None in found and status in found


def test_data_creation(root, tmp_path, monkeypatch):
    (tmp_path / "vocab.txt").write_text("\n".join(VOCAB) + "\n")
    text = "\n\n".join("a b c\nd e a b\nc c" for _ in range(4))
    (tmp_path / "a.txt").write_text(text + "\n")
    output = root / "records"

    def make():
        options = {"max_seq_length": 16, "max_predictions_per_seq": 2, "dupe_factor": 1}
        paths = str(tmp_path / "a.txt"), str(tmp_path / "vocab.txt"), str(output)
        create(*paths, num_workers=1, progress=False, **options)
        return contents(output)

    recorder = Recorder(root)
    with recorder.recording(monkeypatch):
        whole = make()
    assert not (output / "work").exists() and json.loads(whole["manifest.json"])["shards"]
    finished = 0
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # the repetitions need not last
    for index, (state, where) in enumerate(recorder.states.items()):
        recorder.restore(state)
        path = output / "manifest.json"
        if path.exists():  # who sees the manifest sees all of the records
            checked_json.read(str(path))
            assert whole.items() <= contents_of_files(output).items(), where
            finished += 1
        if index % 4 == 0:  # all of them take ten seconds
            assert make() == whole, where
    print(f"data creation: {recorder.points} points, {len(recorder.states)} states")
    assert recorder.points > 80 and finished > 5


def contents_of_files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
