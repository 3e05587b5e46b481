"""A whole ablation with real cells, killed in the middle: the same table as without the kill."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from in_process import call

from experiments import ablate
from experiments.tables.judging import archives
from experiments.tables.planning.plan import plan_table
from experiments.tables.reporting import assemble
from experiments.tables.run.grid import Grid
from experiments.training.folder import provenance
from experiments.training.folder.dataclass_json import to_json
from experiments.training.settings.config_files import load_config
from official_bert.common.errors import UserError

ROOT = Path(__file__).parents[2]
CONFIG = """
import dataclasses
from data_prep.sample import corpus_files
from experiments.tables.planning.ablation import Ablation, Column, Export, Row, Text, Variant
from experiments.tables.planning.claims import Claim, Comparison
from experiments.training.settings.config import FinetuneConfig, Phase
from experiments.configs.columns import HELDOUT_LOSS
from experiments.configs.scales import get_scale


def get_config():
    scale = get_scale("smoke")
    bert = dataclasses.replace(
        scale.bert.bert, vocab_size=1024, hidden_size=16, intermediate_size=32,
        num_hidden_layers=1,
    )
    # One book of the sample: 30 chapters.
    corpus = dataclasses.replace(
        scale.corpus, texts=(Text((corpus_files()[0],)),), vocab_size=1024
    )
    pretrain = dataclasses.replace(
        scale.bert, bert=bert, phases=(Phase("length 64", 64, 60),), num_warmup_steps=6,
        train_batch_size=8, eval_every=30, save_every=10, steps_per_loop=5,
        max_heldout_examples=64,
    )
    finetune = dataclasses.replace(
        scale.columns["SST-2"].finetune, max_train_examples=128, max_dev_examples=100,
        num_train_epochs=1.0,
    )
    return Ablation(
        name="table5",
        title="In a test",
        variants=(Variant("BERT", pretrain), Variant("random", pretrain, random_init=True)),
        columns=(HELDOUT_LOSS, Column("spam", finetune, "accuracy", paper_column="SST-2")),
        rows=(Row("BERT", "BERT", paper_row="BERT"), Row("random", "random", reference=True)),
        claims=(Claim("c", "it helps", "3.1", (Comparison("spam", "BERT", "random"),)),),
        exports=(EXPORTS),
        **(scale.fields() | {"corpus": corpus}),
    )
"""
# Between two checkpoints of the pre-training its worker kills the command, which ends them both.
KILLED = """
import os, signal, sys, threading

if "experiments.tables.run.pool" in sys.orig_argv:
    from experiments.training.folder.checkpointing import Checkpoints

    save = Checkpoints.save

    def save_and_kill(*arguments, **options):
        save(*arguments, **options)
        os.kill(os.getppid(), signal.SIGKILL)
        threading.Event().wait()

    Checkpoints.save = save_and_kill
