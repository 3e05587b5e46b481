"""A test file whose words have no tags is predicted, not scored."""

import json

import pytest

from data_prep.tasks.tagging.conll import Conll
from official_bert.common.errors import UserError

TRAIN = 20 * "EU B-ORG\nrejects O\nGerman B-MISC\ncall O\n\n"
WORDS = (("EU", "rejects"), ("German", "call"))


def rows(**more):
    return "".join(json.dumps({"tokens": words, **more}) + "\n" for words in WORDS)


@pytest.fixture
def read(write):
    def task_and_examples(name, text, **options):
        options |= {"test_file": write(name, text), "dev_fraction": 0.2}
        task = Conll(write("train.txt", TRAIN), **options)
        return task, task.examples("test")

    return task_and_examples


@pytest.mark.parametrize("context", ["document", "sentence"])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("words.txt", "EU\nrejects\n\nGerman\ncall\n"),
        ("numbered.txt", "1 EU\n2 rejects\n\n1 German\n2 call\n"),
        ("under.txt", "EU NNP _\nrejects VBZ _\n\nGerman JJ _\ncall NN _\n"),
        ("dashes.tsv", "EU\t-\nrejects\t-\n\nGerman\t-\ncall\t-\n"),
        ("absent.jsonl", rows()),
        ("empty.jsonl", rows(ner_tags=[])),
        ("null.jsonl", rows(ner_tags=None)),
        ("minus.jsonl", rows(ner_tags=[-1, -1])),
        ("text.jsonl", '{"text": "EU rejects", "label": []}\n{"text": "German call"}\n'),
    ],
)
def test_words_without_tags(read, capsys, context, name, text):
    task, examples = read(name, text, context=context)
    assert [words for one in examples for words in one.sentences] == list(WORDS)
    assert not task.is_labelled(examples) and all(one.tags is None for one in examples)
    assert f"{name}: no word has a tag; they are predicted" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rows.jsonl", rows(ner_tags=["B-ORG", "O"])),
        ("spans.jsonl", '{"text": "EU rejects", "label": [[0, 2, "ORG"]]}\n'),
    ],
)
def test_one_tag_is_enough_to_be_read(read, name, text):
    task, examples = read(name, text)
    assert task.is_labelled(examples)
    with pytest.raises(UserError, match="line 1: .*_"):
        read("tags.txt", "EU _\nrejects B-ORG\n")


def test_a_column_of_tags_that_is_named_counts_alone(read):
    task, examples = read("named.txt", "EU _ x\nrejects _ y\n", tag_column="2")
    assert not task.is_labelled(examples) and examples[0].sentences == (WORDS[0],)
