"""The reference algorithm, vocabulary files, the fast path and decoding."""

import pickle
import random
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenization_texts import NASTY, REAL, corpus_lines, every_code_point, letters_vocab, texts

from official_bert.common.errors import UserError
from official_bert.tokenization import (
    SPECIAL_TOKENS,
    BertTokenizer,
    fast,
    load_vocab,
    reference,
    write_vocab,
)

TOY = [*SPECIAL_TOKENS, "want", "##want", "##ed", "wa", "un", "runn", "##ing", ",", "!"]
_SURROGATE = re.compile("[\ud800-\udfff]")  # no part of a UTF-8 file


def assert_fast_equals_reference(tokenizer: BertTokenizer, texts: list[str]):
    ids, offsets = tokenizer.encode_batch(texts)
    assert ids.dtype == np.int32 and offsets.dtype == np.int64
    assert offsets.shape == (len(texts) + 1,) and offsets[0] == 0 and offsets[-1] == len(ids)
    expected = {text: tokenizer.encode(text) for text in texts}
    for index, text in enumerate(texts):
        assert ids[offsets[index] : offsets[index + 1]].tolist() == expected[text], text
    lines = [text for text in texts if "\n" not in text and not _SURROGATE.search(text)]
    ids, offsets = tokenizer.encode_lines("".join(f"{line}\n" for line in lines).encode())
    assert offsets.shape == (len(lines) + 1,) and offsets[0] == 0 and offsets[-1] == len(ids)
    for index, line in enumerate(lines):
        assert ids[offsets[index] : offsets[index + 1]].tolist() == expected[line], line


class TestReference:
    @pytest.mark.parametrize(
        ("text", "do_lower_case", "words"),
        [
            (" \tHeLLo!how  \n Are yoU?  ", True, ["hello", "!", "how", "are", "you", "?"]),
            (" \tHeLLo!how  \n Are yoU?  ", False, ["HeLLo", "!", "how", "Are", "yoU", "?"]),
            ("H\u00e9llo", True, ["hello"]),
            ("H\u00e9llo", False, ["H\u00e9llo"]),
            ("ah\u535a\u63a8zz", True, ["ah", "\u535a", "\u63a8", "zz"]),
            ("ΟΔΟΣ", True, ["οδος"]),  # sigma at the end of a word
            ("Straße ﬁ …", True, ["straße", "ﬁ", "…"]),  # no compatibility folding
            ("a\u200bb\u0085c\ufffdd", True, ["abcd"]),
            ("a\u2028b\u00a0c", True, ["a", "b", "c"]),
            ("\ue000", True, ["\ue000"]),  # private use is not a control character to the original
        ],
    )
    def test_words(self, text, do_lower_case, words):
        assert reference.basic_tokenize(text, do_lower_case) == words

    def test_pieces_are_the_longest_from_the_left(self):
        tokenizer = BertTokenizer(TOY)
        assert tokenizer.tokenize("UNwant\u00e9d,running") == [
            "un", "##want", "##ed", ",", "runn", "##ing"
        ]  # fmt: skip
        assert tokenizer.tokenize("unwantedX running") == ["[UNK]", "runn", "##ing"]
        assert tokenizer.tokenize("") == []

    def test_word_limit_counts_characters(self):
        tokenizer = BertTokenizer([*SPECIAL_TOKENS, "é", "##é"], do_lower_case=False)
        assert len(tokenizer.tokenize("é" * 200)) == 200
        assert tokenizer.tokenize("é" * 201) == ["[UNK]"]

    def test_special_tokens_in_text_are_text(self):
        tokenizer = BertTokenizer([*SPECIAL_TOKENS, "[", "mask", "]"])
        assert tokenizer.tokenize("[MASK]") == ["[", "mask", "]"]

    def test_sentences_of_the_lectures(self, data_dir):
        chinese = BertTokenizer(data_dir / "vocab/bert-base-chinese-vocab.txt")
        assert chinese.tokenize("彼得住在哪裡？") == list("彼得住在哪裡？")
        multilingual = BertTokenizer(
            data_dir / "vocab/bert-base-multilingual-cased-vocab.txt", do_lower_case=False
        )
        pieces = multilingual.tokenize("폼페이오 장관의 아시아 순방일정이 어떻게 되나요?")
        assert "[UNK]" not in pieces
        assert "".join(piece.removeprefix("##") for piece in pieces) == (
            "폼페이오장관의아시아순방일정이어떻게되나요?"
        )
        assert pieces[-1] == "?"


