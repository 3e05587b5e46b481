"""Inputs that are not a corpus of sentences are refused before work, with what they look like."""

import pytest
from corpora import write_corpus

from data_prep.create_pretraining_data import create
from data_prep.vocab import learn_vocab
from official_bert.common.errors import UserError

SENTENCE = "worda wordb wordc wordd"
OPTIONS = {"max_seq_length": 64, "dupe_factor": 1, "num_workers": 1, "progress": False}


@pytest.fixture
def make(tmp_path, vocab, write):
    """Return make(text, **options): records of a text."""
    output = str(tmp_path / "records")
    return lambda text, **more: create(write("a.txt", text), vocab, output, **OPTIONS, **more)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f'{{"text": "{SENTENCE}"}}\n' * 9, "its lines are JSON"),
        (f'[{{"text": "{SENTENCE}"}},\n {{"text": "x"}}]\n' * 9, "its lines are JSON"),
        (f'{{\n "text": "{SENTENCE}"\n}}\n\n' * 9, "its lines are JSON"),
        (f"<!DOCTYPE html>\n<p>{SENTENCE}</p>\n\n" * 9, "it is HTML or XML"),
        (f"<doc id=1 url=x>\n{SENTENCE}\n</doc>\n" * 9, "WikiExtractor's output"),
        (f"{SENTENCE}\r\r{SENTENCE}\r" * 9, "carriage returns alone"),
        (f"{SENTENCE}\n" * 9, "it is one document.*It has 1 documents of 9.0 sentences of 4 words"),
        (f"{SENTENCE}\n\n" * 9, "a single sentence.*take out the blank lines.*--document_column="),
        (f"The {SENTENCE}. The {SENTENCE}.\n\n" * 9, "a single sentence.*--documents=lines splits"),
        (f"{SENTENCE} " * 99 + f"\n\n{SENTENCE}\n", "lines of more than 128 words"),
        ("\u4e2d\u6587" * 99 + f"\n\n{SENTENCE}\n{SENTENCE}\n", "lines of more than 128 words"),
    ],
)
def test_what_cannot_be_a_corpus_is_refused_unless_told_otherwise(make, text, message):
    with pytest.raises(UserError, match=f"(?s){message}.*--accept_input"):
        make(text)
    assert make(text, accept_input=True, accept_loss=True)["counts"]["examples"] > 0


def test_one_document_too_long_for_the_sample_is_found_all_the_same(make):
    with pytest.raises(UserError, match="the input is one document"):
        make(f"{SENTENCE}\n" * 20_000)


def test_a_corpus_is_no_such_thing_and_its_cut_tokens_are_counted(make, tmp_path):
    with open(write_corpus(tmp_path / "b.txt", documents=40)) as file:
        counts = make(file.read())["counts"]
    assert 0 < counts["cut_tokens"] < counts["tokens"]
    # Half of a text in lines that are not sentences: most of it is cut off.
    counts = make(f"{SENTENCE} " * 900 + f"\n\n{SENTENCE}\n", accept_input=True, overwrite=True)
    assert counts["counts"]["cut_tokens"] > 5 * counts["counts"]["tokens"]


@pytest.mark.parametrize("start", ['{"text": "a"}', "<doc id=1 url=x>"])
def test_vocabularies_are_not_learned_from_marks(write, start):
    with pytest.raises(UserError, match="the input is not plain text"):
        learn_vocab(write("a.txt", f"{start}\n" * 9), 30)
