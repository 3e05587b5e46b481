"""Records made on Apache Beam are the records made on one machine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from corpora import write_corpus, write_vocabulary

from data_prep.create_pretraining_data import create
from data_prep.jobs.beam import BeamWorkers
from official_bert.common.errors import UserError

OPTIONS = {"max_seq_length": 64, "dupe_factor": 2, "num_shards": 3, "held_out": 0.1}
ROOT = Path(__file__).parents[3]


def contents(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    "beam_options",
    ["direct_running_mode=in_memory", "direct_running_mode=multi_processing,direct_num_workers=2"],
    ids=["one", "two workers"],
)
def test_beam_makes_the_records_of_the_local_mode(tmp_path, beam_options):
    pytest.importorskip("apache_beam", reason="needs the extra `beam`")
    vocab = write_vocabulary(tmp_path / "vocab.txt")
    path = write_corpus(tmp_path / "a.txt", documents=120)
    create(path, vocab, str(tmp_path / "local"), progress=False, **OPTIONS)
    flags = [f"--{name}={value}" for name, value in OPTIONS.items()]
    flags += [f"--input={path}", f"--vocab={vocab}", f"--output={tmp_path / 'beam'}"]
    flags += ["--runner=DirectRunner", f"--beam_options={beam_options}"]
    command = [sys.executable, "-m", "data_prep.create_pretraining_data", *flags]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-3000:]
    assert contents(tmp_path / "beam") == contents(tmp_path / "local")


def test_the_job_graph_stays_small_however_many_the_tasks(tmp_path, monkeypatch):
    """Issue: `beam.Create` put every task into the graph, which Dataflow limits to 20 MB."""
    beam = pytest.importorskip("apache_beam", reason="needs the extra `beam`")
    tasks = [{"summary": str(tmp_path / f"{i}.summary"), "number": i} for i in range(300)]
    workers = BeamWorkers("DirectRunner", ["direct_running_mode=in_memory"])
    pipelines, run = [], beam.Pipeline.run
    monkeypatch.setattr(beam.Pipeline, "run", lambda self: pipelines.append(self) or run(self))
    assert workers.run(_square, tasks, "squares") == [{"square": i * i} for i in range(300)]
    os.remove(tmp_path / "7.summary")  # and now with one task
    assert workers.run(_square, tasks, "squares") == [{"square": i * i} for i in range(300)]
    sizes = [len(p.to_runner_api().SerializeToString()) for p in pipelines]
    assert abs(sizes[0] - sizes[1]) < 100 and max(sizes) < 100_000
    assert not (tmp_path / "tasks.json").exists()


def _square(task):
    return {"square": task["number"] ** 2}


def test_without_beam_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    with pytest.raises(UserError, match=r"official-bert\[beam\]"):
        BeamWorkers("DirectRunner")
