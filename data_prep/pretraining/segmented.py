"""Text in which a segmenter has put blanks between the words of a language that writes none.

BERT makes every ideograph a token, so whole-word masking finds no Chinese words by itself. Where
the corpus comes from a segmenter, an ideograph that continues the word of the ideograph before it
is stored as its id plus the size of the vocabulary: a second copy of the vocabulary, whose entries
are the same pieces, inside a word.
"""

import numpy as np

from official_bert.tokenization.reference import is_ideograph


class SegmentedEncoder:
    """Has `BertTokenizer.encode_lines`, with ids in [0, 2 * vocab_size)."""

    def __init__(self, tokenizer):
        self._tokenizer = tokenizer
        self._is_ideograph = np.array([len(p) == 1 and is_ideograph(p) for p in tokenizer.vocab])

    def encode_lines(self, data: bytes) -> tuple[np.ndarray, np.ndarray]:
        """See `BertTokenizer.encode_lines`; blanks are the segmenter's."""
        ids, offsets = self._tokenizer.encode_lines(data.replace(b" ", b"\n"))
        ideograph = self._is_ideograph[ids]
        continues = ideograph.copy()
        continues[1:] &= ideograph[:-1]
        starts = offsets[:-1]
        continues[starts[starts < len(ids)]] = False
        content = np.frombuffer(data, np.uint8)
        separators = content[(content == ord(" ")) | (content == ord("\n"))]
        line_ends = np.flatnonzero(separators == ord("\n")) + 1
        offsets = np.concatenate([[0], offsets[line_ends]])
        return ids + continues * np.int32(self._tokenizer.vocab_size), offsets
