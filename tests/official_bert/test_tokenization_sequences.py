import pytest
from hypothesis import given
from hypothesis import strategies as st

from official_bert.common.errors import UserError
from official_bert.tokenization import sequences


@given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 50))
def test_pair_lengths_are_those_of_dropping_one_token_at_a_time(first, second, room):
    a, b = first, second
    while a + b > room:
        if a > b:
            a -= 1
        else:
            b -= 1
    assert sequences.pair_lengths(first, second, room) == (a, b)


@pytest.mark.parametrize(
    ("truncation", "kept"),
    [("head", [0, 1, 2, 3]), ("tail", [6, 7, 8, 9]), ("head+tail", [0, 7, 8, 9])],
)
def test_what_each_truncation_keeps(truncation, kept):
    assert sequences.cut(list(range(10)), 4, truncation) == kept
    assert sequences.cut([1, 2], 4, truncation) == [1, 2]
    assert sequences.cut([1, 2], 0, truncation) == []


def test_one_text_and_a_pair(tokenizer):
    c, s = tokenizer.cls_id, tokenizer.sep_id
    single = sequences.pack(tokenizer, [11, 12], None, 8)
    assert single == {"input_ids": [c, 11, 12, s], "segment_ids": [0] * 4, "truncated": 0}
    pair = sequences.pack(tokenizer, [11, 12, 13, 14, 15], [21, 22, 23], 8)
    assert pair["input_ids"] == [c, 11, 12, 13, s, 21, 22, s]
    assert pair["segment_ids"] == [0] * 5 + [1] * 3
    assert pair["truncated"] == 1


@given(
    st.lists(st.integers(10, 20), max_size=30),
    st.lists(st.integers(10, 20), max_size=30) | st.none(),
    st.integers(4, 40),
    st.sampled_from(sequences.TRUNCATIONS),
)
def test_never_longer_than_asked_and_full_where_cut(tokenizer, first, second, length, truncation):
    feature = sequences.pack(tokenizer, first, second, length, truncation)
    assert len(feature["input_ids"]) == len(feature["segment_ids"]) <= length
    if feature["truncated"]:
        assert len(feature["input_ids"]) == length


def test_no_room_for_text(tokenizer):
    with pytest.raises(UserError, match="max_seq_length=3 leaves no room"):
        sequences.pack(tokenizer, [1], [2], 3)
