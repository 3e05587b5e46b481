"""Masked-LM corruption of many rows at once (section 3.1, task 1; appendix C.2, Table 8).

min(max_predictions_per_seq, max(1, round(length * masked_lm_prob))) positions of a row are chosen.
The length includes [CLS] and [SEP], which are never chosen. A chosen token becomes [MASK] in 80% of
the cases, a random token of the whole vocabulary in 10%, and stays in 10%.

With whole-word masking the choice is between words (a piece and the "##" pieces that continue it,
within one segment), taken in random order; a word that would overflow the number of predictions is
skipped. `data_prep.pretraining.reading.dynamic_masking` does the same to batches.

With spans (`SPANS`) it is between runs of several words, as SpanBERT and ALBERT choose them.
"""

from dataclasses import dataclass

import numpy as np

from data_prep.pretraining.random_streams import RandomStream
from official_bert.common.errors import UserError

# A key is 20 random bits above 12 bits of position: sorted keys carry their positions, and equal
# random bits (one pair in a million) are ordered by position.
_LOW = np.uint32((1 << 12) - 1)
_NEVER = np.uint32(2**32 - 1)


@dataclass(frozen=True)
class MaskingRates:
    """Rates of the three fates of a chosen token; the rows of Table 8.

    Attributes:
      mask: share that becomes [MASK].
      same: share that stays.
      random: share that becomes a random token. The three sum to 1.
    """

    mask: float = 0.8
    same: float = 0.1
    random: float = 0.1

    def __post_init__(self):
        rates = (self.mask, self.same, self.random)
        if not (min(rates) >= 0 and abs(sum(rates) - 1) <= 1e-6):  # NaN neither
            raise UserError(
                f"mask, same and random rates must be shares that sum to 1, got {rates}"
            )


@dataclass(frozen=True)
class Spans:
    """Runs of words that are chosen together.

    Attributes:
      lengths: the probabilities of 1, 2, ... words.
      one_fate: whether all tokens of a run become [MASK], random or stay together.
    """

    lengths: tuple[float, ...]
    one_fate: bool


def _shares(weights) -> tuple[float, ...]:
    weights = tuple(weights)
    return tuple(weight / sum(weights) for weight in weights)


SPANS = {
    # SpanBERT (Joshi et al. 2020, section 3.1): geometric with p = 0.2, cut at 10; 3.8 on average.
    "geometric": Spans(_shares(0.2 * 0.8 ** (n - 1) for n in range(1, 11)), one_fate=True),
    # ALBERT (Lan et al. 2020, section 4.1): proportional to 1 / n up to 3 words.
    "ngrams": Spans(_shares(1 / n for n in range(1, 4)), one_fate=False),
}


@dataclass
class MaskedRows:
    """Rows after masking; unused prediction slots hold zeros.

    Attributes:
      input_ids: [rows, length], the corrupted rows.
      positions: uint16 [rows, max_predictions], ascending.
      ids: [rows, max_predictions], the original tokens at the positions.
      counts: int64 [rows], the number of predictions of each row.
    """

    input_ids: np.ndarray
    positions: np.ndarray
    ids: np.ndarray
    counts: np.ndarray


def prediction_counts(lengths: np.ndarray, masked_lm_prob: float, max_predictions: int):
    """Return the number of predictions for rows of these lengths (with specials), int64 [rows].

    There is one at least, unless `masked_lm_prob` is 0. np.rint rounds halves to even, as Python's
    round does in the original.
    """
    wanted = np.rint(np.asarray(lengths) * masked_lm_prob).astype(np.int64)
    return np.clip(wanted, int(masked_lm_prob > 0), max_predictions)


