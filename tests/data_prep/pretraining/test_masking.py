"""Masked-LM corruption: Table 8's rates, the number of predictions, whole words."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_prep.pretraining.masking import SPANS, MaskingRates, mask_rows, prediction_counts
from data_prep.pretraining.random_streams import RandomStream
from official_bert.common.errors import UserError

VOCAB, CLS, SEP, MASK = 1000, 2, 3, 4


def rows(number, length, seed=0):
    """Return rows [CLS] ... [SEP] padded, their candidates and lengths."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(3, length + 1, number)
    ids = generator.integers(10, VOCAB, (number, length)).astype(np.uint16)
    column = np.arange(length)
    ids[:, 0] = CLS
    ids[column == lengths[:, None] - 1] = SEP
    ids[column >= lengths[:, None]] = 0
    return ids, (column > 0) & (column < lengths[:, None] - 1), lengths


def mask(ids, candidates, lengths, seed=0, **options):
    options = {"masked_lm_prob": 0.15, "max_predictions": 20} | options
    return mask_rows(
        ids, candidates, lengths, RandomStream(seed), vocab_size=VOCAB, mask_id=MASK, **options
    )


@settings(max_examples=60)
@given(
    st.integers(5, 70), st.integers(1, 30), st.floats(0, 1), st.booleans(), st.integers(0, 2**32)
)
def test_rows_can_be_restored_and_specials_stay(length, predictions, prob, whole_word, seed):
    ids, candidates, lengths = rows(40, length, seed)
    continues = (ids % 3 == 0) & (np.arange(length) > 1) if whole_word else None
    options = {"masked_lm_prob": prob, "max_predictions": predictions, "continues": continues}
    masked = mask(ids, candidates, lengths, seed, **options)
    wanted = np.minimum(prediction_counts(lengths, prob, predictions), candidates.sum(axis=1))
    assert (masked.counts <= wanted).all()
    if not whole_word:
        assert (masked.counts == wanted).all()
    restored = masked.input_ids.copy()
    for row, count in enumerate(masked.counts):
        places = masked.positions[row, :count]
        assert (np.diff(places.astype(int)) > 0).all() and candidates[row, places].all()
        restored[row, places] = masked.ids[row, :count]
        assert not masked.positions[row, count:].any() and not masked.ids[row, count:].any()
    np.testing.assert_array_equal(restored, ids)


@pytest.mark.parametrize("whole_word", [False, True])
@pytest.mark.parametrize(
    "rates", [(0.8, 0.1, 0.1), (1, 0, 0), (0.8, 0, 0.2), (0.8, 0.2, 0), (0, 0.2, 0.8), (0, 0, 1)]
)
def test_rates_of_table_8(rates, whole_word):
    ids, candidates, lengths = rows(3000, 64)
    continues = (ids % 4 == 0) & (np.arange(64) > 1) if whole_word else None
    masked = mask(ids, candidates, lengths, rates=MaskingRates(*rates), continues=continues)
    used = np.arange(20) < masked.counts[:, None]
    now = np.take_along_axis(masked.input_ids, masked.positions.astype(int), axis=1)[used]
    before = masked.ids[used]
    number = len(now)
    shares = [(now == MASK).mean(), (now == before).mean()]
    shares.append(((now != before) & (now != MASK)).mean())
    # A random token is [MASK] itself or the old one in 1 case of 1,000 each.
    expected = np.array(rates) + np.array([1, 1, -2]) * rates[2] / VOCAB
    assert np.abs(shares - expected).max() < 4 * 0.5 / number**0.5
    if rates[2]:
        random = now[(now != before) & (now != MASK)]
        assert random.min() < 20 and random.max() > VOCAB - 20  # of the whole vocabulary
        assert abs(random.mean() - VOCAB / 2) < 4 * VOCAB / 12**0.5 / len(random) ** 0.5


def test_positions_are_uniform():
    ids = np.full((4000, 22), 50, np.uint16)
    candidates = np.zeros((4000, 22), bool)
    candidates[:, 1:21] = True
    masked = mask(ids, candidates, np.full(4000, 22), max_predictions=3)
    counts = np.bincount(masked.positions.ravel(), minlength=22)
    assert counts[0] == counts[21] == 0
    assert np.abs(counts[1:21] - 600).max() < 4.5 * (600 * 0.85) ** 0.5


@pytest.mark.parametrize("rates", [(0.8, 0.1, 0.2), (1.2, -0.1, -0.1)])
def test_wrong_rates_are_refused(rates):
    with pytest.raises(UserError, match="sum to 1"):
        MaskingRates(*rates)


@pytest.mark.parametrize(("name", "mean"), [("geometric", 3.797), ("ngrams", 18 / 11)])
def test_spans_have_the_lengths_of_their_papers(name, mean):
    """The first run of each row is cut by nothing: there its length follows the distribution."""
    spans = SPANS[name]
    lengths = np.array(spans.lengths)
    assert lengths @ np.arange(1, len(lengths) + 1) == pytest.approx(mean, abs=1e-3)
    ids, candidates, _ = rows(500, 240)
    count = np.full(500, 242)
    candidates[:] = True
    candidates[:, [0, -1]] = False
    continues = np.zeros_like(candidates)
    options = {"masked_lm_prob": 0.15, "max_predictions": 40, "spans": spans}
    masked = mask(ids, candidates, count, continues=continues, **options)
    assert (masked.counts == 36).all()  # 15 % of 242, single words fill what room is left
    breaks = np.diff(masked.positions[:, :36].astype(int), axis=1) > 1
    runs = 36 * 500 / (breaks.sum() + 500)
    # Runs that touch count as one, and the last of a row is cut: both move the mean a little.
    assert runs == pytest.approx(mean, rel=0.25)


def test_spans_are_whole_words_inside_the_candidates():
    ids, candidates, lengths = rows(500, 60, seed=1)
    candidates[:, 30] = False  # a [SEP] between two segments
    continues = (ids % 3 == 0) & candidates
    continues[:, [1, 31]] = False
    options = {"continues": continues, "spans": SPANS["geometric"]}
    masked = mask(ids, candidates, lengths, **options)
    wanted = np.minimum(prediction_counts(lengths, 0.15, 20), candidates.sum(axis=1))
    assert (masked.counts <= wanted).all() and masked.counts.sum() > 0.9 * wanted.sum()
    for row, count in enumerate(masked.counts):
        places = masked.positions[row, :count].astype(int)
        assert candidates[row, places].all() and (np.diff(places) > 0).all()
        chosen = np.isin(np.arange(60), places)
        # A piece that continues a word is chosen exactly when the piece before it is.
        inner = np.nonzero(continues[row])[0]
        assert (chosen[inner] == chosen[inner - 1]).all()


def test_what_becomes_of_a_span_is_decided_once():
    ids, candidates, lengths = rows(2000, 60, seed=2)
    continues = np.zeros_like(candidates)
    masked = mask(
        ids, candidates, lengths, continues=continues, spans=SPANS["geometric"],
        max_predictions=4, masked_lm_prob=1.0, rates=MaskingRates(0.5, 0.5, 0.0),
    )  # fmt: skip
    rows_of_one = [
        masked.input_ids[row, places[:4]] == MASK
        for row, places in enumerate(masked.positions.astype(int))
        if masked.counts[row] == 4 and places[3] - places[0] == 3
    ]
    alike = [len(set(fate.tolist())) == 1 for fate in rows_of_one]
    # Some of these rows are two runs that touch, with a fate each.
    assert len(alike) > 300 and np.mean(alike) > 0.7
    assert 0.4 < np.mean([fate[0] for fate in rows_of_one]) < 0.6
