"""Packings of a row of pre-training data: the comparison of RoBERTa's paper (section 4.2).

"segments": BERT's own, two segments of several sentences each. "consecutive": the same without
random partners, but for chunks of one sentence, which have no other (ALBERT's code). "pairs": two
sentences, else as BERT's (sentence-pair with next sentence prediction). "single": one segment of as
many whole sentences of one document as fit (doc-sentences). Rows that go on into the next document
(full-sentences, which was a little worse) are not made: a block would have to know its neighbour.
"""

import functools

import numpy as np

from data_prep.pretraining.next_sentence import (
    LockstepDraws,
    SegmentPairs,
    first_targets,
    joined,
    segment_pairs,
)
from data_prep.pretraining.random_streams import RandomStream


def single_segments(
    sentence_offsets: np.ndarray,
    document_offsets: np.ndarray,
    max_tokens: int,
    short_seq_prob: float,
    streams: list[RandomStream],
) -> SegmentPairs:
    """Rows of one segment: A, and a B of no tokens. Arguments as in `segment_pairs`.

    A sentence that does not fit begins the next row; one that fits in no row loses its end.
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
