"""ALBERT's tokeniser: what its own code does around the library."""

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenization_texts import NASTY

from experiments.beyond.sentence_piece.tokenizer import SentencePieceTokenizer, normalized
from official_bert.checkpoints.hugging_face import huggingface_tokenizer
from official_bert.common.errors import UserError
from official_bert.tokenization import load_tokenizer
from tests.beyond.successor_tokenizers import TEXTS, sentence_piece_model

sentencepiece = pytest.importorskip("sentencepiece")


@pytest.fixture(scope="module")
def tokenizer():
    return SentencePieceTokenizer(sentence_piece_model())


def test_text_before_the_library():
    assert normalized("  Café\t\nnaïve ﬁx ", True) == "cafe naive fix"
    assert normalized("ΟΔΥΣΣΕΥΣ É", False) == "ΟΔΥΣΣΕΥΣ E"
    assert normalized("ΟΔΥΣΣΕΥΣ", True) == "οδυσσευς"


def test_a_number_is_the_same_before_a_comma(tokenizer):
    assert "1990," in tokenizer.vocab and "▁9," in tokenizer.vocab
    assert tokenizer.tokenize("9, 9")[-1] == tokenizer.tokenize("9")[-1]
    assert tokenizer.tokenize("in 1990, it")[-2:] == [",", "▁it"]
    assert "1990," not in tokenizer.tokenize("in 1990, it")


@settings(max_examples=200)
@given(st.text(max_size=30))
def test_pieces_are_those_of_the_library(text):
    tokenizer = SentencePieceTokenizer(sentence_piece_model(()))
    library = sentencepiece.SentencePieceProcessor(model_proto=sentence_piece_model(()))
    assert tokenizer.parts == {}
    assert tokenizer.encode(text) == library.encode(normalized(text, True))
    ids, spans = tokenizer.encode_with_offsets(text)
    assert ids == tokenizer.encode(text)
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    assert [start for start, _ in spans] == sorted(start for start, _ in spans)


@pytest.mark.parametrize("text", [*TEXTS, *NASTY])
def test_spans_spell_their_pieces(tokenizer, text):
    ids, spans = tokenizer.encode_with_offsets(text)
    assert ids == tokenizer.encode(text)
    for index, (start, end) in zip(ids, spans, strict=True):
        part = text[start:end]
        if index != tokenizer.unk_id and part.isascii() and part.isprintable():
            assert part.lower() == tokenizer.vocab[index].removeprefix("▁")


def test_what_a_model_reads(tokenizer):
    batch = tokenizer(["the dog"], ["the cat"])
    assert tokenizer.special.cls == tokenizer.vocab[2] and tokenizer.pad_id == 0
    row = batch["input_ids"][0].tolist()
    assert row[0] == 2 and row.count(3) == 2 and row[-1] == 3
    assert tokenizer.decode(row) == "the dog the cat"
    assert tokenizer.mask_id in tokenizer.encode_masked("the [MASK] sat")
    assert tokenizer.mask_id not in tokenizer.encode("the [MASK] sat")


def test_what_continues_a_word(tokenizer):
    continues = dict(zip(tokenizer.vocab, tokenizer.continues.tolist(), strict=True))
    assert not continues["▁the"] and not continues["[MASK]"] and continues["s"]
    readable = dict(zip(tokenizer.vocab, tokenizer.readable, strict=True))
    assert (readable["▁the"], readable["s"], readable["<unk>"]) == ("the", "##s", "<unk>")


def test_files(tmp_path, tokenizer):
    tokenizer.write(tmp_path)
    again = load_tokenizer(tmp_path / "spiece.model")
    asked = huggingface_tokenizer.read(tmp_path, do_lower_case=False, kind="sentence_piece")
    assert again.do_lower_case and not asked.do_lower_case
    assert again.digest() == tokenizer.digest()
    assert pickle.loads(pickle.dumps(again)).encode(TEXTS[1]) == tokenizer.encode(TEXTS[1])
    assert load_tokenizer(tmp_path / "spiece.model", False).digest() != tokenizer.digest()
    with pytest.raises(UserError, match="cannot be read"):
        load_tokenizer(tmp_path / "none.model")