class TestVocabulary:
    @pytest.mark.parametrize(("name", "do_lower_case"), REAL)
    def test_real_files_survive_a_round_trip(self, data_dir, tmp_path, name, do_lower_case):
        tokenizer = BertTokenizer(data_dir / "vocab" / name, do_lower_case)
        assert tokenizer.pad_id == 0 and tokenizer.unk_id == 100
        assert (tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id) == (101, 102, 103)
        write_vocab(tmp_path / "vocab.txt", tokenizer.vocab)
        assert load_vocab(tmp_path / "vocab.txt") == tokenizer.vocab

    def test_line_number_is_the_id(self, tmp_path):
        path = tmp_path / "vocab.txt"
        path.write_bytes("\n".join([*SPECIAL_TOKENS, "\u2028", "##\x85", "é ", "z"]).encode())
        assert load_vocab(path) == [*SPECIAL_TOKENS, "", "##", "é", "z"]

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "empty"),
            (b"[PAD]\n[UNK]\n[CLS]\na\n", r"lacks \[SEP\]; BERT needs"),
            (b"[PAD]\n[UNK]\n\xff\xfe\n", "line 3: not UTF-8"),
        ],
    )
    def test_unusable_files_are_refused(self, tmp_path, content, message):
        path = tmp_path / "vocab.txt"
        path.write_bytes(content)
        with pytest.raises(UserError, match=message):
            BertTokenizer(path)

    def test_missing_file_and_folder_are_named(self, tmp_path):
        with pytest.raises(UserError, match="No such file .* give a vocabulary file"):
            BertTokenizer(tmp_path / "none.txt")
        with pytest.raises(UserError, match="is not a file but a folder"):
            BertTokenizer(str(tmp_path))

    def test_pieces_with_blanks_are_not_written(self, tmp_path):
        with pytest.raises(UserError, match="holds blanks"):
            write_vocab(tmp_path / "vocab.txt", [*SPECIAL_TOKENS, "a\nb"])
        assert not list(Path(tmp_path).iterdir())


class TestFast:
    @pytest.mark.parametrize(("name", "do_lower_case"), REAL)
    def test_real_vocabularies(self, data_dir, name, do_lower_case):
        tokenizer = BertTokenizer(data_dir / "vocab" / name, do_lower_case)
        assert_fast_equals_reference(tokenizer, NASTY + corpus_lines(data_dir, 1500))

    @pytest.mark.slow
    @pytest.mark.parametrize("do_lower_case", [True, False])
    def test_every_code_point(self, do_lower_case):
        tokenizer = BertTokenizer(letters_vocab(), do_lower_case)
        assert_fast_equals_reference(tokenizer, NASTY + every_code_point())

    @pytest.mark.parametrize("do_lower_case", [True, False])
    def test_fuzz(self, do_lower_case):
        tokenizer = BertTokenizer(letters_vocab(), do_lower_case)

        @settings(max_examples=300)
        @given(st.lists(texts(), max_size=5))
        def check(texts):
            assert_fast_equals_reference(tokenizer, texts)

        check()

    def test_full_tables_and_caches_change_nothing(self, monkeypatch):
        monkeypatch.setattr(fast, "_SLOT_BITS", 3)
        monkeypatch.setattr(fast, "_MAX_CACHED_WORDS", 40)
        monkeypatch.setattr(fast, "_BLOCK_CHARACTERS", 100)
        generator = random.Random(0)
        words = ["".join(generator.choices("abc,é", k=generator.randint(1, 25))) for _ in range(99)]
        lines = [" ".join(generator.choices(words, k=12)) for _ in range(200)]
        assert_fast_equals_reference(BertTokenizer(letters_vocab()), lines)

    def test_nothing_in_nothing_out(self):
        for lines in ([], [""], ["", " ", "\0"]):
            ids, offsets = BertTokenizer(TOY).encode_batch(lines)
            assert ids.tolist() == [] and offsets.tolist() == [0] * (len(lines) + 1)

    def test_lines_that_are_not_utf8(self):
        with pytest.raises(UnicodeDecodeError):
            BertTokenizer(TOY).encode_lines(b"want\nw\xe9nt\n")

    def test_a_pickled_tokenizer_works(self):
        tokenizer = BertTokenizer(TOY)
        tokenizer.encode_batch(["want"])
        ids, _ = pickle.loads(pickle.dumps(tokenizer)).encode_batch(["want"])
        assert ids.tolist() == [TOY.index("want")]


