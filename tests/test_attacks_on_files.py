"""Attacks that once harmed a user's files, and that each fails now."""

import json
import multiprocessing
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
import tiny
from in_process import call
from test_foreign_files import COMMANDS, encoder, given, predictor  # noqa: F401

import official_bert as ob
from data_prep import sentences, vocab
from data_prep.jobs.locks import LOCK_FILE, exclusive
from experiments import predict
from experiments.training import runs
from experiments.training.answers import export_model
from experiments.training.folder import run_folder
from experiments.training.folder.checkpointing import Checkpoints
from experiments.training.folder.run_folder import RunFolder
from experiments.training.settings.config import BertConfig, Phase, PretrainConfig
from official_bert.common import files
from official_bert.common.errors import UserError
from official_bert.common.files import atomic_folder

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


def contents(folder):
    """Return the files below a folder, but for locks."""
    paths = (p for p in folder.rglob("*") if p.is_file() and p.name != LOCK_FILE)
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.mark.parametrize("name", ["records", "sentences", "wikipedia", "finetuning", "pretraining"])
def test_a_foreign_project_of_the_same_names(name, tmp_path, given, encoder):  # noqa: F811
    """--overwrite, which messages recommend, emptied any folder with an options.json."""
    home = tmp_path / "home"
    for path in ("options.json", "config.json", "report.json", "sentences.json", "report.md",
                 "a.txt", "model/weights", "events/diary", "work/thesis.tex"):  # fmt: skip
        (home / path).parent.mkdir(exist_ok=True, parents=True)
        (home / path).write_text("{}")
    before = contents(home)
    with pytest.raises(UserError):
        COMMANDS[name](given, home, False, encoder)
    assert contents(home) == before
    COMMANDS[name](given, home, True, encoder)
    assert contents(tmp_path / "home.~1~") == before
    assert sorted(os.listdir(tmp_path)) == ["home", "home.~1~"]


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
    arguments = (given, tmp_path / "out.tsv", barrier, ended)
    started = [processes.Process(target=predicts, args=arguments) for _ in range(4)]
    for process in started:
        process.start()
    codes = [ended.get() for _ in started]
    for process in started:
        process.join()
    assert 0 in codes and os.listdir(tmp_path) == ["out.tsv"]
    assert (tmp_path / "out.tsv").read_text().count("\n") > 10


def test_a_side_file_that_its_user_wrote_is_kept(tmp_path, given, capsys):  # noqa: F811
    """a.txt.json was deleted, and one of the user's written: the next call destroyed it."""
    output, record = tmp_path / "v.txt", tmp_path / "v.txt.json"
    options = f"--input={given / 'a.txt'}", f"--output={output}", "--vocab_size=10"
    options += ("--character_coverage=1.0",)

    def told(*more, code):
        assert call(vocab, *options, *more) == code
        said = capsys.readouterr()
        return said.out + said.err

    assert "10 entries" in told(code=0) and "is finished already" in told(code=0)
    made = output.read_bytes()
    record.unlink()
    assert "v.txt exists already" in told(code=2)
    for mine, why in (("mine", "v.txt.json is damaged"), ("{}", "made with other options")):
        record.write_text(mine)
        assert why in told(code=2)
        assert record.read_text() == mine and output.read_bytes() == made
    output.unlink()
    assert "v.txt.json exists already" in told(code=2)
    assert "v.txt.json is renamed to v.txt.json.~1~" in told("--overwrite", code=0)
    assert (tmp_path / "v.txt.json.~1~").read_text() == "{}" and output.read_bytes() == made
    assert sorted(os.listdir(tmp_path)) == ["v.txt", "v.txt.json", "v.txt.json.~1~"]


