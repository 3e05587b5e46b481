"""Guests' tokenisers where the core uses one: layers, exports, answers, records."""

import json

import pytest
import tokenizer_zoo
from corpora import write_corpus
from test_tokenization_foreign import EACH, different_in_graph

from data_prep.create_pretraining_data import create
from experiments.beyond.sentence_piece.tokenizer import SentencePieceTokenizer
from official_bert.common.errors import UserError
from official_bert.export.formats.id_export import write_tokenizer_json
from official_bert.export.settings import ServingSettings
from official_bert.tokenization import load_tokenizer
from tests import test_growth
from tests.beyond.successor_tokenizers import byte_pairs, sentence_piece_model, word_ends
from tests.data_prep.pretraining import test_packings
from tests.official_bert import test_export_text_answers, test_export_tokenizer_json
from tests.official_bert.test_export_text_answers import loaded as loaded
from tests.official_bert.test_export_tokenizer_layer import (
    test_rows_are_those_of_the_tokeniser as test_layers,
)

_RECORDS = {"max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 2}
__all__ = ["test_layers"]


def unigrams():
    pytest.importorskip("sentencepiece")
    return SentencePieceTokenizer(sentence_piece_model())


@pytest.fixture(params=[lambda: byte_pairs(["Ġthe", "dog"]), unigrams])
def tokenizer(request):
    return request.param()


@pytest.fixture
def pieces():
    return byte_pairs(["Ġdog", "Ġthe", "cat"], add_prefix_space=True)


def test_answers(loaded):
    test_export_text_answers.test_taggings(loaded, "first")
    test_export_text_answers.test_spans(loaded, "2.0")
    test_export_text_answers.test_choices(loaded)


@pytest.mark.parametrize("truncation", ["head", "tail"])
@pytest.mark.parametrize("make", [byte_pairs, lambda: word_ends(["ab", "cd"], "abcdefghij.")])
def test_the_file_beside_an_export(tmp_path, make, truncation):
    test_export_tokenizer_json.check_rows(tmp_path, make(), truncation)


def test_an_export_without_such_a_file_says_so(tmp_path):
    (note,) = write_tokenizer_json(tmp_path, unigrams(), "classification", ServingSettings())
    assert "spiece.model" in note and not [*tmp_path.iterdir()]


@pytest.mark.parametrize("name", tokenizer_zoo.OF_BYTES)
def test_graphs_of_foreign_byte_pairs_are_equal(name, tmp_path):
    made = tokenizer_zoo.OF_BYTES[name]()
    assert different_in_graph(made, tmp_path, tokenizer_zoo.texts(EACH)) == []


@pytest.fixture
def vocabularies(tmp_path):
    words = [f"Ġword{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
    byte_pairs(["ing", "ed", *words]).write(tmp_path)
    return {"byte_pair": str(tmp_path / "tokenizer.json")}


@pytest.mark.parametrize("packing", ["segments", "pairs", "single"])
@pytest.mark.parametrize("whole_words", [False, True])
def test_records(tmp_path, vocabularies, packing, whole_words):
    corpus = write_corpus(tmp_path / "a.txt", documents=30)
    test_packings.test_rows(tmp_path, corpus, vocabularies, "byte_pair", packing, whole_words)


def test_records_keep_one_file_of_two(tmp_path):
    corpus = write_corpus(tmp_path / "a.txt", documents=30)
    pieces = {piece: index for index, piece in enumerate(byte_pairs().vocab)}
    (tmp_path / "vocab.json").write_text(json.dumps(pieces), encoding="utf-8")
    (tmp_path / "merges.txt").write_text("")
    create(corpus, str(tmp_path / "vocab.json"), str(tmp_path / "r"), **_RECORDS)
    kept = load_tokenizer(tmp_path / "r" / "tokenizer.json")
    assert kept.digest() == byte_pairs().digest()


def test_records_that_a_vocabulary_does_not_suit(tmp_path):
    corpus = write_corpus(tmp_path / "a.txt", documents=3)
    word_ends(["word"], "a.").write(tmp_path)
    options = {"do_whole_word_mask": True, **_RECORDS}
    with pytest.raises(UserError, match="do not say where words begin: whole words are not mask"):
        create(corpus, str(tmp_path / "tokenizer.json"), str(tmp_path / "r"), **options)


GROWTH = {
    "byte pairs": lambda: byte_pairs(["Ġthe", "dog", "aa", "!!", "ab"]).encode,
    "byte pairs, offsets": lambda: byte_pairs(["Ġthe", "dog", "aa"]).encode_with_offsets,
    "unigrams": lambda: unigrams().encode,
    "unigrams, offsets": lambda: unigrams().encode_with_offsets,
}


@pytest.mark.parametrize("name", GROWTH)
def test_time_grows_with_the_text(name):
    """On some patterns, others for each function."""
    test_growth.check(GROWTH[name](), 4, test_growth.PATTERNS[6 * [*GROWTH].index(name) :: 24])


@pytest.mark.slow
@pytest.mark.parametrize("name", GROWTH)
def test_time_grows_with_every_pattern(name):
    test_growth.check(GROWTH[name](), 4)
