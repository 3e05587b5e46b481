"""Segment pairs: the rules one by one, and agreement with the original's loops in distribution."""

import random
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_prep.pretraining.next_sentence import segment_pairs
from data_prep.pretraining.random_streams import RandomStream

sys.path.insert(0, str(Path(__file__).parents[3]))
from benchmarks import original_pretraining_data as original


def offsets(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def draw(sentences, documents, max_tokens=20, short=0.1, seed=0, duplications=1):
    streams = [RandomStream(seed, duplication=k) for k in range(duplications)]
    return segment_pairs(offsets(sentences), offsets(documents), max_tokens, short, streams)


corpora = st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=12), min_size=2, max_size=12)


@settings(max_examples=150)
@given(corpora, st.integers(2, 40), st.floats(0, 1), st.integers(0, 2**32))
def test_every_pair_obeys_the_rules(corpus, max_tokens, short, seed):
    sentence_offsets = offsets(sum(corpus, []))
    ends = sentence_offsets[offsets([len(document) for document in corpus])]
    lengths = [len(document) for document in corpus]
    pairs = draw(sum(corpus, []), lengths, max_tokens, short, seed, 2)
    assert (pairs.a_length >= 1).all() and (pairs.b_length >= 1).all()
    assert (pairs.a_length + pairs.b_length <= max_tokens).all()
    # Each segment lies within its document.
    assert (pairs.a_start >= ends[pairs.document]).all()
    assert (pairs.a_start + pairs.a_length <= ends[pairs.document + 1]).all()
    assert (pairs.b_start >= ends[pairs.random_document]).all()
    assert (pairs.b_start + pairs.b_length <= ends[pairs.random_document + 1]).all()
    # The next sentence follows A in the same document.
    follows = ~pairs.is_random
    assert (pairs.document == pairs.random_document)[follows].all()
    assert (pairs.b_start >= pairs.a_start + pairs.a_length)[follows].all()
    assert set(pairs.document[pairs.duplication == 1]) == set(range(len(corpus)))


@settings(max_examples=100)
@given(corpora, st.integers(0, 2**32))
def test_no_sentence_is_lost_when_segments_are_put_back(corpus, seed):
    # A limit that nothing reaches: no truncation, so all tokens must be in some A or true B.
    lengths = sum(corpus, [])
    limit = 2 * sum(lengths)
    pairs = draw(lengths, [len(document) for document in corpus], limit, 1.0, seed)
    seen = np.zeros(sum(lengths), int)
    columns = pairs.a_start, pairs.a_length, pairs.b_start, pairs.b_length, pairs.is_random
    for a, n, b, m, is_random in zip(*columns, strict=True):
        seen[a : a + n] += 1
        if not is_random:
            assert b == a + n
            seen[b : b + m] += 1
    assert (seen == 1).all()  # each token once: nothing lost, nothing twice


def test_a_duplication_depends_on_its_own_stream_alone():
    generator = np.random.default_rng(0)
    sentences, documents = generator.integers(1, 30, 900), [9] * 100
    together = draw(sentences, documents, 60, duplications=3)
    stream = RandomStream(0, duplication=2)
    alone = segment_pairs(offsets(sentences), offsets(documents), 60, 0.1, [stream])
    third = together.take(together.duplication == 2)
    for name in ("a_start", "a_length", "b_start", "b_length", "is_random", "document"):
        np.testing.assert_array_equal(getattr(third, name), getattr(alone, name))
    first = together.take(together.duplication == 0)
    assert len(first) != len(third) or (first.b_start != third.b_start).any()


def test_one_document_takes_its_random_segments_from_itself():
    pairs = draw([4] * 50, [50], 20)
    assert pairs.is_random.any() and (pairs.random_document == 0).all()


@pytest.mark.parametrize("a,b", [(30, 3), (3, 30), (30, 30), (11, 30), (10, 11), (11, 10)])
@pytest.mark.parametrize("limit", [20, 21])
def test_truncation_ends_where_taking_single_tokens_ends(a, b, limit):
    first, second = a, b
    while first + second > limit:
        if first > second:
            first -= 1
        else:
            second -= 1
    # Two sentences that reach the target only together, and the second document far away.
    pairs = draw([a, b, 1], [2, 1], limit, short=0.0, seed=3, duplications=64)
    if a < limit:
        pairs = pairs.take((pairs.document == 0) & ~pairs.is_random)
        lengths = set(zip(pairs.a_length.tolist(), pairs.b_length.tolist(), strict=True))
        assert lengths == {(first, second)}


def test_tokens_leave_at_either_end_with_equal_chance():
    pairs = draw([100, 100] * 2000, [2] * 2000, 20, short=0.0)
    front = pairs.a_start % 100  # of the 90 tokens that leave each sentence
    removed = 100 - pairs.a_length
    assert abs((front / removed).mean() - 0.5) < 4 * 0.5 / np.sqrt(removed.sum())
    assert front.std() > 3  # a binomial of 90 has 4.7


def statistics(pairs, corpus_tokens):
    """Return [name, value] of pairs given as arrays a, b (lengths) and is_random."""
    a, b, is_random = (np.asarray(values, float) for values in pairs)
    total = a + b
    return {
        "pairs for 1000 tokens": 1000 * len(a) / corpus_tokens,
        "random": is_random.mean(),
        "length": total.mean(),
        "length of A": a.mean(),
        "length of random B": b[is_random == 1].mean(),
        "length of true B": b[is_random == 0].mean(),
        "spread of length": total.std(),
        "spread of A": a.std(),
        "full": (total == 125).mean(),
        "very short": (total < 20).mean(),
    }


@pytest.mark.parametrize("sentences", [3, 40])
def test_pairs_agree_with_the_original_in_distribution(sentences):
    generator = np.random.default_rng(5)
    sizes = (generator.integers(1, sentences + 1) for _ in range(150))
    corpus = [generator.integers(2, 60, size).tolist() for size in sizes]
    tokens = sum(map(sum, corpus))
    runs = 30
    ours, theirs = [], []
    documents = [[list(range(length)) for length in document] for document in corpus]
    for seed in range(runs):
        pairs = draw(sum(corpus, []), [len(d) for d in corpus], 125, 0.1, seed)
        ours.append(statistics((pairs.a_length, pairs.b_length, pairs.is_random), tokens))
        rng = random.Random(seed)
        slow = [
            (len(a), len(b), is_random)
            for index in range(len(documents))
            for a, b, is_random, _, _ in original.segment_pairs(documents, index, 125, 0.1, rng)
        ]
        theirs.append(statistics(zip(*slow, strict=True), tokens))
    for name in ours[0]:
        one, other = (np.array([run[name] for run in group]) for group in (ours, theirs))
        error = np.sqrt((one.var(ddof=1) + other.var(ddof=1)) / runs)
        assert abs(one.mean() - other.mean()) < 4.5 * error + 1e-9, name
