"""One file of tags or of questions gives train and dev; what belongs together stays on one side."""

import json

import pytest

from data_prep.tasks import get_task
from official_bert.common.errors import UserError

WORDS = ("Anna", "Bonn", "Cyril", "Delhi", "Emma", "Fiji")


def _tags(path, documents):
    """Write a token a line: {number of the document: its sentences}, each a word and "sat"."""
    blocks = []
    for document in documents:
        blocks += ["-DOCSTART- O\n"] if len(documents) > 1 else []
        blocks += [f"{name} B-{kind}\n{verb} O\n" for name, verb, kind in document]
    path.write_text("\n".join(blocks))
    return str(path)


def _sentences(count, start=0):
    kinds = ("PER", "LOC")
    return [(WORDS[i % 6], f"sat{i}", kinds[i % 2]) for i in range(start, start + count)]


def _questions(path, paragraphs, each=3):
    rows = [
        {"id": f"{p}/{q}", "question": f"Who sat {q}?", "context": f"Anna{p} sat. Bob sat.",
         "answers": {"text": [f"Anna{p}"], "answer_start": [0]}}
        for p in range(paragraphs) for q in range(each)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def _words(examples):
    return [words for example in examples for words in example.sentences]


@pytest.mark.parametrize("context", ["document", "sentence"])
def test_sentences_of_one_document_are_held_out(tmp_path, capsys, context):
    path = _tags(tmp_path / "mine.conll", [_sentences(40)])
    task = get_task("ner", path, dev_fraction=0.1, context=context)
    train, dev = task.examples("train"), task.examples("dev")
    assert len(_words(dev)) == 4 and len(_words(train)) == 36
    assert not set(_words(train)) & set(_words(dev))
    assert len(dev) == (1 if context == "document" else 4)
    assert "4 of 40 sentences held out as dev" in capsys.readouterr().err
    assert get_task("ner", path, dev_fraction=0.1, context=context).examples("dev") == dev
    assert task.labels == ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]


def test_documents_stay_whole_and_a_kind_of_the_held_out_one_is_known(tmp_path):
    documents = [_sentences(4, 4 * i) for i in range(10)]
    documents[3] = [(name, verb, "ORG") for name, verb, _ in documents[3]]
    path = _tags(tmp_path / "mine.conll", documents)
    sizes = set()
    for fraction in (0.1, 0.3, 0.9):
        task = get_task("ner", path, dev_fraction=fraction)
        train, dev = task.examples("train"), task.examples("dev")
        assert len(train) + len(dev) == 10 and {len(d.sentences) for d in (*train, *dev)} == {4}
        assert len(dev) == round(10 * fraction) and "B-ORG" in task.labels
        sizes.add(len(dev))
    assert sizes == {1, 3, 9}


def test_equal_sentences_stay_on_one_side(tmp_path):
    path = _tags(tmp_path / "mine.conll", [[("Anna", "sat", "PER")] * 9 + _sentences(3)])
    task = get_task("ner", path, dev_fraction=0.5)
    train, dev = set(_words(task.examples("train"))), set(_words(task.examples("dev")))
    assert train and dev and not train & dev
    alone = _tags(tmp_path / "alone.conll", [[("Anna", "sat", "PER")] * 9])
    task = get_task("ner", alone, dev_fraction=0.5)
    with pytest.raises(UserError, match="alone.conll: its sentences .9. cannot.*are of one text"):
        task.examples("dev")


def test_questions_of_a_paragraph_stay_together(tmp_path, capsys):
    path = _questions(tmp_path / "mine.jsonl", 10)
    for version in ("1.1", "2.0"):
        task = get_task(f"squad_v{version}", path, dev_fraction=0.2)
        train, dev = task.examples("train"), task.examples("dev")
        assert (len(train), len(dev)) == (24, 6)
        assert not {e.context for e in train} & {e.context for e in dev}
    assert "6 of 30 questions held out as dev" in capsys.readouterr().err


def test_a_dev_file_is_read_where_there_is_one(tmp_path):
    (tmp_path / "folder").mkdir()
    _tags(tmp_path / "folder" / "train.txt", [_sentences(8)])
    _tags(tmp_path / "folder" / "valid.txt", [_sentences(2, 100)])
    task = get_task("ner", str(tmp_path / "folder"), dev_fraction=0.5)
    assert [len(_words(task.examples(split))) for split in ("train", "dev")] == [8, 2]
    path = _questions(tmp_path / "mine.jsonl", 4)
    _questions(tmp_path / "other.jsonl", 1)
    task = get_task("squad", path, dev_fraction=0.5, dev_file="other.jsonl")
    assert [len(task.examples(split)) for split in ("train", "dev")] == [12, 3]


@pytest.mark.parametrize("name, unit", [("ner", "sentences"), ("squad", "questions")])
def test_the_message_names_the_option_that_splits_a_file(tmp_path, name, unit):
    path = tmp_path / "mine.txt"
    path.write_text("Anna B-PER\n")
    with pytest.raises(UserError, match=rf"or dev_fraction \(0.1, a tenth of its {unit}"):
        get_task(name, str(path)).examples("dev")