def mask_rows(
    input_ids: np.ndarray,
    candidates: np.ndarray,
    lengths: np.ndarray,
    stream: RandomStream,
    *,
    vocab_size: int,
    mask_id: int,
    masked_lm_prob: float,
    max_predictions: int,
    rates: MaskingRates = MaskingRates(),
    continues: np.ndarray | None = None,
    spans: Spans | None = None,
) -> MaskedRows:
    """Choose positions in every row and corrupt them.

    Args:
      input_ids: integers [rows, length]; left as they are.
      candidates: bool [rows, length]; real tokens other than [CLS] and [SEP].
      lengths: int [rows]; tokens of each row with [CLS] and [SEP].
      stream: source of the random numbers.
      continues: bool [rows, length], true where a token continues the word of the token before it;
        given for whole-word masking.
      spans: choose runs of words of these lengths; needs `continues`. None: single words.

    Returns:
      The rows, of the dtype of `input_ids`.
    """
    rows, length = input_ids.shape
    slots = min(max_predictions, length)
    wanted = prediction_counts(lengths, masked_lm_prob, max_predictions)
    keys = stream.raw((rows * length + 1) // 2).view(np.uint32)[: rows * length]
    keys = (keys & ~_LOW).reshape(rows, length)
    keys |= np.arange(length, dtype=np.uint32)
    heads = None
    if continues is None:
        chosen, counts = _choose_pieces(keys, candidates, wanted, slots)
    elif spans:
        draws = stream.raw(rows * length).reshape(rows, length) / 2.0**64
        words = 1 + np.searchsorted(np.cumsum(spans.lengths)[:-1], draws, side="right")
        inside = candidates & continues
        chosen, counts, heads = _choose_spans(keys, words, candidates, inside, wanted, slots)
    else:
        chosen, counts = _choose_words(keys, candidates, candidates & continues, wanted, slots)
    used = np.arange(slots) < counts[:, None]

    take = np.where(used, chosen, 0)
    place = take + np.arange(rows)[:, None] * length
    originals = input_ids.ravel()[place]
    # 32 bits decide a token's fate, 32 bits the random token that it may become.
    raw = stream.raw(rows * slots).reshape(rows, slots)
    fate = raw >> np.uint64(32)
    if spans and spans.one_fate:
        # The fate of the span's first token, the last one that begins at or before each slot.
        begins = np.where(heads == take, np.arange(slots), 0)
        fate = np.take_along_axis(fate, np.maximum.accumulate(begins, axis=1), axis=1)
    random_ids = ((raw & np.uint64(2**32 - 1)) * np.uint64(vocab_size)) >> np.uint64(32)
    mask_below, same_below = (round(share * 2**32) for share in (rates.mask, 1 - rates.random))
    becomes = np.where(fate < mask_below, np.array(mask_id, input_ids.dtype), originals)
    becomes = np.where(fate >= same_below, random_ids.astype(input_ids.dtype), becomes)

    corrupted = input_ids.copy()
    corrupted.ravel()[place[used]] = becomes[used]
    return MaskedRows(
        input_ids=corrupted,
        positions=_widen(take.astype(np.uint16), max_predictions),
        ids=_widen(np.where(used, originals, 0).astype(input_ids.dtype), max_predictions),
        counts=counts,
    )


def _choose_pieces(keys, candidates, wanted, slots):
    """Choose `wanted` candidates at random in each row: those with the smallest keys.

    Returns positions int64 [rows, slots] in ascending order, large where unused, and counts [rows].
    """
    keys = np.where(candidates, keys, _NEVER)
    smallest = np.sort(keys, axis=1)[:, :slots]
    counts = np.minimum(wanted, np.count_nonzero(candidates, axis=1))
    positions = smallest & _LOW
    positions[np.arange(slots) >= counts[:, None]] = _LOW
    return np.sort(positions, axis=1).astype(np.int64), counts


def _choose_words(keys, candidates, continues, wanted, slots):
    """Choose whole words in random order, skipping those that would overflow."""
    rows, length = keys.shape
    at = np.arange(length)
    starts = candidates & ~continues
    # For each position, the position of the first piece of its word.
    word = np.maximum.accumulate(np.where(starts, at, 0), axis=1)
    flat_word = word + np.arange(rows)[:, None] * length
    sizes = np.bincount(flat_word[candidates], minlength=rows * length).reshape(rows, length)

    order = np.sort(np.where(starts, keys, _NEVER), axis=1) & _LOW
    chosen = taken_words(order, np.count_nonzero(starts, axis=1), sizes, wanted)
    taken = candidates & np.take_along_axis(chosen, word, axis=1)
    return places(taken, slots)[0], np.count_nonzero(taken, axis=1)


def taken_words(order, words, sizes, wanted) -> np.ndarray:
    """Return which words are taken in their order, bool [rows, N].

    A word that would overflow is skipped.

    Args:
      order: int [rows, N], the numbers of the words in their order.
      words: int [rows], the number of words.
      sizes: int [rows, N], the tokens of each word, by its number.
      wanted: int [rows], the number of tokens to take.
    """
    chosen, room, active = np.zeros(sizes.shape, bool), wanted.copy(), np.arange(len(sizes))
    for step in range(int(words.max(initial=0))):
        active = active[(room[active] > 0) & (words[active] > step)]
        if not len(active):
            break
        word = order[active, step]
        size = sizes[active, word]
        fits = size <= room[active]
        chosen[active[fits], word[fits]] = True
        room[active] -= np.where(fits, size, 0).astype(room.dtype)
    return chosen


def places(taken, slots: int, *values) -> list[np.ndarray]:
    """Return where `taken`, bool [rows, length], is true: int64 [rows, slots], ascending.

    Unused slots are large. For each of `values`, [rows, length], return its values at these places.
    """
    counts = np.count_nonzero(taken, axis=1)
    row, place = np.nonzero(taken)
    rank = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    found = np.full((1 + len(values), len(taken), slots), int(_LOW), np.int64)
    for array, content in zip(found, (place, *(each[row, place] for each in values)), strict=True):
        array[row, rank] = content
    return list(found)


def _choose_spans(keys, words, candidates, continues, wanted, slots):
    """Choose runs of whole words, from first words in random order, until rows are full.

    A run ends early where its segment ends, where a chosen run begins, and where another word would
    overflow. A first word that is already chosen, or too long by itself, is skipped.

    Args:
      words: int [rows, length], the number of words of a run that begins at each position.

    Returns positions and counts as `_choose_pieces`, and int64 [rows, slots], the position where
    the run of each begins.
    """
    rows, length = keys.shape
    at = np.arange(length)
    starts = candidates & ~continues
    # The end of the word that begins at a position: the next position that does not continue it.
    ends = np.where(continues, length, at)
    ends = np.minimum.accumulate(ends[:, ::-1], axis=1)[:, ::-1]
    after = np.concatenate([ends[:, 1:], np.full((rows, 1), length)], axis=1)

    order = np.sort(np.where(starts, keys, _NEVER), axis=1)
    count = np.count_nonzero(starts, axis=1)
    run = np.full((rows, length), -1)  # the begin of each position's run
    room = wanted.copy()
    active = np.arange(rows)
    for step in range(int(count.max(initial=0))):
        active = active[(room[active] > 0) & (count[active] > step)]
        if not len(active):
            break
        first = (order[active, step] & _LOW).astype(np.int64)
        end = first.copy()
        going = np.ones(len(active), bool)
        for taken in range(int(words.max())):
            place = np.minimum(end, length - 1)
            more = after[active, place]
            going &= (taken < words[active, first]) & (end < length) & starts[active, place]
            going &= (run[active, place] < 0) & (more - first <= room[active])
            end = np.where(going, more, end)
        inside = (at >= first[:, None]) & (at < end[:, None])
        run[active] = np.where(inside, first[:, None], run[active])
        room[active] -= end - first

    positions, heads = places(run >= 0, slots, run)
    return positions, np.count_nonzero(run >= 0, axis=1), heads


def _widen(array, width):
    """Pad the last axis with zeros to `width`: slots that a short row can never fill."""
    missing = width - array.shape[1]
    return array if missing == 0 else np.pad(array, ((0, 0), (0, missing)))
