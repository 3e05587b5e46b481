"""Packing and windows in the graph give what `data_prep` made for training."""

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from official_bert.common.errors import UserError
from official_bert.tokenization import sequences
from official_bert.tokenization.graph import in_graph_packing as packing
from official_bert.tokenization.graph import in_graph_windows
from official_bert.tokenization.windows import max_context_window, pack_windows, window_starts

CLS, SEP = 101, 102
SPECIALS = SimpleNamespace(cls_id=CLS, sep_id=SEP, between=[SEP])


def ragged(rows):
    return tf.ragged.constant(rows, dtype=tf.int32, ragged_rank=1)


def rows_of(packed):
    return (
        tf.RaggedTensor.from_row_lengths(values, packed.row_lengths).to_list()
        for values in (packed.ids, packed.segments, packed.positions)
    )


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1),
    st.booleans(),
    st.integers(5, 24),
    st.sampled_from(sequences.TRUNCATIONS),
    st.sampled_from([[SEP], [SEP, SEP], [103]]),
)
def test_texts_are_packed_as_in_training(sizes, pairs, max_seq_length, truncation, between):
    first = [list(range(a)) for a, _ in sizes]
    second = [list(range(50, 50 + b)) for _, b in sizes]
    texts = [ragged(first), ragged(second)][: 1 + pairs]
    specials = SimpleNamespace(cls_id=CLS, sep_id=SEP, between=between)
    packed = packing.of_texts(texts, specials, max_seq_length, truncation)
    ids, segments, positions = rows_of(packed)
    for i, row in enumerate(first):
        other = second[i] if pairs else None
        expected = sequences.pack(specials, row, other, max_seq_length, truncation)
        assert ids[i] == expected["input_ids"]
        assert segments[i] == expected["segment_ids"]
        assert positions[i] == list(range(len(ids[i])))


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), min_size=1, max_size=5),
    st.integers(1, 25),
)
def test_windows_equal_training(sizes, stride):
    lengths, rooms = (tf.constant(column, tf.int32) for column in zip(*sizes, strict=True))
    plan = in_graph_windows.windows(lengths, rooms, tf.fill(tf.shape(rooms), stride))
    expected, expected_owns, text_of_window = [], [], []
    first = 0
    for text, (length, room) in enumerate(sizes):
        starts = window_starts(length, room, stride)
        owner = max_context_window(length, starts, room)
        for index, start in enumerate(starts):
            inside = np.arange(start, min(start + room, length))
            expected.append((first + inside).tolist())
            expected_owns.append((owner[inside] == index).tolist())
            text_of_window.append(text)
        first += length
    assert plan.tokens.to_list() == expected
    assert plan.tokens.with_values(plan.owns).to_list() == expected_owns
    assert plan.text.numpy().tolist() == text_of_window


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=1, max_size=5),
    st.booleans(),
    st.integers(10, 20),
    st.integers(1, 4),
    st.integers(0, 3),
    st.sampled_from(sequences.TRUNCATIONS),
)
def test_texts_in_windows_equal_training(sizes, pairs, length, most, overlap, truncation):
    first = [list(range(200, 200 + a)) for a, _ in sizes]
    second = [list(range(300, 300 + b)) for _, b in sizes]
    texts = [ragged(first), ragged(second)][: 1 + pairs]
    room = length - 2 - pairs
    rows, text, cut = in_graph_windows.pack_windows(texts, room, most, overlap, truncation)
    packed = packing.assemble(rows, CLS, SEP, [SEP] * pairs)
    ids, segments, _ = rows_of(packed)
    expected = [
        pack_windows(SPECIALS, a, b if pairs else None, length, truncation, most, overlap)
        for a, b in zip(first, second, strict=True)
    ]
    flat = [row for found, _ in expected for row in found]
    assert ids == [row["input_ids"] for row in flat]
    assert segments == [row["segment_ids"] for row in flat]
    texts_of_rows = np.repeat(range(len(sizes)), [len(found) for found, _ in expected])
    np.testing.assert_array_equal(text, texts_of_rows)
    assert cut.numpy().tolist() == [was_cut for _, was_cut in expected]


def test_spread_and_collect_are_inverse():
    packed = packing.of_texts([ragged([[1, 2, 3], [], [4] * 9])], SPECIALS, 32)
    rows = packing.PackedRows(packed)
    spread = rows.spread(packed.ids)
    assert spread.shape == (3, 16)  # 11 tokens, rounded up to a multiple of eight
    assert rows.mask.numpy().sum(axis=1).tolist() == [5, 2, 11]
    np.testing.assert_array_equal(rows.collect(tf.reshape(spread, [-1])), packed.ids)


def test_padded_ids_with_gaps_in_the_mask_come_back_in_place():
    ids = tf.constant([[5, 6, 7, 8], [9, 0, 0, 0], [4, 3, 0, 0]])
    mask = tf.constant([[1, 0, 1, 1], [1, 0, 0, 0], [0, 1, 0, 0]])
    packed = packing.from_padded(ids, mask, tf.zeros_like(ids))
    assert packed.ids.numpy().tolist() == [5, 7, 8, 9, 4, 3]
    assert packed.positions.numpy().tolist() == [0, 2, 3, 0, 0, 1]
    assert packed.row_lengths.numpy().tolist() == [3, 1, 2]  # a row's first token counts
    back = packing.to_padded(packed.ids, mask)
    assert back.numpy().tolist() == [[5, 0, 7, 8], [9, 0, 0, 0], [4, 3, 0, 0]]


def test_unknown_truncation_is_refused():
    with pytest.raises(UserError, match="head, tail"):
        packing.of_texts([ragged([[1]])], SPECIALS, 8, "middle")