"""
EXPORTS = 'Export("BERT", "spam", ("WIN a prize now", "see you at six")),'


def ran(workdir, *places):
    """Run the command in a folder whose table is its name's .py; return the ended process."""
    config = workdir.parent / f"{workdir.name}.py"
    config.write_text(CONFIG.replace("EXPORTS", EXPORTS))
    arguments = [f"--config={config}", f"--workdir={workdir}", "--workers=1"]
    # One thread for every run: sums are rounded in another order by more.
    one = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS")
    found = {"PYTHONPATH": os.pathsep.join(map(str, (ROOT, *places)))}
    return subprocess.run(
        [sys.executable, "-m", "experiments.ablate", *arguments],
        cwd=ROOT, env=os.environ | dict.fromkeys(one, "1") | found, capture_output=True, text=True,
    )  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Return (results of a run, its folder, its output)."""
    folder = tmp_path_factory.mktemp("ablation") / "whole"
    run = ran(folder)
    assert run.returncode == 0, run.stderr
    return json.loads((folder / "results.json").read_text()), folder, run.stdout


@pytest.mark.slow
def test_a_killed_run_that_was_moved_ends_with_the_same_table(table, tmp_path):
    whole, _, _ = table
    (tmp_path / "killed").mkdir()
    (tmp_path / "killed" / "sitecustomize.py").write_text(KILLED)
    assert ran(tmp_path / "cut", tmp_path / "killed").returncode == -signal.SIGKILL
    assert not (tmp_path / "cut" / "results.json").exists()
    folder = (tmp_path / "cut").rename(tmp_path / "moved")
    run = ran(folder)
    assert run.returncode == 0, run.stderr
    cut = json.loads((folder / "results.json").read_text())
    (log,) = (folder / "cells").glob("pretrain-*/log.txt")
    assert "goes on" not in log.read_text()  # neither with other code nor with other data
    starts = [line for line in log.read_text().splitlines() if "first step after" in line]
    assert len(starts) == 2
    steps = [json.loads(line)["step"] for line in (log.parent / "metrics.jsonl").open()]
    assert steps == sorted(steps)
    assert whole["rows"] == cut["rows"]
    assert whole["baselines"] == cut["baselines"]
    assert whole["verdicts"] == cut["verdicts"]


def test_the_table_is_complete_and_honest(table):
    results, folder, printed = table
    assert results["cells"] == {"finished": 6, "failed": 0, "pending": 0, "running": 0}
    bert, random = results["rows"]
    assert bert["cells"]["spam"]["paper"] == 92.7
    assert 0 < bert["cells"]["held-out loss"]["mean"] < results["baselines"]["held-out loss"] + 2
    assert "mean" not in random["cells"]["held-out loss"]
    # 60 steps of a model 16 wide teach nothing: the claim must not be decided by them.
    assert results["verdicts"][0]["verdict"] == "not decided at this scale"
    assert (folder / "report.html").stat().st_size > 10_000
    assert "Table 5: In a test" in printed
    assert printed.rstrip().endswith(str(folder / "report.html"))


def test_the_table_is_made_again_from_its_archives(table, tmp_path):
    whole, folder, _ = table
    for archive in (folder / "archives").glob("seed-*.tar.gz"):
        shutil.unpack_archive(archive, tmp_path / "cells", filter="data")
    ablation = load_config(str(folder.with_suffix(".py")))
    planned = plan_table(ablation)
    grid = Grid(planned.cells, tmp_path / "cells")
    again = json.loads(json.dumps(to_json(assemble.assemble(ablation, planned, grid, ""))))
    assert again["rows"] == whole["rows"] and again["verdicts"] == whole["verdicts"]
    first, second = (archives.write(grid, tmp_path / name) for name in ("first", "second"))
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second] != []


def test_a_dry_run_tells_about_what_the_table_takes_on_disk(table):
    """Small cells leave little beside results and logs, whose size is constant."""
    _, folder, _ = table
    planned = plan_table(load_config(str(folder.with_suffix(".py"))))
    grid = Grid(planned.cells, folder / "cells")
    for name, cell in grid.cells.items():
        files = [path for path in grid.folder(name).rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        assert cell.bytes / 3 < size + 1e5 and size < 3 * cell.bytes + 3e5, (name, size, cell.bytes)
        if cell.kind in ("records", "vocab"):
            assert cell.bytes / 2 < size < 2 * cell.bytes, (name, size)


def test_several_tables_of_one_command_are_one_grid(table, tmp_path):
    whole, folder, _ = table
    first, second = folder.with_suffix(".py"), tmp_path / "second.py"
    text = re.sub("(claims|exports)=.*", "", first.read_text())
    text = text.replace("(HELDOUT_LOSS, ", "(*[").replace('")),', '")],),')
    text = text.replace('": corpus}', '": corpus, "scale": "fewer"}')
    second.write_text(text)
    arguments = ["--config", f"{first},{second}", "--workdir", str(tmp_path), "--workers=1"]
    arguments.append(f"--cells={folder / 'cells'}")
    command = [sys.executable, "-m", "experiments.ablate", *arguments]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert "6 cells, 6 finished" in ended.stderr and " start " not in ended.stderr
    found = [
        json.loads((tmp_path / "table5" / scale / "results.json").read_text())
        for scale in ("smoke", "fewer")
    ]
    assert found[0]["rows"] == whole["rows"]
    assert found[1]["rows"][0]["cells"] == {"spam": whole["rows"][0]["cells"]["spam"]}
    assert found[1]["command"] == f"python -m experiments.ablate --config={second} --workdir=DIR"
    assert list((tmp_path / "table5" / "fewer" / "archives").glob("seed-*.tar.gz"))
    twice = [(load_config(str(first)), tmp_path / "x", "")] * 2
    with pytest.raises(UserError, match="two tables have the folder .*x; run them one after"):
        ablate.run_together(twice, tmp_path / "cells")


def test_flags_of_a_dry_run_are_refused_without_one(tmp_path, capsys):
    arguments = ("--config=table5:smoke", f"--workdir={tmp_path}", "--price=3")
    assert call(ablate, *arguments) == 2
    assert "--price is for --dry_run" in capsys.readouterr().err


@pytest.mark.parametrize(
    "flag, message",
    [
        ("--share=nan", "--share=nan: give a finite number"),
        ("--peak_tflops=inf", "--peak_tflops=inf: give a finite number"),
        ("--peak_tflops=0", "--peak_tflops=0: at this rate nothing ends"),
        ("--config=,", "--config is missing; choose a file"),
    ],
)
def test_numbers_that_say_nothing_of_a_dry_run_are_refused(capsys, flag, message):
    assert call(ablate, "--config=table5:smoke", "--dry_run", flag) == 2
    assert message in capsys.readouterr().err


def test_the_first_error_is_shown_where_the_report_cannot_be_written_either(table, monkeypatch):
    _, folder, _ = table

    def fails(error):
        def call(*arguments, **options):
            raise error

        return call

    monkeypatch.setattr(ablate.Grid, "run", fails(UserError("a cell")))
    monkeypatch.setattr(ablate.assemble, "assemble", fails(OSError("a disk")))
    with pytest.raises(UserError, match="a cell"):
        ablate.run(load_config(str(folder.with_suffix(".py"))), folder)


def test_runs_of_other_code_are_said_and_refused_on_request(table, monkeypatch, capfd):
    whole, folder, _ = table
    [origin] = whole["origins"]
    assert origin["code"] == provenance.code_stamp() and origin["cells"] == 6
    assert "The runs behind this table differ" not in (folder / "report.md").read_text()
    ablation = load_config(str(folder.with_suffix(".py")))
    ablate.run(ablation, folder, strict=True)
    monkeypatch.setattr(provenance, "code_stamp", lambda: "feed")
    told = f"code: {origin['code']} (6 cells); now feed"
    capfd.readouterr()
    ablate.run(ablation, folder)
    assert (
        f"6 cells, 6 finished\n  the runs of this table differ: {told}\n" in capfd.readouterr().err
    )
    assert told in ablate.dry_run([ablation], folder, share=0.5)
    with pytest.raises(UserError, match=r"--strict: .*now feed"):
        ablate.run(ablation, folder, strict=True)


def test_the_exported_classifier_answers(table):
    results, _, printed = table
    answers = results["exports"][0]["answers"]
    assert [a["text"] for a in answers] == ["WIN a prize now", "see you at six"]
    assert all(a["label"] in ("ham", "spam") and 0.5 <= a["probability"] <= 1 for a in answers)
    assert Path(results["exports"][0]["saved_model"], "saved_model.pb").exists()
    assert "SavedModel: " in printed
