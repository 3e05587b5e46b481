"""The export command: from a model folder on disk to answers."""

import numpy as np
import pytest
import tiny
from in_process import call

import official_bert
from experiments import export
from experiments.training.answers import export_model as command
from official_bert import BertClassifier, BertTokenizer
from official_bert.checkpoints.finding import resolve
from official_bert.common.errors import UserError

VOCAB = [*tiny.SPECIAL, "free", "prize", "see", "you", "soon"]


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    model = BertClassifier(tiny.encoder(VOCAB), 2, seed=0)
    own = {"labels": ["ham", "spam"]}
    task = {"name": "text_classification"}
    task["options"] = {"text_column": "title", "text_b_column": "body", **own}
    settings = {**own, "max_seq_length": 16, "task": task}
    folder = tmp_path_factory.mktemp("run") / "model"
    official_bert.save(folder, model, BertTokenizer(VOCAB), settings)
    return folder


@pytest.mark.slow
def test_a_task_of_pairs_takes_text_a_and_text_b(model_folder, tmp_path):
    path = command.export(model_folder, tmp_path / "spam")
    titles, bodies = ["free prize", "see you"], ["prize", ""]
    answers = command.answer(path, titles, text_b=bodies)
    names = ["labels", "logits", "probabilities", "truncated"]
    assert [sorted(answer) for answer in answers] == [names] * 2
    assert {answer["labels"] for answer in answers} <= {"ham", "spam"}
    assert not np.allclose(answers[0]["logits"], answers[1]["logits"])


def test_the_command_lists_the_signatures(model_folder, tmp_path, capsys):
    flags = [f"--model={model_folder}", f"--output={tmp_path / 'out'}", "--labels=no,yes"]
    assert call(export, *flags, "--input_fields=subject,message") == 0
    shown = capsys.readouterr().out
    assert "  <- subject: string [?]" in shown
    assert "  -> probabilities: float32 [?, 2]" in shown
    assert shown.endswith(f"SavedModel: {tmp_path / 'out' / '1'}\n")
    assert (tmp_path / "out" / "1" / "assets" / "labels.txt").read_text() == "no\nyes\n"


def test_the_command_says_how_near_onnx_is(model_folder, tmp_path, capsys):
    pytest.importorskip("onnxruntime", reason="needs the extra onnx")
    pytest.importorskip("onnx", reason="needs the extra onnx")
    flags = f"--model={model_folder}", f"--output={tmp_path / 'out'}", "--format=onnx"
    assert call(export, *flags, "--precision=int8") == 0
    logits, probabilities, made = capsys.readouterr().out.splitlines()
    assert logits.startswith("logits: at most ") and probabilities.startswith("probabilities: ")
    assert made.startswith(f"onnx: {tmp_path / 'out' / 'model.onnx'}, ")
    (tmp_path / "out" / "model.onnx").write_bytes(b"old")
    assert call(export, *flags) == 2
    assert "exists already; choose another name or pass --overwrite" in capsys.readouterr().err
    assert (tmp_path / "out" / "model.onnx").read_bytes() == b"old"
    assert call(export, *flags, "--overwrite") == 0


@pytest.mark.parametrize("target", ["google", "huggingface"])
def test_a_checkpoint_without_a_vocabulary_is_named(model_folder, target, tmp_path):
    folder, output = tmp_path / "theirs", tmp_path / "out"
    model = official_bert.load(model_folder).model
    resolve.EXPORTERS[target](folder, model, None)
    for format in command.FORMATS:
        with pytest.raises(UserError, match=f"{folder}: has no vocabulary; a served model needs"):
            command.check(folder, output, format)
    with pytest.raises(UserError, match=f"{folder}: has no vocabulary"):
        command.export(folder, output)
    assert not output.exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "--model is missing"),
        (["--model=/nowhere", "--output=x"], "/nowhere: no such folder"),
        (["--model=x", "--output=y", "--precision=int4"], "precision"),
        (["--model=x", "--output=y", "--precision=int8"], "precision='int8'; it is one of float32"),
        (["--model=x", "--output=y", "--format=onnx", "--version=2"], "--version is for"),
    ],
)
def test_wrong_usage_is_one_clear_line(capsys, flags, message):
    assert call(export, *flags) == 2
    shown = capsys.readouterr().err
    assert message in shown and "Traceback" not in shown
