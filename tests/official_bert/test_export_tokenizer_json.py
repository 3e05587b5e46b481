"""The `tokenizer.json` beside an export cuts, joins and pads as training does."""

import pytest
from tiny import foreign

from official_bert import BertTokenizer
from official_bert.export.formats.id_export import write_tokenizer_json
from official_bert.export.settings import ServingSettings

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghij.", "##a", "##b"]
TEXTS = ["a b c", "Ab. d", "", "a b c d e f g h i j a b c d e f"]
PAIRS = ["d", "a b c d e f g h i j", "e", "b"]


def written(folder, tokenizer, head="classification", **settings):
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer.write(folder)
    assert write_tokenizer_json(folder, tokenizer, head, ServingSettings(**settings)) == []
    return tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))


@pytest.mark.parametrize("truncation", ["head", "tail"])
@pytest.mark.parametrize("make", [BertTokenizer, foreign])
def test_rows_are_those_of_training(tmp_path, make, truncation):
    check_rows(tmp_path, make(VOCAB), truncation)


def check_rows(tmp_path, tokenizer, truncation):
    reader = written(tmp_path, tokenizer, max_seq_length=12, truncation=truncation)
    for pairs in (None, PAIRS):
        expected = tokenizer(TEXTS, pairs, max_length=12, truncation=truncation)
        rows = reader.encode_batch(TEXTS if pairs is None else [*zip(TEXTS, PAIRS, strict=True)])
        assert [row.ids for row in rows] == expected["input_ids"].tolist()
        assert [row.attention_mask for row in rows] == expected["input_mask"].tolist()
        if tokenizer.separators == 1:  # with two, as RoBERTa's, there is one segment
            assert [row.type_ids for row in rows] == expected["segment_ids"].tolist()


def test_a_long_passage_is_read_in_windows(tmp_path):
    lengths = {"max_seq_length": 12, "max_query_length": 3, "doc_stride": 4}
    reader = written(tmp_path, BertTokenizer(VOCAB), "span", **lengths)
    first = reader.encode("a b c", "a b c d e f g h i j")
    windows = [first, *first.overflowing]
    assert [window.tokens[5:-1] for window in windows] == [[*"abcdef"], [*"efghij"]]


def test_what_the_file_cannot_say_is_said(tmp_path):
    tokenizer = BertTokenizer(VOCAB)
    cut = ServingSettings(truncation="head+tail")
    (note,) = write_tokenizer_json(tmp_path, tokenizer, "classification", cut)
    assert "does not cut" in note
