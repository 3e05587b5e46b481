"""Work folders: one process at a time, no leftovers, a clear end where they are taken away."""

import functools
import os
import re
import shutil
from unittest import mock

import numpy as np
import pytest
from tiny import make_records

from data_prep import wikipedia
from data_prep.jobs import commands
from data_prep.jobs.locks import LOCK_FILE, exclusive
from data_prep.pretraining import shards
from data_prep.sentences import split_files
from experiments import ablate
from experiments.training import runs, search
from experiments.training.folder.checkpointing import Checkpoints
from experiments.training.folder.run_folder import RunFolder
from experiments.training.settings.config import BertConfig, FinetuneConfig, Phase, PretrainConfig
from experiments.training.settings.config_files import load_config
from official_bert.common.errors import UserError
from official_bert.common.files import make_folder, write_text


@pytest.fixture
def make(tmp_path):
    """Return a function that makes records in a folder `records`."""
    return functools.partial(make_records, tmp_path, tmp_path / "records")


@pytest.fixture
def config(tmp_path):
    return PretrainConfig(bert=BertConfig(), phases=(Phase(records=str(tmp_path / "records")),))


def test_two_commands_in_one_folder(tmp_path, make, config):
    for folder, command in (
        ("records", make),
        ("run", lambda: runs.pretrain(config, tmp_path / "run", progress=False)),
        ("lines", lambda: split_files(str(tmp_path / "a.txt"), tmp_path / "lines", "articles")),
        ("table", lambda: ablate.run(load_config("table5:smoke"), tmp_path / "table", quiet=True)),
        ("wiki", lambda: wikipedia.extract(str(tmp_path / "dump.xml"), tmp_path / "wiki")),
    ):
        in_use = pytest.raises(UserError, match=f"{folder} is in use by process {os.getpid()} on")
        with exclusive(tmp_path / folder), in_use:
            command()
        assert os.listdir(tmp_path / folder) == [LOCK_FILE]


def test_leftovers_of_killed_processes_go(tmp_path, make):
    whole = make()
    records = tmp_path / "records"
    names = sorted(path.name for path in records.iterdir())
    half = records / ".examples-00000-of-00001.tfrecord.0123456789abcdef.tmp"
    write_text(half / "examples-00000-of-00001.tfrecord", "half")
    write_text(records / "work" / "rows-train-00000.rows", "killed before it was removed")
    assert make() == whole and sorted(path.name for path in records.iterdir()) == names
    run = tmp_path / "run"
    RunFolder(run, PretrainConfig())
    make_folder(run / "checkpoints" / ".step-00000001.0123456789abcdef.tmp" / "step-00000001")
    RunFolder(run, PretrainConfig())
    Checkpoints(run / "checkpoints").load_newest()
    assert sorted(str(p.relative_to(run)) for p in run.rglob("*")) == ["checkpoints", "config.json"]


def test_records_whose_folder_is_removed_meanwhile(tmp_path, make, monkeypatch):
    write_shards = shards.write_shards

    def removes(task):
        shutil.rmtree(tmp_path / "records")
        return write_shards(task)

    monkeypatch.setattr(shards, "write_shards", removes)
    removed = re.escape(os.path.join("records", "work", ""))
    with pytest.raises(UserError, match=removed + ".*cannot be read"):
        make()


def test_a_run_whose_folder_is_removed_meanwhile(tmp_path):
    with exclusive(tmp_path / "run") as lock:
        folder = RunFolder(tmp_path / "run", PretrainConfig(), lock=lock)
        shutil.rmtree(tmp_path / "run")
        Checkpoints(folder.checkpoints).save(1, {"w": np.ones(2)}, {})
        with pytest.raises(UserError, match="run was removed or replaced while"):
            folder.write_json("results.json", {})


def test_remote_work_folders_are_refused_at_once(tmp_path, monkeypatch, config):
    """Issue: `--workdir=gs://bucket/run` would go to a local folder named gs:."""
    monkeypatch.chdir(tmp_path)
    remote = "gs://bucket/run"
    for begin in (
        lambda: runs.pretrain(config, remote),
        lambda: runs.finetune(FinetuneConfig(task="mrpc", model="x"), remote),
        lambda: RunFolder(remote, config, write=False),  # a run's other processes
        lambda: search.run(FinetuneConfig(), remote, {"seed": (1,)}),
        lambda: ablate.run(None, remote),
        lambda: ablate.run(None, "here", cells=remote),
        lambda: ablate.dry_run([], remote),
    ):
        with pytest.raises(UserError, match=r"gs://bucket/run.*local"):
            begin()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["results.json", "report.md"])
def test_a_foreign_report_stands_in_a_tables_way_before_its_work(tmp_path, monkeypatch, name):
    monkeypatch.setattr(ablate.Grid, "run", lambda *_, **__: pytest.fail("it was begun"))
    (tmp_path / name).write_text("mine")
    with pytest.raises(UserError, match=f"{name} is in the way: .* has no config.json"):
        ablate.run(load_config("table5:smoke"), tmp_path, quiet=True)
    assert sorted(os.listdir(tmp_path)) == [LOCK_FILE, name]


WHERE, LIMITS = "runs/x/metrics.jsonl", "the limits of the system (ulimit -a)"
REFUSED = {OSError(n, os.strerror(n), WHERE): os.strerror(n) for n in (2, 11, 13, 24, 28, 30)}


@pytest.mark.parametrize(
    ("error", "told"),
    [
        *((error, f"{WHERE}: {why}") for error, why in REFUSED.items()),
        (OSError(24, "many"), f"{LIMITS}: many"),
        (RuntimeError("can't start new thread"), f"{LIMITS}: can't start new thread"),
        (UserError("a\x1b[31m\r.txt: é\nSee\t--help"), "a\\x1b[31m\\r.txt: é\nSee\t--help"),
    ],
)
def test_what_the_system_refuses_is_one_line_and_leads_no_terminal(capsys, error, told):
    with pytest.raises(SystemExit, match="2"):
        commands.end(mock.Mock(side_effect=error))
    assert capsys.readouterr().err == f"error: {told}\n"
