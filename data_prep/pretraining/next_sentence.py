"""Segment pairs for next-sentence prediction: section 3.1, task 2, and appendix A.2.

The sampling is the original's, rule by rule. For each document and each duplication a target length
is drawn once. Sentences are collected until they reach it or the document ends; this is a chunk.
The chunk is cut at a random sentence: segment A before the cut, segment B after it (IsNext), or a
passage from another document (random), half of the time and whenever the chunk is a single
sentence. The sentences that a random B left unused start the next chunk, so no text is lost. Pairs
that are too long lose tokens of their longer segment, each from a random end.

A chunk, a segment and a passage are runs of consecutive sentences, and the tokens of a document lie
consecutively in the token store. So a pair is four numbers (start and length of A and of B), and
all documents of a block advance in lockstep: one step makes the next pair of every document and
every duplication at once. This gives the same distribution as the original's loops, about fifty
times as fast.

Rows may be packed in other ways (`PACKINGS`), which RoBERTa's paper compares (section 4.2).
"segments": BERT's own, two segments of several sentences each. "consecutive": the same without
random segments, except for chunks of one sentence, which have no other B (ALBERT's code). "pairs":
two sentences, otherwise as BERT (sentence-pair with next sentence prediction). "single": one
segment of as many whole sentences of one document as fit (doc-sentences). Rows that continue in the
next document (full-sentences, which was a little worse) are not made: a block would need its
neighbour.
"""

import functools
from dataclasses import dataclass

import numpy as np

from data_prep.pretraining.random_streams import RandomStream, below, uniform

# The original draws again while the random document is the current one, ten draws in all.
_DOCUMENT_DRAWS = 10


@dataclass
class SegmentPairs:
    """Pairs as places in a flat array of token ids; every field has the shape [pairs].

    Attributes:
      a_start, a_length, b_start, b_length: int64; segment A is tokens[a_start:a_start + a_length].
      is_random: bool; B comes from a random document (next-sentence label 1).
      document: int64; index of the document that A comes from.
      random_document: int64; index of the document that B comes from.
      duplication: int64; index of the stream that drew the pair. Pairs are ordered by it.
      cut: int64; number of tokens that were cut to make the pair fit.
    """

    a_start: np.ndarray
    a_length: np.ndarray
    b_start: np.ndarray
    b_length: np.ndarray
    is_random: np.ndarray
    document: np.ndarray
    random_document: np.ndarray
    duplication: np.ndarray
    cut: np.ndarray

    def __len__(self):
        return len(self.a_start)

    def take(self, rows) -> "SegmentPairs":
        """Return the pairs at `rows`: indices, a slice or a boolean mask."""
        return SegmentPairs(**{name: values[rows] for name, values in vars(self).items()})


def segment_pairs(
    sentence_offsets: np.ndarray,
    document_offsets: np.ndarray,
    max_tokens: int,
    short_seq_prob: float,
    streams: list[RandomStream],
    two_sentences: bool = False,
    random_share: float = 0.5,
) -> SegmentPairs:
    """Draw the pairs of a block of documents, once for each stream.

    Args:
      sentence_offsets: int [sentences + 1]; sentence s is tokens[offsets[s]:offsets[s + 1]], never
        empty.
      document_offsets: int [documents + 1]; document d is sentences offsets[d] to
        offsets[d + 1] - 1, never empty.
      max_tokens: the most tokens of A and B together: max_seq_length - 3 for [CLS] and two [SEP].
      short_seq_prob: probability of a target length drawn uniformly from 2 to max_tokens instead
        of max_tokens.
      streams: a random stream for each duplication of the corpus; its pairs depend on it alone.
      two_sentences: A and B are one sentence each, whatever the target length.
      random_share: probability of a random B for a chunk of two sentences or more.

    Returns:
      The pairs after truncation, ordered by duplication. Where there is a single document, random
      segments come from it.
    """
    chunks = _chunks(
        np.asarray(sentence_offsets, np.int64),
        np.asarray(document_offsets, np.int64),
        max_tokens,
        short_seq_prob,
        streams,
        two_sentences,
        random_share,
    )
    chunks = chunks.take(np.argsort(chunks.duplication, kind="stable"))
    bounds = np.searchsorted(chunks.duplication, np.arange(len(streams) + 1))
    for stream, first, last in zip(streams, bounds[:-1], bounds[1:], strict=True):
        _truncate(chunks, slice(first, last), max_tokens, stream)
    return chunks