def test_a_manifest_in_a_folder_above_makes_nothing_ours(tmp_path, given, encoder):  # noqa: F811
    """A list of an earlier version, planted by a stranger, gave every file below away."""
    names = ["out", "out.tsv", "out/config.json", "out/report.md", "out/model"]
    title = "# What official_bert wrote in this folder; it replaces and removes nothing else. "
    lines = [f"+ {json.dumps(name)}" for name in names]
    manifest = "\n".join([f"{title}number 0123456789abcdef", *lines]) + "\n"
    (tmp_path / ".official_bert").write_text(manifest)
    for name in names[1:]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine")
    before = contents(tmp_path)
    out = tmp_path / "out"
    for attack in (
        lambda: predict.run(str(given / "model"), str(given / "a.txt"), f"{out}.tsv", progress=0),
        lambda: COMMANDS["finetuning"](given, out, False, encoder),
        lambda: ob.save(out, encoder, TOKENIZER),
        lambda: ob.save(out / "model", encoder, TOKENIZER),
    ):
        with pytest.raises(UserError):
            attack()
        assert contents(tmp_path) == before


def test_overwriting_does_not_go_through_links(tmp_path, given, encoder):  # noqa: F811
    """--overwrite emptied the model of another run, which a link led to."""
    COMMANDS["pretraining"](given, tmp_path / "other", False, encoder)
    ob.save(tmp_path / "other" / "model", encoder, TOKENIZER)
    before = contents(tmp_path / "other")
    run = tmp_path / "run"
    run.mkdir()
    for name in ("model", "checkpoints", "events", "config.json"):
        (run / name).symlink_to(tmp_path / "other" / name)
    (tmp_path / "linked").symlink_to("other")
    (tmp_path / "model").symlink_to("other/model")
    for folder in (run, tmp_path / "linked"):
        COMMANDS["pretraining"](given, folder, True, encoder)
        assert not folder.is_symlink() and not (folder / "model").exists()
    assert (tmp_path / "run.~1~" / "model").is_symlink()
    assert os.readlink(tmp_path / "linked.~1~") == "other"
    ob.save(tmp_path / "model", encoder, TOKENIZER, overwrite=True)
    assert os.readlink(tmp_path / "model.~1~") == "other/model"
    assert contents(tmp_path / "other") == before


def as_somebody_else(folder, ended):
    os.setgid(65534)
    os.setuid(65534)
    try:
        files.write_text(folder / "second.tsv", "theirs")
        with atomic_folder(folder / "model"), exclusive(folder / "run"):
            pass
        ended.put(sorted(os.listdir(folder)))
    except BaseException as error:
        ended.put(repr(error))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_the_first_user_of_a_shared_folder_keeps_out_nobody(tmp_path):
    """A list that only its first writer could open was needed by all who wrote there."""
    shared = Path(tempfile.mkdtemp(dir="/tmp"))
    try:
        os.chmod(shared, 0o777)
        files.write_text(shared / "first.tsv", "ours")
        with exclusive(shared / "run"):
            pass
        assert sorted(os.listdir(shared)) == ["first.tsv", "run"]  # and nothing beside them
        os.chmod(shared / "run", 0o777)
        processes = multiprocessing.get_context("fork")
        ended = processes.Queue()
        process = processes.Process(target=as_somebody_else, args=(shared, ended))
        process.start()
        assert ended.get() == ["first.tsv", "model", "run", "second.tsv"]
        process.join()
    finally:
        shutil.rmtree(shared)


def test_checkpoints_may_lie_on_another_disk(tmp_path):
    """A link under a run's name, made once the run has begun, is used where it leads to."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "mine").write_text("mine")
    config = PretrainConfig(bert=BertConfig(), phases=(Phase(records="x"),))
    with exclusive(tmp_path / "run") as lock:
        folder = RunFolder(tmp_path / "run", config, lock=lock)
        folder.checkpoints.symlink_to(tmp_path / "disk")
        for step in (1, 2):
            Checkpoints(folder.checkpoints, keep=1).save(step, {"w": np.ones(2)}, {})
        assert sorted(os.listdir(tmp_path / "disk")) == ["mine", "step-00000002"]
    with exclusive(tmp_path / "run") as lock:
        run_folder.begin(tmp_path / "run", True, lock)
    assert sorted(os.listdir(tmp_path / "disk")) == ["mine", "step-00000002"]


def test_a_stray_config_is_not_taken_for_a_runs(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UserError, match="config.json is not a run's"):
        RunFolder(tmp_path, PretrainConfig())
    assert (tmp_path / "config.json").read_text() == "{}"
