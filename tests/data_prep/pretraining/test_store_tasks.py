"""Chinese words from a segmenter's blanks, and whole-word masks that follow them."""

import numpy as np
import pytest
from made_records import examples, unmasked

from data_prep.create_pretraining_data import create
from data_prep.pretraining.store_tasks import SegmentedEncoder
from official_bert.common.errors import UserError
from official_bert.tokenization import SPECIAL_TOKENS, BertTokenizer, write_vocab

HANZI = [chr(0x4E00 + i) for i in range(40)]
VOCAB = [*SPECIAL_TOKENS, "ab", "##c", ".", "\u3002", *HANZI]


def test_ideographs_inside_a_word_are_marked():
    tokenizer = BertTokenizer(VOCAB)
    a, b, c, d = HANZI[:4]
    lines = [f"{a}{b} {c}  abc{d}{a}", "", f" {b}.{c}{d}\u3002 "]
    lines += [f"{a}\u4fdd{b}", f"{a}\t{b}\u3000{c}{d}"]
    text = "".join(f"{line}\n" for line in lines).encode()
    ids, offsets = SegmentedEncoder(tokenizer).encode_lines(text)
    plain, same = tokenizer.encode_batch(lines)
    np.testing.assert_array_equal(ids % len(VOCAB), plain)
    np.testing.assert_array_equal(offsets, same)
    marks = np.where(ids >= len(VOCAB), "+", ".")
    marked = ["".join(marks[s:e]) for s, e in zip(offsets[:-1], offsets[1:], strict=True)]
    # An unknown ideograph is not a word's part.
    assert marked == [".+....+", "", "...+.", "...", "...+"]


@pytest.fixture
def make(tmp_path):
    """Return make(**options): ids without masks, and which places are masked, of records of a
    corpus whose words are pairs of neighbouring ideographs, an even and the odd one behind it."""
    write_vocab(tmp_path / "vocab.txt", VOCAB)
    generator = np.random.default_rng(0)
    sentences = [
        " ".join(HANZI[2 * i] + HANZI[2 * i + 1] for i in generator.integers(0, 20, 6)) + " \u3002"
        for _ in range(400)
    ]
    documents = ["\n".join(sentences[i : i + 10]) for i in range(0, 400, 10)]
    (tmp_path / "a.txt").write_text("\n\n".join(documents), encoding="utf-8")

    def records(**options):
        folder = tmp_path / "-".join(options)
        options |= {"max_seq_length": 64, "do_whole_word_mask": True, "progress": False}
        create(str(tmp_path / "a.txt"), str(tmp_path / "vocab.txt"), str(folder), **options)
        return unmasked(examples(folder))

    return records


def split_pairs(ids, masked):
    """Return the share of pairs of which one ideograph is masked and the other is not."""
    first = VOCAB.index(HANZI[0])
    even = (ids >= first) & ((ids - first) % 2 == 0)
    pairs = even[:, :-1] & (ids[:, 1:] == ids[:, :-1] + 1)
    split = pairs & (masked[:, :-1] != masked[:, 1:])
    return split.sum() / (pairs & (masked[:, :-1] | masked[:, 1:])).sum()


def test_words_are_masked_whole(make):
    assert split_pairs(*make(segmented=True)) == 0
    ids, masked = make(random_seed=1)
    assert split_pairs(ids, masked) > 0.5  # without a segmenter's words
    assert ids.max() < len(VOCAB)


def test_dynamic_masks_cannot_know_them(make):
    with pytest.raises(UserError, match="segmented and dynamic_masking"):
        make(segmented=True, dynamic_masking=True)
