"""Offsets: the text that a piece covers normalises to that piece."""

import pytest
from hypothesis import given, settings
from tokenization_texts import (
    NASTY,
    REAL,
    code_points_but_ideographs,
    corpus_lines,
    letters_vocab,
    texts,
)

from official_bert.tokenization import SPECIAL_TOKENS, BertTokenizer, reference

TOY = [*SPECIAL_TOKENS, "caf", "##es", "cafe", "##s", "a", "##b", "x", "ᄀ", "##ᅡ", "##ᆨ", "彼", "!"]


def assert_offsets_hold(tokenizer: BertTokenizer, text: str):
    ids, spans = tokenizer.encode_with_offsets(text)
    assert ids == tokenizer.encode(text)
    for index, (piece_id, (start, end)) in enumerate(zip(ids, spans, strict=True)):
        assert 0 <= start < end <= len(text)
        covered = reference.basic_tokenize(text[start:end], tokenizer.do_lower_case)
        letters = "".join(covered)
        if piece_id == tokenizer.unk_id:
            assert len(covered) == 1, (text, text[start:end])
            continue
        piece = tokenizer.vocab[piece_id].removeprefix("##")
        # A sigma at the end of a slice is final there, and need not be so in the text.
        piece, letters = piece.replace("ς", "σ"), letters.replace("ς", "σ")
        if shares_characters(spans, index):
            assert piece in letters, (text, text[start:end])
        else:
            assert piece == letters, (text, text[start:end])


def shares_characters(spans, index):
    """Return whether a character of the text became several pieces: hangul in its jamo, for
    example."""
    start, end = spans[index]
    before, after = spans[:index], spans[index + 1 :]
    return any(s[1] > start for s in before[-8:]) or any(s[0] < end for s in after[:8])


@pytest.mark.parametrize(
    ("text", "slices"),
    [
        ("Cafés!", ["Café", "s", "!"]),
        ("cafe\u0301s", ["cafe\u0301", "s"]),  # the typed accent belongs to its letter
        (" a\u200bb\t!x", ["a", "b", "!", "x"]),
        ("각", ["각", "각", "각"]),
        ("彼\u0301a", ["彼", "a"]),
        ("a\u0301\u0302 \u0301x\u0301", ["a\u0301\u0302", "x\u0301"]),
        ("!\u0301", ["!\u0301"]),
        ("qq a", ["qq", "a"]),  # the first is [UNK]
    ],
)
def test_slices(text, slices):
    _, spans = BertTokenizer(TOY).encode_with_offsets(text)
    assert [text[start:end] for start, end in spans] == slices


@pytest.mark.slow
@pytest.mark.parametrize("do_lower_case", [True, False])
def test_every_code_point(do_lower_case):
    tokenizer = BertTokenizer(letters_vocab(), do_lower_case)
    for text in NASTY + code_points_but_ideographs():
        assert_offsets_hold(tokenizer, text)


@pytest.mark.parametrize("do_lower_case", [True, False])
def test_fuzz(do_lower_case):
    tokenizer = BertTokenizer(letters_vocab(), do_lower_case)

    @settings(max_examples=300)
    @given(texts())
    def check(text):
        assert_offsets_hold(tokenizer, text)

    check()


@pytest.mark.parametrize(("name", "do_lower_case"), REAL)
def test_real_text(data_dir, name, do_lower_case):
    tokenizer = BertTokenizer(data_dir / "vocab" / name, do_lower_case)
    for line in NASTY + corpus_lines(data_dir, 200):
        assert_offsets_hold(tokenizer, line)