class TestDecode:
    @pytest.mark.parametrize(
        "text",
        [
            "unaffable, naive!",
            '"i don\'t know," said mr. smith-jones; "it costs $3.14 (1,000 times), at 10:30!"',
            "the dog's house is 50% full.",
            "他住在哪里？",
        ],
    )
    def test_readable_text_comes_back(self, text):
        tokenizer = BertTokenizer(letters_vocab())
        assert tokenizer.decode(tokenizer.encode(text)) == text

    def test_framing_tokens_go_and_masks_stay(self):
        tokenizer = BertTokenizer(TOY)
        ids = [tokenizer.cls_id, TOY.index("un"), TOY.index("##want"), TOY.index("##ed")]
        ids += [tokenizer.mask_id, TOY.index("!"), tokenizer.sep_id, tokenizer.pad_id]
        assert tokenizer.decode(ids) == tokenizer.decode(np.array(ids)) == "unwanted [MASK]!"
        for outside in (-1, len(TOY)):
            with pytest.raises(IndexError, match=f"id {outside} is outside the vocabulary"):
                tokenizer.decode([outside])


BATCH_WORDS = [*SPECIAL_TOKENS, "a", "b", "c", "##d"]


def test_called_it_gives_what_a_model_reads():
    tokenizer = BertTokenizer(BATCH_WORDS)
    batch = tokenizer(["a b", "c"], ["c", "ad bd"])
    assert batch["input_ids"].tolist() == [[2, 5, 6, 3, 7, 3, 0, 0], [2, 7, 3, 5, 8, 6, 8, 3]]
    assert batch["segment_ids"].tolist() == [[0, 0, 0, 0, 1, 1, 0, 0], [0, 0, 0, 1, 1, 1, 1, 1]]
    assert batch["input_mask"].tolist() == [[1] * 6 + [0, 0], [1] * 8]
    assert {array.dtype for array in batch.values()} == {np.dtype("int32")}
    assert tokenizer("a b")["input_ids"].tolist() == [[2, 5, 6, 3]]
    arrays = np.array(["a b", "c"]), np.array(["c", "ad bd"])
    np.testing.assert_array_equal(tokenizer(*arrays)["input_ids"], batch["input_ids"])
    assert tokenizer("a", "")["input_ids"].tolist() == [[2, 5, 3, 3]]
    assert tokenizer("a", padding="max_length", max_length=5)["input_mask"].tolist() == [
        [1, 1, 1, 0, 0]
    ]
    assert tokenizer("a b", padding=8, max_length=30)["input_ids"].shape == (1, 8)
    cut = tokenizer("a a b c", max_length=4, truncation="tail")
    assert cut["input_ids"].tolist() == [[2, 6, 7, 3]]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((["a", "a b c"],), {"max_length": 4}, "text 1 has more than max_length=4 tokens"),
        ((["a"], ["b", "c"]), {}, "1 texts, but 2 pairs"),
        ((["a", 3],), {}, r"texts\[1\] is '3', expected a text"),
        (([("a", "b")],), {}, "pairs go into the second argument"),
        (([],), {}, "texts is empty"),
        ((["a"],), {"padding": "short"}, "padding='short'; it is 'longest'"),
        ((["a"],), {"truncation": "middle"}, "truncation='middle'"),
    ],
)
def test_what_cannot_be_made_into_a_batch_is_named(arguments, options, message):
    with pytest.raises(UserError, match=message):
        BertTokenizer(BATCH_WORDS)(*arguments, **options)


def test_pieces_come_in_the_order_of_their_ids():
    with pytest.raises(UserError, match="in the order of their ids, not a dict"):
        BertTokenizer({piece: 9 - index for index, piece in enumerate(BATCH_WORDS)})
    with pytest.raises(UserError, match="vocabulary: 0 is not a text"):
        BertTokenizer([*BATCH_WORDS, 0])
