"""GPT's byte pairs against the library `tokenizers`, its files and its rows."""

import json
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from experiments.beyond.byte_pair.tokenizer import BytePairTokenizer
from experiments.beyond.gpt.word_ends import WordEndTokenizer
from official_bert.common.errors import UserError
from official_bert.tokenization import load_tokenizer

HARD = Path(__file__).parents[2] / "data_prep" / "hard_sentences.txt"
PIECES = ["<unk>", *"lowerst", "w</w>", "t</w>", "lo", "low</w>", "es", "est</w>"]
MERGES = [("l", "o"), ("e", "s"), ("lo", "w</w>"), ("es", "t</w>")]


@pytest.fixture
def tokenizer():
    return WordEndTokenizer(PIECES, MERGES)


def test_the_last_piece_of_a_word_says_so(tokenizer):
    assert tokenizer.tokenize("Low LOWEST, é") == [
        "low</w>", "lo", "w", "est</w>", "<unk>", "<unk>"
    ]  # fmt: skip
    ids, spans = tokenizer.encode_with_offsets("Low lowest,")
    assert ids == tokenizer.encode("Low lowest,")
    assert spans == [(0, 3), (4, 6), (6, 7), (7, 10), (10, 11)]
    assert tokenizer.decode(ids[:-1]) == "low lowest"
    assert "est" in tokenizer.readable
    with pytest.raises(UserError, match="do not say where words begin"):
        _ = tokenizer.continues


def test_rows_have_a_delimiter_and_an_extract_token(tokenizer):
    start, delimiter, extract = range(len(PIECES), len(PIECES) + 3)
    low = PIECES.index("low</w>")
    batch = tokenizer(["low", "low low"], ["low", "low"])
    assert batch["input_ids"].tolist() == [
        [start, low, delimiter, low, extract, extract],
        [start, low, low, delimiter, low, extract],
    ]
    assert batch["input_mask"].sum(axis=1).tolist() == [5, 6]
    assert tokenizer("low")["input_ids"].tolist() == [[start, low, extract]]
    short = tokenizer(["low low low"], ["low low low"], max_length=6, truncation="head")
    assert short["input_ids"].tolist() == [[start, low, low, delimiter, low, extract]]


def test_files(tmp_path, tokenizer):
    tokenizer.write(tmp_path)
    again = load_tokenizer(tmp_path / "tokenizer.json")
    assert isinstance(again, WordEndTokenizer) and again.digest() == tokenizer.digest()
    # The published form: two files, nothing for the ends of texts.
    vocab = {piece: index for index, piece in enumerate(PIECES)}
    (tmp_path / "vocab.json").write_text(json.dumps(vocab))
    merges = "".join(f"{a} {b}\n" for a, b in MERGES)
    (tmp_path / "merges.txt").write_text(f"#version: 0.2\n{merges}")
    assert load_tokenizer(tmp_path / "vocab.json").digest() == tokenizer.digest()
    with pytest.raises(UserError, match="end_of_word_suffix"):
        BytePairTokenizer(tmp_path / "tokenizer.json")


def test_vocabularies_that_cannot_be_used():
    with pytest.raises(UserError, match="merge 0, 'l x'"):
        WordEndTokenizer(PIECES, [("l", "x")])
    with pytest.raises(UserError, match="lacks <unk>"):
        WordEndTokenizer(PIECES[1:], MERGES)
    with pytest.raises(UserError, match="twice"):
        WordEndTokenizer([*PIECES, "lo"], MERGES)


def test_equal_to_tokenizers(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    lines = HARD.read_text(encoding="utf-8").split("\n")
    theirs = tokenizers.Tokenizer(
        tokenizers.models.BPE(unk_token="<unk>", end_of_word_suffix="</w>")
    )
    theirs.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<unk>"], end_of_word_suffix="</w>", show_progress=False
    )
    theirs.train_from_iterator(lines, trainer)
    theirs.save(str(tmp_path / "tokenizer.json"))
    ours = WordEndTokenizer(tmp_path / "tokenizer.json")

    @settings(max_examples=200)
    @given(st.text(st.sampled_from(list("aàbdeéßlostöwrÄ彼 .,!'-\n\t1½")), max_size=30))
    @example("lower Lowest über é")
    def check(text):
        expected = theirs.encode(text.replace("<unk>", "<x>"), add_special_tokens=False)
        assert ours.encode(text.replace("<unk>", "<x>")) == expected.ids

    check()
    for line in lines:
        check.hypothesis.inner_test(line)
    assert any(len(ours.encode(line)) > 10 for line in lines)
