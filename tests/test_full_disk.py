"""A disk that runs full, at every moment: one line, nothing half written under a final name, and
the command goes on as soon as there is room."""

import os
import subprocess

import pytest
import tiny
from test_foreign_files import COMMANDS, encoder, given, predictor  # noqa: F401

import official_bert as ob
from experiments.training import runs
from experiments.training.answers import export_model
from experiments.training.settings.config import FinetuneConfig
from official_bert.checkpoints import keras_hub
from official_bert.common.errors import UserError

TOKENIZER = ob.BertTokenizer(tiny.VOCAB)


@pytest.fixture
def disk(tmp_path):
    """Return a function that empties a small disk and leaves so many bytes of it."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a small disk")

    def leave(free):
        subprocess.run(["umount", "-l", str(folder)], check=True)
        subprocess.run(command, check=True)
        (folder / "filler").write_bytes(bytes((4 << 20) - free))
        return folder

    yield leave
    subprocess.run(["umount", "-l", str(folder)], check=True)


def saved_model(given, output, overwrite, encoder):  # noqa: F811
    export_model.export(given / "classifier", output)


def onnx(given, output, overwrite, encoder):  # noqa: F811
    pytest.importorskip("onnxruntime")
    export_model.export_ids(given / "classifier", output)


def preset(given, output, overwrite, encoder):  # noqa: F811
    keras_hub.export_keras_hub(output, encoder, TOKENIZER)


def training(given, output, overwrite, encoder):  # noqa: F811
    options = {"labels": "x,y", "text_column": "text"}
    sizes = {"num_train_epochs": 1, "train_batch_size": 4, "max_seq_length": 8}
    task = {"task": "text_classification", "data_dir": str(given), "task_options": options}
    runs.finetune(FinetuneConfig(model=str(given / "start"), **task, **sizes), output)


MORE = {"saved_model": saved_model, "onnx": onnx, "preset": preset, "training": training}


SLOW = ("saved_model", "onnx", "training")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in (*COMMANDS, *MORE)],
)
def test_commands(name, disk, given, encoder, tmp_path):  # noqa: F811
    if not (given / "classifier").exists():
        settings = {"labels": ["x", "y"], "max_seq_length": 8}
        ob.save(given / "classifier", ob.BertClassifier(encoder, 2), TOKENIZER, settings)
        ob.save(given / "start", encoder, TOKENIZER)
    run, ended = {**COMMANDS, **MORE}[name], set()
    few = (0, 8, 1000)  # exports take seconds
    for pages in few if name in MORE else (*range(7), 8, 12, 20, 40, 100, 400, 1000):
        folder = disk(pages * 4096)
        try:
            run(given, folder / "out", True, encoder)
            ended.add("done")
            break
        except (UserError, OSError) as error:  # `commands.run` says an OSError of this kind, too
            assert "full" in str(error) or "No space left" in str(error), error
            ended.add("full")
        assert not [p.name for p in folder.rglob("*") if p.name.endswith(".tmp")], pages
        if pages not in few[:1]:  # of the slow ones once
            (folder / "filler").unlink()
            run(given, folder / "out", True, encoder)  # as soon as there is room
    assert "full" in ended
