"""Byte pairs: what RoBERTa has beside the library, and equality with it on real and random text."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenization_texts import NASTY

from experiments.beyond.byte_pair.tokenizer import SPECIAL, BytePairTokenizer
from official_bert.common.errors import UserError
from official_bert.tokenization import load_tokenizer
from official_bert.tokenization.library.tokenizer_json import BYTE_CHARACTERS
from tests.beyond.successor_tokenizers import TEXTS, byte_pairs, learnt_byte_pairs

HARD = Path(__file__).parents[2] / "data_prep" / "hard_sentences.txt"
BLANKS = ["aaaaaaa    ''s  \u3000", " a 's ''s", "a \tb\t ", "\u00a0x\n\n y\x1cz", "", " "]


@pytest.mark.parametrize("add_prefix_space", [False, True])
def test_equal_to_the_library_but_for_special_tokens(tmp_path, add_prefix_space):
    tokenizers = pytest.importorskip("tokenizers")
    learnt = learnt_byte_pairs(str(HARD))
    ours = BytePairTokenizer(learnt.vocab, learnt.merges, add_prefix_space)
    ours.write(tmp_path)
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    lines = [*HARD.read_text(encoding="utf-8").split("\n"), *NASTY[:-3], *TEXTS, *BLANKS]
    for line in (line.replace("<unk>", "<x>") for line in lines):  # to them it is the token
        expected = theirs.encode(line, add_special_tokens=False)
        ids, spans = ours.encode_with_offsets(line)
        assert ids == ours.encode(line) == expected.ids
        if not add_prefix_space:  # theirs count the blank that they add
            assert spans == expected.offsets
    pair = theirs.encode(TEXTS[0], TEXTS[1])
    assert ours(TEXTS[:1], TEXTS[1:2])["input_ids"][0].tolist() == pair.ids
    assert ours.unk_id not in ours.encode("<unk>") and ours.unk_id in theirs.encode("<unk>").ids
    assert ours.encode("\ud800") == ours.encode("?")


@settings(max_examples=100)
@given(st.text(max_size=40))
def test_decoding_gives_the_text_back(text):
    tokenizer = byte_pairs(["Ġthe", "the"])
    text = text.encode("utf-8", "replace").decode()
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_what_a_model_reads():
    tokenizer = byte_pairs(["the", "Ġcat"])
    batch = tokenizer(["the cat", "the"], ["the cat", " cat"])
    the, cat = map(tokenizer.vocab.index, ("the", "Ġcat"))
    assert batch["input_ids"].tolist() == [
        [0, the, cat, 2, 2, the, cat, 2],
        [0, the, 2, 2, cat, 2, 1, 1],
    ]
    assert batch["segment_ids"].tolist() == [[0] * 5 + [1] * 3, [0] * 4 + [1] * 2 + [0] * 2]
    with pytest.raises(UserError, match="max_length=6"):
        tokenizer(["the cat"], ["the cat"], max_length=6)


def test_masks_and_decoding_of_special_tokens():
    tokenizer = byte_pairs(["the", "Ġcat"])
    the, cat = map(tokenizer.vocab.index, ("the", "Ġcat"))
    assert tokenizer.encode_masked("the <mask> cat") == [the, tokenizer.mask_id, cat]
    assert tokenizer.mask_id not in tokenizer.encode("the <mask> cat")
    assert tokenizer.decode([0, the, tokenizer.mask_id, cat, 2, 1]) == "the<mask> cat"


def test_what_continues_a_word():
    tokenizer = byte_pairs(["Ġcat", "cat"])
    index = tokenizer.vocab.index
    continues = dict(zip(tokenizer.vocab, tokenizer.continues.tolist(), strict=True))
    assert not continues["Ġcat"] and not continues["Ġ"] and not continues["<mask>"]
    assert continues["cat"] and continues[","]
    readable = tokenizer.readable
    assert [readable[index(p)] for p in ("Ġcat", "cat", "<s>")] == ["cat", "##cat", "<s>"]


def test_lines_are_sentences_of_running_text():
    tokenizer = byte_pairs(["Ġcat", "cat"])
    ids, offsets = tokenizer.encode_lines(b"cat\n\n  cat \n")
    cat = tokenizer.vocab.index("Ġcat")
    assert ids.tolist() == [cat, cat] and offsets.tolist() == [0, 1, 1, 2]
    with pytest.raises(UnicodeDecodeError):
        tokenizer.encode_lines(b"\xff\n")


def test_offsets_leave_the_blank_out_and_share_characters():
    tokenizer = byte_pairs(["Ġcat"])
    ids, spans = tokenizer.encode_with_offsets("é cat")
    assert tokenizer.tokenize("é cat") == ["Ã", "©", "Ġcat"] and len(ids) == 3
    assert spans == [(0, 1), (0, 1), (2, 5)]


def test_a_worker_gets_the_same_tokenizer():
    tokenizer = byte_pairs(["Ġcat", "dog"])
    copy = pickle.loads(pickle.dumps(tokenizer))
    text = "dog cat doggie"
    assert copy.encode(text) == tokenizer.encode(text) and copy.digest() == tokenizer.digest()
    assert byte_pairs(["Ġcat"]).digest() != tokenizer.digest()
    ids, offsets = copy.encode_batch([text, "", "dog"])
    np.testing.assert_array_equal(offsets, [0, len(copy.encode(text)), len(ids) - 1, len(ids)])


def test_vocab_json_and_merges(tmp_path):
    tokenizer = byte_pairs(["Ġcat", "model"])  # a piece, too, and the field of a tokenizer.json
    ids = {piece: index for index, piece in enumerate(tokenizer.vocab)}
    (tmp_path / "vocab.json").write_text(json.dumps(ids), encoding="utf-8")
    with pytest.raises(UserError, match=r"merges\.txt: cannot be read .* needs the merges"):
        BytePairTokenizer(tmp_path / "vocab.json")
    lines = ["#version: 0.2", *map(" ".join, tokenizer.merges), ""]
    (tmp_path / "merges.txt").write_text("\n".join(lines), encoding="utf-8")
    assert load_tokenizer(tmp_path / "vocab.json").digest() == tokenizer.digest()
    (tmp_path / "merges.txt").write_text("\ufeff" + "\n".join(lines), encoding="utf-8")
    assert load_tokenizer(tmp_path / "vocab.json").digest() == tokenizer.digest()


def test_merges_that_end_too_early(tmp_path):
    """Half a download, cut off at a line, would be a tokeniser of smaller pieces."""
    tokenizer = byte_pairs(["Ġ" + 60 * "cat"])
    tokenizer.write(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    ids = {piece: index for index, piece in enumerate(tokenizer.vocab)}
    (tmp_path / "vocab.json").write_text(json.dumps(ids), encoding="utf-8")
    for kept in (180, 90):
        lines = [" ".join(pair) + "\n" for pair in tokenizer.merges[:kept]]
        (tmp_path / "merges.txt").write_text("".join(lines), encoding="utf-8")
        if kept == 180:
            assert load_tokenizer(tmp_path / "vocab.json").digest() == tokenizer.digest()
    with pytest.raises(UserError, match=r"merges\.txt: 95 of 441 pieces are no merge's; is it who"):
        load_tokenizer(tmp_path / "vocab.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["model"].update(type="WordPiece"), "not one of byte pairs"),
        (lambda c: c["model"].update(end_of_word_suffix="</w>"), "end_of_word_suffix"),
        (lambda c: c.update(normalizer={"type": "Lowercase"}), "normalizer"),
        (lambda c: c.update(pre_tokenizer={"type": "Metaspace"}), "pre_tokenizer"),
        (lambda c: c["model"]["merges"].append(["a"]), "not a pair of pieces"),
        (lambda c: c["model"]["merges"].append(["a", "zz"]), "not a piece of the vocabulary"),
        (lambda c: c["model"]["vocab"].update(new=5), "each once"),
        (lambda c: c["model"]["vocab"].update({"a": "b"}), "whole number"),
        (lambda c: c.update(added_tokens=[{"content": "<s>"}]), "id"),
        (lambda c: c.pop("model"), "version must be a whole number"),
    ],
)
def test_damaged_files(tmp_path, change, message):
    byte_pairs(["Ġcat"]).write(tmp_path)
    contents = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))
    change(contents)
    (tmp_path / "tokenizer.json").write_text(json.dumps(contents), encoding="utf-8")
    with pytest.raises(UserError, match=message):
        BytePairTokenizer(tmp_path / "tokenizer.json")


def test_vocabularies_that_lack_something():
    with pytest.raises(UserError, match="lacks <mask>"):
        BytePairTokenizer([*SPECIAL[:4], *BYTE_CHARACTERS])
    with pytest.raises(UserError, match="lacks the byte 255"):
        BytePairTokenizer([*SPECIAL, *BYTE_CHARACTERS[:-1]])
    with pytest.raises(UserError, match="twice"):
        BytePairTokenizer([*SPECIAL, *BYTE_CHARACTERS, "a"])