def _chunks(
    offsets, documents, max_tokens, short_seq_prob, streams, two_sentences, random_share
) -> SegmentPairs:
    """Return all pairs before truncation, in the order of the steps."""
    number = len(documents) - 1
    draw = LockstepDraws(streams)
    duplication, document, target = first_targets(draw, number, max_tokens, short_seq_prob)
    sentence = documents[document]  # where the next chunk starts

    steps = []
    while len(document):
        last = documents[document + 1]
        start = offsets[sentence]
        end = sentence + 2 if two_sentences else np.searchsorted(offsets, start + target)
        end = np.minimum(end, last)
        sentences = end - sentence
        raw = draw(duplication, 2)
        a_end = sentence + 1 + below(raw[0], np.maximum(sentences - 1, 1))
        is_random = (sentences == 1) | (uniform(raw[1]) < random_share)

        a_length = offsets[a_end] - start
        b_start = offsets[a_end].copy()
        b_length = offsets[end] - b_start
        b_document = document.copy()
        rows = np.flatnonzero(is_random)
        b_document[rows] = _random_documents(draw, duplication[rows], document[rows], number)
        wanted = np.ones(len(rows), int) if two_sentences else (target - a_length)[rows]
        b_start[rows], b_length[rows] = _random_passages(
            draw, duplication[rows], offsets, documents, b_document[rows], wanted
        )
        steps.append(
            SegmentPairs(
                a_start=start,
                a_length=a_length,
                b_start=b_start,
                b_length=b_length,
                is_random=is_random,
                document=document,
                random_document=b_document,
                duplication=duplication,
                cut=np.zeros(len(document), np.int64),
            )
        )
        sentence = np.where(is_random, a_end, end)  # a random B puts the chunk's rest back
        more = sentence < last
        duplication, document = duplication[more], document[more]
        sentence, target = sentence[more], target[more]
    return joined(steps)


def joined(steps: list[SegmentPairs]) -> SegmentPairs:
    """Concatenate the pairs of all steps."""
    if not steps:
        return SegmentPairs(*(np.zeros(0, bool if i == 4 else np.int64) for i in range(9)))
    return SegmentPairs(
        **{name: np.concatenate([getattr(s, name) for s in steps]) for name in vars(steps[0])}
    )


def first_targets(draw: "LockstepDraws", documents: int, max_tokens: int, short_seq_prob: float):
    """Return an entry for each (duplication, document), ordered by duplication.

    Returns:
      duplication, document, and the target length of the document's rows, int64 each.
    """
    duplication = np.repeat(np.arange(draw.duplications), documents)
    document = np.tile(np.arange(documents), draw.duplications)
    raw = draw(duplication, 2)
    short = uniform(raw[0]) < short_seq_prob
    return duplication, document, np.where(short, 2 + below(raw[1], max_tokens - 1), max_tokens)


def _random_documents(draw, duplication, current, number):
    """Draw a document for each row, again (ten draws in all) while it is the current one."""
    drawn = below(draw(duplication, 1)[0], number)
    for _ in range(_DOCUMENT_DRAWS - 1):
        again = np.flatnonzero(drawn == current)
        if not len(again):
            break
        drawn[again] = below(draw(duplication[again], 1)[0], number)
    return drawn


def _random_passages(draw, duplication, offsets, documents, document, wanted):
    """Return start and length of passages of `wanted` tokens or more, from random sentences on.

    A passage is one sentence or more; it is shorter than wanted where the document ends.
    """
    first, last = documents[document], documents[document + 1]
    sentence = first + below(draw(duplication, 1)[0], last - first)
    start = offsets[sentence]
    end = np.searchsorted(offsets, start + np.maximum(wanted, 1))
    return start, offsets[np.minimum(end, last)] - start


