"""The inputs and outputs of prediction, with a stand-in for the model.

`test_pretrain_and_finetune` predicts with a real one.
"""

import gzip
import io
import json
import sys
import types

import numpy as np
import pytest

from data_prep.tasks import get_task
from experiments import predict
from official_bert.common.errors import UserError


@pytest.fixture(autouse=True)
def predictor(monkeypatch):
    """Say "long" of texts with more than five characters."""
    task = get_task("text_classification", text_column="text", labels="long,short")

    def answers(examples):
        is_long = np.array([len(example.text_a) > 5 for example in examples])
        logits = np.stack([is_long, ~is_long], 1) * 50.0
        return task.predictions(examples, None, {"logits": logits}), 0

    stand_in = types.SimpleNamespace(task=task, labels=task.labels, predict=answers)
    monkeypatch.setattr(predict, "Predictor", lambda *_: stand_in)
    return stand_in


def _run(path, output="-"):
    return predict.run("", str(path), str(output), progress=False)


def _standard_streams(monkeypatch, content):
    """Give the process standard streams of a locale that is not UTF-8; returns the bytes
    written."""
    output = io.BytesIO()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), "ascii"))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(output, "ascii", write_through=True))
    return output


def test_compressed_json_lines(tmp_path):
    rows = [{"text": "a", "id": "café"}, {"text": "much longer"}]
    content = "\n".join(map(json.dumps, rows)).encode()
    (tmp_path / "in.jsonl.gz").write_bytes(gzip.compress(content))
    assert _run(tmp_path / "in.jsonl.gz", tmp_path / "out.jsonl.gz")["lines"] == 2
    with gzip.open(tmp_path / "out.jsonl.gz", "rt", encoding="utf-8") as file:
        found = [json.loads(line) for line in file]
    assert [(row["id"], row["label"]) for row in found] == [("café", "short"), ("2", "long")]


def test_compressed_text(tmp_path):
    (tmp_path / "in.txt.gz").write_bytes(gzip.compress(b"a\nmuch longer\n"))
    _run(tmp_path / "in.txt.gz", tmp_path / "out.tsv.gz")
    lines = gzip.decompress((tmp_path / "out.tsv.gz").read_bytes()).decode().splitlines()
    assert [line.split("\t")[:2] for line in lines] == [
        ["text", "label"], ["a", "short"], ["much longer", "long"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": 5}', r"in\.jsonl line 2: text is 5, expected a text"),
        ('{"txt": "b"}', r"in\.jsonl line 2: no column text; the columns are txt"),
        ('{"text"', r"in\.jsonl line 2: not valid JSON"),
    ],
)
def test_wrong_json_lines(tmp_path, line, message):
    (tmp_path / "in.jsonl").write_text('{"text": "a"}\n' + line, encoding="utf-8")
    with pytest.raises(UserError, match=message):
        _run(tmp_path / "in.jsonl", tmp_path / "out.tsv")
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_standard_streams_are_utf8_whatever_the_locale(monkeypatch):
    # With its byte order mark the first text would be long.
    output = _standard_streams(monkeypatch, "\ufeffcafés\r\n\r\nmuch longer\r\n".encode())
    assert _run("-") == {"lines": 3, "empty": 1, "truncated": 0}
    lines = output.getvalue().decode("utf-8").split("\n")
    answers = [line.split("\t")[1] if line else "" for line in lines]
    assert answers == ["label", "short", "", "long", ""]


def test_standard_output_holds_any_label(monkeypatch, predictor):
    predictor.labels = ["schön", "schlecht"]
    output = _standard_streams(monkeypatch, b"a\n")
    _run("-")
    assert output.getvalue().decode("utf-8").startswith("text\tlabel\tprobability_schön\t")


def test_words_of_documents(tmp_path, predictor):
    """An entity task is asked for the words as they are cut, sentence by sentence."""
    asked = []

    def tagged(examples):
        asked.extend(examples)
        words = [[list(sentence) for sentence in example.sentences] for example in examples]
        tags = [[["O"] * len(sentence) for sentence in document] for document in words]
        answers = zip((example.id for example in examples), words, tags, strict=True)
        return [{"id": i, "words": w, "tags": t, "entities": []} for i, w, t in answers], 0

    predictor.task, predictor.predict = get_task("conll2003", labels="O,B-X,I-X"), tagged
    lines = ['{"words": [["The", "cat"], ["It", "sat", "."]]}', '{"words": ["A", "dog"]}']
    (tmp_path / "in.jsonl").write_text("\n".join(lines), encoding="utf-8")
    _run(tmp_path / "in.jsonl", tmp_path / "out.jsonl")
    assert [e.sentences for e in asked] == [(("The", "cat"), ("It", "sat", ".")), (("A", "dog"),)]
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").open(encoding="utf-8")]
    assert found[0]["words"] == [["The", "cat"], ["It", "sat", "."]]
    (tmp_path / "bad.jsonl").write_text('{"words": "The cat"}', encoding="utf-8")
    with pytest.raises(UserError, match="bad.jsonl line 1: words must be a list of words"):
        _run(tmp_path / "bad.jsonl")
