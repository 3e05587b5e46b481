"""Prediction with a real, untrained model on whole files, as a benchmark has them."""

import json

import pytest
import tiny_runs

from data_prep.tasks import get_task
from experiments import predict
from official_bert import BertEncoder, BertSpan, BertTagger, BertTokenizer
from official_bert.checkpoints import model_folder


@pytest.fixture
def save(tmp_path):
    """Make a model folder as fine-tuning on a task leaves it."""
    tokenizer = BertTokenizer(tiny_runs.write_vocab(tmp_path / "vocab.txt"))

    def write(task, model):
        described = {"name": task.name, "options": task.settings()}
        settings = {"labels": task.head["labels"], "max_seq_length": 16, "task": described}
        model_folder.save(tmp_path / "model", model, tokenizer, settings)
        return str(tmp_path / "model")

    return write


def test_squads_own_files(save, tmp_path):
    task = get_task("squad_v2.0", max_query_length=4, doc_stride=4)
    model = save(task, BertSpan(BertEncoder(tiny_runs.bert(), seed=1), seed=1))
    context = "the old cat sees a small bird . two red trees under the moon . the dog likes a day ."
    asked = [{"id": f"q{n}", "question": "who sees a bird"} for n in range(2)]
    content = {"data": [{"title": "t", "paragraphs": [{"context": context, "qas": asked}]}]}
    path = tmp_path / "asked.json"
    path.write_text(json.dumps(content))
    counts = predict.run(model, str(path), str(tmp_path / "answers.json"), progress=False)
    assert counts == {"lines": 2, "empty": 0, "truncated": 0}
    answers = json.loads((tmp_path / "answers.json").read_text())
    assert set(answers) == {"q0", "q1"} and answers["q0"] == answers["q1"]
    assert answers["q0"] in context
    best = json.loads((tmp_path / "nbest_answers.json").read_text())["q0"]
    assert {"text", "probability"} <= set(best[0])
    odds = json.loads((tmp_path / "null_odds_answers.json").read_text())
    assert (odds["q0"] > 0) == (answers["q0"] == "")  # above the threshold there is no answer
    lines = tmp_path / "asked.jsonl"
    lines.write_text(json.dumps({"question": asked[0]["question"], "context": context}))
    predict.run(model, str(lines), str(tmp_path / "line.jsonl"), progress=False)
    assert json.loads((tmp_path / "line.jsonl").read_text())["text"] == answers["q0"]


def test_the_official_file_of_entities(save, tmp_path):
    task = get_task("conll2003", labels="O,B-X,I-X")
    model = save(task, BertTagger(BertEncoder(tiny_runs.bert(), seed=1), 3, seed=1))
    path = tmp_path / "texts.txt"
    path.write_text("-DOCSTART- O\n\nthe O\ncat O\n\ntwo O\ndogs O\n")
    predict.run(model, str(path), str(tmp_path / "tags.txt"), progress=False, format="official")
    lines = (tmp_path / "tags.txt").read_text().splitlines()
    words = [line.split()[0] for line in lines if line]
    assert words == ["-DOCSTART-", "the", "cat", "two", "dogs"] and lines[4] == ""
    assert {line.split()[1] for line in lines if line} <= {"O", "B-X", "I-X"}
