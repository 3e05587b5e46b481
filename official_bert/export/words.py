"""Words of a text, found from its WordPieces inside the graph, for tagging.

CoNLL-like words: what stands between blanks, with punctuation at either side as words of their own
("Baghdad." is two words, "19-year-old" one); the full stop of an abbreviation stays with it
("U.N.", "J."); every ideograph is a word.
"""

from collections.abc import Callable

import tensorflow as tf

from official_bert.tokenization import reference


class WordFinder(tf.Module):
    """Groups pieces to words. `vocab` is the list of pieces."""

    def __init__(self, vocab: list[str]):
        super().__init__(name="word_finder")
        self._is_punctuation = _marked(vocab, reference.is_punctuation)
        self._is_ideograph = _marked(vocab, reference.is_ideograph)
        self._is_dot = _marked(vocab, lambda piece: piece == ".")

    def begins_word(self, ids, starts, ends):
        """Whether a piece is the first of its word.

        Args:
          ids, starts, ends: ragged int32 [B, (pieces)], as the in-graph tokeniser gives them.

        Returns:
          bool [P], P the number of pieces of all texts.
        """
        pieces, begin, end = ids.values, starts.values, ends.values
        place = tf.range(tf.size(pieces))
        rows = tf.cast(ids.value_rowids(), tf.int32)
        new_row = tf.concat([[True], rows[1:] != rows[:-1]], axis=0)[: tf.size(pieces)]
        gap = tf.concat([[True], begin[1:] > end[:-1]], axis=0)[: tf.size(pieces)]
        new_chunk = new_row | gap  # a chunk is what stands between blanks
        chunk = tf.cumsum(tf.cast(new_chunk, tf.int32)) - 1
        chunks = tf.reduce_max(tf.concat([chunk, [-1]], axis=0)) + 1

        punctuation = tf.gather(self._is_punctuation, pieces)
        inner = tf.where(punctuation, tf.int32.max, place)
        core_first = tf.math.unsorted_segment_min(inner, chunk, chunks)
        core_last = _largest(tf.where(punctuation, -1, place), chunk, chunks)
        core_last += self._abbreviation(
            place, chunk, chunks, core_first, core_last, begin, end, pieces
        )

        ideograph = tf.gather(self._is_ideograph, pieces)
        after_ideograph = tf.concat([[False], ideograph[:-1]], axis=0)[: tf.size(pieces)]
        outside = (place <= tf.gather(core_first, chunk)) | (place > tf.gather(core_last, chunk))
        return new_chunk | outside | ideograph | after_ideograph

    def _abbreviation(self, place, chunk, chunks, core_first, core_last, begin, end, pieces):
        """1 for chunks whose core takes in the full stop behind it, else 0. int32 [chunks]"""
        dot = tf.gather(self._is_dot, pieces)
        of_first, of_last = tf.gather(core_first, chunk), tf.gather(core_last, chunk)
        inner_dot = dot & (place > of_first) & (place < of_last)
        one_letter = (place == of_first) & (place == of_last) & (end - begin == 1)
        short = _largest(tf.cast(inner_dot | one_letter, tf.int32), chunk, chunks)
        dot_behind = _largest(tf.cast(dot & (place == of_last + 1), tf.int32), chunk, chunks)
        has_core = tf.cast(core_last >= 0, tf.int32)
        return tf.maximum(short, 0) * tf.maximum(dot_behind, 0) * has_core


def _largest(values, segments, count):
    return tf.math.unsorted_segment_max(values, segments, count)


def _marked(vocab: list[str], test: Callable[[str], bool]) -> tf.Tensor:
    """Which pieces are one character that passes the test. bool [V]"""
    return tf.constant([len(piece) == 1 and test(piece) for piece in vocab])
