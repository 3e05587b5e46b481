"""Whole runs on JAX, records to answers; a killed run goes on to the same bits."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tiny_runs

from data_prep.pretraining.reading.record_files import read_records
from experiments import evaluate, predict
from experiments.training.folder.checkpointing import Checkpoints
from experiments.training.runs import finetune, pretrain
from experiments.training.settings.config import Phase

pytestmark = pytest.mark.timeout(1800)  # XLA compiles a program or two in each
KILLED = """
import os, signal, sys
from pathlib import Path
from experiments.training.folder.checkpointing import Checkpoints
from tests.without_tensorflow.test_jax_runs import run

save = Checkpoints.save
def save_and_die(self, step, *rest, **options):
    save(self, step, *rest, **options)
    if step == 4:
        os.kill(os.getpid(), signal.SIGKILL)
Checkpoints.save = save_and_die
run(Path(sys.argv[1]), sys.argv[2])
"""


def run(data, workdir):
    phases = (Phase(str(data / "short"), 16, 12),)
    pretrain(tiny_runs.pretrain_config(data, phases=phases), str(workdir), progress=False)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tiny_runs.make_records(tmp_path_factory.mktemp("data"))
    return tiny_runs.write_labelled_texts(folder)


@pytest.fixture(scope="module")
def model(data, tmp_path_factory):
    """Return a pre-trained model's folder."""
    workdir = tmp_path_factory.mktemp("pretrained")
    phases = (Phase(str(data / "short"), 16, 10, str(data / "short")),)
    config = tiny_runs.pretrain_config(data, phases=phases, output_bias="unigram")
    results = pretrain(config, str(workdir), progress=False)
    assert results.steps == 10 and results.heldout["masked_lm_perplexity"] > 1
    versions = json.loads((workdir / "versions.json").read_text())
    assert "jax" in versions["packages"] and versions["devices"]["strategy"] == "JAX"
    return workdir / "model"


def test_events_have_checksums_and_a_version(model):
    (path,) = (model.parent / "events").glob("*tfevents*")
    first, *others = read_records(str(path))
    assert b"brain.Event:2" in first
    assert any(b"masked_lm_loss" in event for event in others)


def test_a_model_is_fine_tuned_evaluated_and_asked(data, model, tmp_path):
    # A model this small does not learn from every seed, on TensorFlow neither.
    config = tiny_runs.finetune_config(data, model, learning_rate=3e-3, seed=2, save_every=10)
    results = finetune(config, str(tmp_path / "run"), progress=False)
    assert results.dev["accuracy"] > results.baseline["accuracy"] + 0.1
    fine_tuned = str(tmp_path / "run" / "model")
    (tmp_path / "texts.txt").write_text("the cat sees a tree\n\nold river\n")
    counts = predict.run(
        fine_tuned, str(tmp_path / "texts.txt"), str(tmp_path / "answers.jsonl"), progress=False
    )
    assert counts == {"lines": 3, "empty": 1, "truncated": 0}
    answers = [json.loads(line) for line in (tmp_path / "answers.jsonl").open()]
    assert answers[0]["label"] == "animal" and answers[2]["label"] == "other"
    scores, _ = evaluate.on_task(fine_tuned, str(data / "dev.tsv"))
    assert scores["accuracy"] == pytest.approx(results.dev["accuracy"])
    held_out = evaluate.run(str(model), str(data / "short"), max_examples=64)
    assert held_out["masked_lm_loss"] > 0


def test_a_killed_run_goes_on_to_the_same_bits(data, tmp_path):
    tests = Path(__file__).parents[1]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tests.parent), str(tests / "experiments")]),
    }
    command = [sys.executable, "-c", KILLED, str(data), str(tmp_path / "killed")]
    assert subprocess.run(command, env=environment).returncode == -signal.SIGKILL
    assert Checkpoints(tmp_path / "killed" / "checkpoints").steps() == [4]
    for name in ("whole", "killed"):
        run(data, tmp_path / name)
    whole, killed = (
        Checkpoints(tmp_path / name / "checkpoints").load(12)[0] for name in ("whole", "killed")
    )
    assert sorted(whole) == sorted(killed)
    for name, array in whole.items():
        np.testing.assert_array_equal(array, killed[name], err_msg=name)
