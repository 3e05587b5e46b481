"""The tokenisers of RoBERTa, GPT and ALBERT as TensorFlow operations: equal to those in Python."""

import random
import unicodedata
from pathlib import Path

import pytest
from tokenization_texts import NASTY

from experiments.beyond.sentence_piece.tokenizer import SentencePieceTokenizer
from official_bert.common.errors import UserError
from official_bert.tokenization import ForeignTokenizer
from tests.beyond.successor_tokenizers import (
    TEXTS,
    byte_pairs,
    sentence_piece_model,
    unigram_model,
    word_ends,
)

tf = pytest.importorskip("tensorflow")

_LETTERS = [*"'strevlmd aA1 9,,\t\n\u00a0é½彼\U0001f469.-\u3000\x1cΣΑ΅ﬁ", "1990,", " 9,"]
_WORDS = ["the", "Ġthe", "Ġdog", "Ġ1", "aaa", "'s", "ĠĠĠ", "ll"]


def _texts():
    draw = random.Random(0)
    texts = ["".join(draw.choices(_LETTERS, k=draw.randint(0, 25))) for _ in range(500)]
    return [text for text in [*TEXTS, *NASTY, *texts] if "\ud800" not in text]


def _check(graph, tokenizer, texts):
    found = graph.tokenize_with_offsets(tf.constant([text.encode() for text in texts]))
    columns = (found.ids.to_list(), found.starts.to_list(), found.ends.to_list())
    for text, ids, starts, ends in zip(texts, *columns, strict=True):
        expected, spans = tokenizer.encode_with_offsets(text)
        assert (ids, list(zip(starts, ends, strict=True))) == (expected, spans), text
    assert graph(tf.constant([text.encode() for text in texts])).to_list() == columns[0]
    assert graph(tf.constant([], tf.string)).shape[0] == 0


def _check_saved(graph, text, folder):
    """Check a SavedModel, which hides the tokeniser as served models do."""
    module = tf.Module()
    module.resources, signature = graph.resources, [tf.TensorSpec([None], tf.string)]
    module.ids = tf.function(lambda texts: graph(texts).to_tensor(), input_signature=signature)
    tf.saved_model.save(module, str(folder))
    found = tf.saved_model.load(str(folder)).ids(tf.constant([text]))
    assert found.numpy().tolist() == graph(tf.constant([text])).to_list()


@pytest.mark.parametrize("add_prefix_space", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_byte_pairs(add_prefix_space):
    from experiments.beyond.byte_pair.in_graph import InGraphBytePairs

    tokenizer = byte_pairs(_WORDS, add_prefix_space=add_prefix_space)
    _check(InGraphBytePairs(tokenizer), tokenizer, _texts())


def test_bytes_that_are_no_text_are_ignored():
    from experiments.beyond.byte_pair.in_graph import InGraphBytePairs

    tokenizer = byte_pairs(_WORDS)
    found = InGraphBytePairs(tokenizer)(tf.constant([b"the\xff dog", b"\xff"])).to_list()
    assert found == [tokenizer.encode("the dog"), []]


@pytest.mark.slow
def test_word_ends():
    from experiments.beyond.gpt.in_graph import InGraphWordEnds

    tokenizer = word_ends(["the", "dog", "aaa", "ll", "1990"], "strevlmd19,.é彼'")
    assert "the</w>" in tokenizer.tokenize(TEXTS[0]) and "<unk>" in tokenizer.tokenize(TEXTS[0])
    _check(InGraphWordEnds(tokenizer), tokenizer, _texts())


@pytest.mark.parametrize("do_lower_case", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_sentence_piece(do_lower_case, tmp_path):
    pytest.importorskip("sentencepiece")
    from experiments.beyond.sentence_piece.in_graph import InGraphSentencePiece

    tokenizer = SentencePieceTokenizer(sentence_piece_model(), do_lower_case)
    # A run of one letter has several cuts of the same score; which is taken is the library's.
    texts = [text for text in _texts() if "xxx" not in text and "ééé" not in text]
    graph = InGraphSentencePiece(tokenizer)
    _check(graph, tokenizer, texts)
    if do_lower_case:
        _check_saved(graph, TEXTS[0], tmp_path)


def test_unigrams(tmp_path):
    pytest.importorskip("sentencepiece")
    from experiments.beyond.sentence_piece.unigrams import contents_of
    from experiments.beyond.sentence_piece.unigrams_in_graph import InGraphUnigrams

    Path(tmp_path, "m.model").write_bytes(unigram_model())
    tokenizer = ForeignTokenizer(contents_of(tmp_path / "m.model"))
    marked = ["e\u0301", "o\u0302\u0301", "l\u0304\u0323 the", "ﬁ\u0301", "가 か\u3099", "\n\u200d",
              "a\u0600e\u0301b", "<mask>the <s>", "the\u3000 dog\u0085"]  # fmt: skip
    # The library gives other places to what stands beside a character that is dropped.
    texts = [text for text in _texts() if not {"Cc"} & {*map(unicodedata.category, text)}]
    _check(InGraphUnigrams(tokenizer), tokenizer, [*texts, *marked])
    refused = {**tokenizer.contents, "pre_tokenizer": {"type": "WhitespaceSplit"}}
    with pytest.raises(UserError, match="cannot compute this tokeniser's pre_tokenizer"):
        InGraphUnigrams(ForeignTokenizer(refused))
