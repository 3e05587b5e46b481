import collections

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_prep.tasks import batches
from data_prep.tasks.feature_set import FeatureSet
from data_prep.tasks.tagging.tagged_document import TaggedDocument


def feature_set(lengths, max_seq_length=64, **more):
    """Return features: i has `lengths[i]` tokens, all of id 1000 + i, and label i."""
    features = [
        {
            "input_ids": [1000 + i] * length, "segment_ids": [1] * length,
            "label_ids": i, "truncated": 0, "example_index": i,
            **{name: function(i, length) for name, function in more.items()},
        }
        for i, length in enumerate(lengths)
    ]  # fmt: skip
    return FeatureSet.of(features, len(lengths), max_seq_length)


def epoch_batches(features, size, epoch, seed, buckets=32):
    found = batches.TrainBatches(features, size, seed, buckets)
    first = epoch * found.steps_per_epoch
    return found.from_step(first, first + found.steps_per_epoch)


def test_documents_count_as_their_sentences():
    sentences = [tuple((f"{i}{j}",) for j in range(n)) for i, n in enumerate([5, 1, 8, 3])]
    documents = [TaggedDocument(str(i), those) for i, those in enumerate(sentences)]
    for limit in range(1, 18):
        chosen = batches.sample(documents, limit)
        assert sum(document.size for document in chosen) == min(limit, 17)
        assert [document.id for document in chosen] == sorted(document.id for document in chosen)
        for document in chosen:
            assert document.sentences == documents[int(document.id)].sentences[: document.size]


LENGTHS = st.lists(st.integers(1, 64), min_size=1, max_size=40)


@given(LENGTHS, st.integers(1, 9), st.integers(0, 2**62), st.sampled_from([None, 16, 32]))
def test_every_feature_once_an_epoch_in_a_known_number_of_steps(lengths, size, seed, buckets):
    features = feature_set(lengths)
    for epoch in (0, 3):
        found = list(epoch_batches(features, size, epoch, seed, buckets))
        assert len(found) == batches.num_batches(len(lengths), size)
        seen = collections.Counter()
        for batch in found:
            rows, length = batch["input_ids"].shape
            assert rows == size
            assert length == 64 if buckets is None else length % buckets == 0
            real = batch["example_weights"] == 1
            longest = max(lengths[i] for i in batch["label_ids"][real])
            assert longest <= length
            if buckets:
                assert length - longest < buckets
            seen.update(batch["label_ids"][real].tolist())
            assert not batch["input_ids"][~real].any()
        assert seen == dict.fromkeys(range(len(lengths)), 1)


@given(LENGTHS, st.integers(1, 9), st.integers(0, 3), st.integers(0, 20))
def test_any_step_can_be_the_first(lengths, size, seed, step):
    one = batches.TrainBatches(feature_set(lengths), size, seed)
    other = batches.TrainBatches(feature_set(lengths), size, seed)
    *_, last = one.from_step(0, step + 1)
    first = other.batch(step)
    assert set(last) == set(first)
    for name in first:
        np.testing.assert_array_equal(last[name], first[name])


def test_order_depends_on_seed_and_epoch_and_never_changes():
    features = feature_set([8] * 50)

    def order(seed, epoch):
        found = epoch_batches(features, 10, epoch, seed)
        return [i for batch in found for i in batch["label_ids"].tolist()]

    assert len({tuple(order(seed, epoch)) for seed in range(3) for epoch in range(3)}) == 9
    # The numbers themselves, so that an upgrade that changes the order is seen.
    assert order(0, 0)[:10] == [12, 34, 36, 26, 24, 10, 15, 48, 42, 37]


def test_lengths_within_a_batch_are_alike():
    lengths = [8] * 64 + [60] * 64
    shapes = [b["input_ids"].shape for b in epoch_batches(feature_set(lengths), 16, 0, 1)]
    assert collections.Counter(shapes) == {(16, 32): 4, (16, 64): 4}


def test_the_short_batch_is_not_always_the_longest_texts():
    features = feature_set(list(range(1, 60)))
    lengths = set()
    for epoch in range(30):
        for batch in epoch_batches(features, 8, epoch, 0):
            if batch["example_weights"].sum() < 8:
                lengths.add(batch["input_ids"].shape[1])
    assert lengths == {32, 64}


@given(LENGTHS, st.integers(1, 9), st.sampled_from([None, 16, 32]))
def test_outputs_come_back_in_the_order_of_the_features(lengths, size, buckets):
    features = feature_set(lengths)
    collector = batches.OutputCollector(len(features))
    for rows, batch in batches.eval_batches(features, size, buckets):
        assert batch["input_ids"].shape[0] == size
        collector.add(rows, {"first": batch["input_ids"][:, 0], "ids": batch["input_ids"]})
    outputs = collector.outputs()
    assert [int(v) for v in outputs["first"]] == [1000 + i for i in range(len(lengths))]
    for row, length in zip(outputs["ids"], lengths, strict=True):
        assert (row[:length] >= 1000).all() and not row[length:].any()


def test_collector_says_what_is_missing():
    collector = batches.OutputCollector(2)
    collector.add(np.array([1]), {"logits": np.zeros((4, 2))})
    with pytest.raises(ValueError, match="1 features have no logits"):
        collector.outputs()


def test_masks_dtypes_and_padding():
    batch = batches.make_batch(feature_set([2, 3]), np.array([1]), 2, 4)
    assert {name: value.dtype.name for name, value in batch.items()} == {
        "input_ids": "int32", "segment_ids": "int32", "label_ids": "int32", "input_mask": "int32",
        "example_weights": "float32",
    }  # fmt: skip
    assert batch["input_ids"].tolist() == [[1001] * 3 + [0], [0] * 4]
    # A padding row shows one token: a softmax over nothing would be NaN.
    assert batch["input_mask"].tolist() == [[1, 1, 1, 0], [1, 0, 0, 0]]
    assert batch["example_weights"].tolist() == [1.0, 0.0]
    assert batch["label_ids"].tolist() == [1, 0]


def test_token_labels_are_padded_with_minus_one():
    features = feature_set([2, 3], label_ids=lambda i, length: [i] * length)
    batch = batches.make_batch(features, np.array([1, 0]), 3, 4)
    assert batch["label_ids"].tolist() == [[1, 1, 1, -1], [0, 0, -1, -1], [-1] * 4]


def test_label_vectors_and_numbers_are_floats():
    several = feature_set([2, 3], label_ids=lambda i, length: [1.0, 0.0, float(i)])
    batch = batches.make_batch(several, np.array([1]), 2, 32)
    assert batch["label_ids"].tolist() == [[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    number = feature_set([2, 3], label_ids=lambda i, length: i + 0.5)
    batch = batches.make_batch(number, np.array([0, 1]), 2, 32)
    assert batch["label_ids"].dtype == np.float32 and batch["label_ids"].tolist() == [0.5, 1.5]


def test_choices_have_an_axis_of_their_own():
    features = feature_set(
        [4, 5],
        input_ids=lambda i, length: [[7] * length, [8], [9, 9]],
        segment_ids=lambda i, length: [[0] * length, [0], [0, 1]],
    )
    assert features.lengths.tolist() == [4, 5]
    batch = batches.make_batch(features, np.array([1]), 2, 6)
    assert batch["input_ids"].shape == batch["input_mask"].shape == (2, 3, 6)
    assert batch["input_ids"][0].tolist() == [[7] * 5 + [0], [8] + [0] * 5, [9, 9] + [0] * 4]
    assert batch["input_mask"].sum(axis=-1).tolist() == [[5, 1, 2], [1, 1, 1]]
