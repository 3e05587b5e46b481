"""The tokeniser as TensorFlow operations gives the ids and offsets of the reference."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from tokenization_texts import (
    NASTY,
    REAL,
    code_points_but_ideographs,
    corpus_lines,
    every_code_point,
    letters_vocab,
    texts,
)

from official_bert.tokenization import SPECIAL_TOKENS, BertTokenizer
from official_bert.tokenization.graph.in_graph import InGraphTokenizer

TOY = [*SPECIAL_TOKENS, "caf", "cafe", "##s", "ο", "##δ", "##ος", "a", "##b", "!", "[", "mask", "]"]


@pytest.fixture(scope="module", params=[True, False], ids=["uncased", "cased"])
def pair(request):
    """Return the reference and the graph, with every character a piece."""
    tokenizer = BertTokenizer(letters_vocab(), request.param)
    return tokenizer, InGraphTokenizer(tokenizer)


def assert_graph_equals_reference(tokenizer, in_graph, texts: list[str]):
    texts = [text for text in texts if not any(0xD800 <= ord(c) < 0xE000 for c in text)]
    pieces = in_graph.tokenize_with_offsets(tf.constant(texts, tf.string))
    columns = [values.to_list() for values in pieces]
    assert pieces.ids.dtype == tf.int32 and [len(column) for column in columns] == [len(texts)] * 3
    for text, ids, starts, ends in zip(texts, *columns, strict=True):
        assert (ids, list(zip(starts, ends, strict=True))) == tokenizer.encode_with_offsets(text)


@pytest.mark.slow
def test_every_code_point(pair):
    """Ids by the fast tokeniser, which equals the reference on these texts (another test)."""
    tokenizer, in_graph = pair
    texts = every_code_point()
    expected, offsets = tokenizer.encode_batch(texts)
    found = in_graph(tf.constant(texts))
    np.testing.assert_array_equal(found.values, expected)
    np.testing.assert_array_equal(found.row_splits, offsets)
    hangul = every_code_point()[0xAC00 // 64 : 0xAE00 // 64]
    assert_graph_equals_reference(*pair, NASTY + code_points_but_ideographs() + hangul)


def test_fuzz(pair):
    @settings(max_examples=200)
    @given(texts())
    def check(text):
        assert_graph_equals_reference(*pair, [text, "a" + text])

    check()


def test_nothing_in_nothing_out(pair):
    _, in_graph = pair
    assert in_graph(tf.constant([], tf.string)).to_list() == []
    assert in_graph(tf.constant(["", " ", "\0"])).to_list() == [[], [], []]


@pytest.mark.parametrize(("name", "do_lower_case"), REAL)
def test_real_vocabularies(data_dir, name, do_lower_case):
    tokenizer = BertTokenizer(data_dir / "vocab" / name, do_lower_case)
    lines = NASTY + corpus_lines(data_dir, 200)
    assert_graph_equals_reference(tokenizer, InGraphTokenizer(tokenizer), lines)


def test_invalid_bytes_are_ignored():
    tokenizer = BertTokenizer(TOY)
    raw = [b"caf\xc3\xa9\xffs!", b"\xe2\x82", b"a\xc3 b", b"\xed\xa0\x80a"]
    expected = [tokenizer.encode(text.decode("utf-8", "ignore")) for text in raw]
    assert InGraphTokenizer(tokenizer)(tf.constant(raw)).to_list() == expected
