"""What was once done to a user's files: each attack, and that it fails now."""

import multiprocessing
import os
import shutil

import numpy as np
import pytest
import tiny
from test_foreign_files import COMMANDS, encoder, given, predictor  # noqa: F401

import official_bert as ob
from data_prep import sentences
from experiments import predict
from experiments.training import runs
from experiments.training.answers import export_model
from experiments.training.folder.checkpointing import Checkpoints
from experiments.training.folder.run_folder import RunFolder
from experiments.training.settings.config import BertConfig, Phase, PretrainConfig
from official_bert.common import manifests
from official_bert.common.errors import UserError

TOKENIZER = ob.BertTokenizer(tiny.VOCAB)


def test_inputs_as_outputs(tmp_path, given, encoder):  # noqa: F811
    books = tmp_path / "books"
    books.mkdir()
    shutil.copy(given / "a.txt", books / "a.txt")
    ob.save(tmp_path / "model", encoder, TOKENIZER)
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "a.tfrecord").write_text("mine")
    config = PretrainConfig(bert=BertConfig(), phases=(Phase(records=str(tmp_path / "records")),))
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    for attack in (
        lambda: sentences.split_files(f"{books}/*", books, "articles", compress=False),
        lambda: sentences.split_files(str(books), books / "out", "articles"),
        lambda: predict.run("", str(books / "a.txt"), str(books / "a.txt"), progress=False),
        lambda: export_model.check(tmp_path / "model", tmp_path / "model", "onnx", overwrite=True),
        lambda: export_model.check(tmp_path / "model", tmp_path / "model", "saved_model"),
        lambda: export_model.check(tmp_path / "model", tmp_path, "onnx", overwrite=True),
        lambda: runs.pretrain(config, tmp_path / "records", progress=False, overwrite=True),
    ):
        with pytest.raises(UserError, match="input"):
            attack()
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize("name", ["records", "sentences", "wikipedia", "finetuning", "pretraining"])
def test_a_foreign_project_of_the_same_names(name, tmp_path, given, encoder):  # noqa: F811
    """--overwrite, which messages recommend, emptied any folder with an options.json."""
    for path in ("options.json", "config.json", "report.json", "sentences.json", "report.md",
                 "model/weights", "events/diary", "work/thesis.tex"):  # fmt: skip
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("{}")
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    for overwrite in (False, True):
        with pytest.raises(UserError):
            COMMANDS[name](given, tmp_path, overwrite, encoder)
        found = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
        assert found == before


def predicts(given, output, barrier, ended):  # noqa: F811
    barrier.wait()
    try:
        predict.run(str(given / "model"), str(given / "a.txt"), str(output), progress=False)
        ended.put(0)
    except UserError:
        ended.put(2)


def test_many_into_one_file_at_once(tmp_path, given):  # noqa: F811
    processes = multiprocessing.get_context("fork")
    barrier, ended = processes.Barrier(4), processes.Queue()
    started = [
        processes.Process(target=predicts, args=(given, tmp_path / "out.tsv", barrier, ended))
        for _ in range(4)
    ]
    for process in started:
        process.start()
    codes = [ended.get() for _ in started]
    for process in started:
        process.join()
    assert 0 in codes and sorted(os.listdir(tmp_path)) == [manifests.FILE, "out.tsv"]
    assert (tmp_path / "out.tsv").read_text().count("\n") > 10


def test_a_folder_that_links_elsewhere_is_used_there(tmp_path):
    """Checkpoints on another disk: --overwrite empties them of what is ours, and keeps the link."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "mine").write_text("mine")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "checkpoints").symlink_to(tmp_path / "disk")
    config = PretrainConfig(bert=BertConfig(), phases=(Phase(records="x"),))
    folder = RunFolder(tmp_path / "run", config)
    Checkpoints(folder.checkpoints).save(1, {"w": np.ones(2)}, {})
    assert (tmp_path / "disk" / "step-00000001").is_dir()
    RunFolder(tmp_path / "run", config, overwrite=True)
    assert not (tmp_path / "disk" / "step-00000001").exists()
    assert (tmp_path / "disk" / "mine").exists() and folder.checkpoints.is_symlink()


def test_what_was_made_without_manifests_is_adopted_once(tmp_path):
    """A report.md of the user's, beside our config.json, was listed when a table went on."""
    for name in ("report.md", "config.json", "plots/a.svg"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("of an earlier version")
    (tmp_path / "archives").mkdir()
    (tmp_path / "archives" / "mine").write_text("mine")
    manifests.adopt(tmp_path, "plots", "report.md", "results.json", "config.json")
    assert [str(p.relative_to(tmp_path)) for p in manifests.foreign(tmp_path)] == [
        "archives",
        "archives/mine",
    ]
    (tmp_path / "results.json").write_text("mine")
    manifests.adopt(tmp_path, "plots", "report.md", "results.json", "config.json")
    assert not manifests.is_ours(tmp_path / "results.json")