def _truncate(pairs, rows, max_tokens, stream):
    """Cut tokens of the longer segment (B when equal) until both fit, each from a random end.

    The closed form below gives the lengths that cutting token by token gives: the longer segment
    shrinks to what the shorter one leaves, or both to one half (A to the larger half).
    """
    a_length, b_length = pairs.a_length[rows], pairs.b_length[rows]
    long = a_length + b_length > max_tokens
    a_kept = np.minimum(a_length, np.maximum(max_tokens - b_length, (max_tokens + 1) // 2))
    a_kept = np.where(long, a_kept, a_length)
    b_kept = np.where(long, max_tokens - a_kept, b_length)
    pairs.a_start[rows] += _heads(a_length - a_kept, stream)
    pairs.b_start[rows] += _heads(b_length - b_kept, stream)
    pairs.cut[rows] = a_length - a_kept + b_length - b_kept
    pairs.a_length[rows] = a_kept
    pairs.b_length[rows] = b_kept


def _heads(tosses, stream):
    """Return the number of heads among `tosses[i]` fair coins, int64: the tokens cut in front."""
    heads = np.zeros(len(tosses), np.int64)
    rows = np.flatnonzero(tosses)
    if not len(rows):
        return heads
    words = (tosses[rows] + 63) // 64
    bits = stream.raw(int(words.sum()))
    ends = np.cumsum(words)
    unused = (words * 64 - tosses[rows]).astype(np.uint64)  # bits of each row's last word, 0 to 63
    bits[ends - 1] >>= unused
    heads[rows] = np.add.reduceat(_ones(bits), ends - words)
    return heads


def _ones(words):
    """Return the number of set bits of each uint64, int64."""
    return _ONES_OF_16_BITS[words.view(np.uint16)].reshape(-1, 4).sum(axis=1, dtype=np.int64)


_ONES_OF_16_BITS = np.zeros(1 << 16, np.uint8)
for _bit in range(16):
    _ONES_OF_16_BITS += ((np.arange(1 << 16) >> _bit) & 1).astype(np.uint8)


class LockstepDraws:
    """Random numbers for rows of several duplications, each from its own stream."""

    def __init__(self, streams):
        self._streams = streams
        self.duplications = len(streams)

    def __call__(self, duplication, numbers) -> np.ndarray:
        """Return uint64 [numbers, rows].

        `duplication` is ascending, so each stream fills one stretch.
        """
        counts = np.bincount(duplication, minlength=len(self._streams))
        return np.concatenate(
            [
                stream.raw(numbers * count).reshape(numbers, count)
                for stream, count in zip(self._streams, counts.tolist(), strict=True)
            ],
            axis=1,
        )


def single_segments(
    sentence_offsets: np.ndarray,
    document_offsets: np.ndarray,
    max_tokens: int,
    short_seq_prob: float,
    streams: list[RandomStream],
) -> SegmentPairs:
    """Return rows of one segment: A, and an empty B; arguments as in `segment_pairs`.

    A sentence that does not fit begins the next row; one that is too long for any row loses its
    end.
    """
    offsets, documents = (np.asarray(o, np.int64) for o in (sentence_offsets, document_offsets))
    duplication, document, target = first_targets(
        LockstepDraws(streams), len(documents) - 1, max_tokens, short_seq_prob
    )
    sentence, steps = documents[document], []
    while len(document):
        start, last = offsets[sentence], documents[document + 1]
        fitting = np.searchsorted(offsets, start + target, side="right") - 1
        end = np.clip(fitting, sentence + 1, last)
        length = offsets[end] - start
        kept, nothing = np.minimum(length, max_tokens), np.zeros_like(length)
        steps.append(
            SegmentPairs(
                a_start=start,
                a_length=kept,
                b_start=nothing,
                b_length=nothing,
                is_random=np.zeros(len(length), bool),
                document=document,
                random_document=document,
                duplication=duplication,
                cut=length - kept,
            )
        )
        more = end < last
        duplication, document = duplication[more], document[more]
        sentence, target = end[more], target[more]
    rows = joined(steps)
    return rows.take(np.argsort(rows.duplication, kind="stable"))


PACKINGS = {
    "segments": segment_pairs,
    "consecutive": functools.partial(segment_pairs, random_share=0.0),
    "pairs": functools.partial(segment_pairs, two_sentences=True),
    "single": single_segments,
}
