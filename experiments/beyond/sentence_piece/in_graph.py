"""ALBERT's tokeniser as TensorFlow operations, for SavedModels; equal to `SentencePieceTokenizer`.

tensorflow-text's SentencepieceTokenizer holds the model; what `sentence_piece.normalized` does to
the text before it is done with tables, on the characters of all texts in one flat vector.

Dimensions in comments: B texts, C characters, P pieces.
"""

import functools
import unicodedata

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text

from experiments.beyond.sentence_piece import tokenizer as sentence_piece
from official_bert.tokenization.graph import code_points
from official_bert.tokenization.graph.characters import (
    Characters,
    PagedTable,
    Replace,
    changes,
    decode,
    final_sigma,
    utf8_sizes,
)
from official_bert.tokenization.graph.in_graph import TextsToPieces, pieces_of

_BLANK = ord(" ")


class InGraphSentencePiece(TextsToPieces):
    """Texts to ids. Bytes that are not UTF-8 are ignored."""

    def __init__(self, tokenizer: sentence_piece.SentencePieceTokenizer):
        super().__init__(name="in_graph_sentence_piece")
        self._model = tf_text.SentencepieceTokenizer(tokenizer.model, out_type=tf.int32)
        self.resources = (self._model,)
        self._lower = tokenizer.do_lower_case
        is_blank, replaced = _tables()
        self._is_blank, self._replace = PagedTable(is_blank), Replace(replaced)
        if self._lower:
            self._lowered, self._case = map(PagedTable, _lower_case_tables())
        # The pieces in the place of each: itself, or the parts of a number and a comma.
        entries = range(tokenizer.vocab_size)
        parts = [tokenizer.parts.get(index, (index,)) for index in entries]
        lengths = [tokenizer.part_lengths.get(index, (0,)) for index in entries]
        behind = [[sum(row[place + 1 :]) for place in range(len(row))] for row in lengths]
        self._parts, self._behind = tf.ragged.constant(parts), tf.ragged.constant(behind)

    def _pieces(self, texts):
        batch = tf.size(texts)
        characters = decode(texts)
        written = self._normalized(characters)
        sizes = utf8_sizes(written.points)
        character = tf.repeat(tf.range(tf.size(sizes)), sizes)  # [bytes]
        points = tf.RaggedTensor.from_value_rowids(
            written.points, written.rows, nrows=batch, validate=False
        )
        # [B, (pieces)], in bytes of their texts
        ids, starts, ends = self._model.tokenize_with_offsets(
            tf.strings.unicode_encode(points, "UTF-8")
        )
        rows = tf.cast(ids.value_rowids(), tf.int32)
        first = tf.gather(
            tf.cumsum(tf.math.unsorted_segment_sum(sizes, written.rows, batch), exclusive=True),
            rows,
        )
        character = tf.concat([character, [tf.size(sizes)]], 0)
        begin, end = (first + tf.cast(place.values, tf.int32) for place in (starts, ends))
        starts = tf.gather(character, begin)  # [P]
        # The blank that the library puts before a text is not a byte of it.
        ends = tf.where(end > begin, tf.gather(character, tf.maximum(end - 1, 0)) + 1, starts)

        parts, behind = tf.gather(self._parts, ids.values), tf.gather(self._behind, ids.values)
        of_piece = tf.cast(parts.value_rowids(), tf.int32)  # [new P]
        ends = tf.gather(ends, of_piece) - behind.values
        is_first = tf.concat([[True], of_piece[1:] != of_piece[:-1]], 0)[: tf.size(of_piece)]
        ends_before = tf.concat([[0], ends[:-1]], 0)[: tf.size(ends)]
        starts = tf.where(is_first, tf.gather(starts, of_piece), ends_before)
        rows = tf.gather(rows, of_piece)
        lengths = tf.math.bincount(characters.rows, minlength=batch, maxlength=batch)
        starts, ends = self._places(written, starts, ends, rows, lengths)
        return pieces_of(batch, rows, parts.values, starts, ends)

    def _normalized(self, characters: Characters) -> Characters:
        """Return `sentence_piece.normalized`, every character with its place."""
        # One of several blanks stays, and none at the ends.
        blank = self._is_blank(characters.points) == 1
        breaks = blank | changes(characters.rows, filling=-1)
        next_breaks = tf.concat([breaks[1:], [True]], 0)[: tf.size(blank)]
        characters = characters.take(tf.where(~(blank & next_breaks))[:, 0])
        blank = self._is_blank(characters.points) == 1
        first = changes(characters.rows, filling=-1)
        characters = characters._replace(points=tf.where(blank, _BLANK, characters.points))
        characters = characters.take(tf.where(~(blank & first))[:, 0])

        characters, _ = self._replace(characters)
        points = characters.points
        if self._lower:
            points = self._lowered(final_sigma(points, self._case(points), characters.rows))
        return characters._replace(points=points)

    def _places(self, written, starts, ends, rows, lengths):
        """Map characters [start, end) of what is written -> of the texts, without blanks before."""
        count = tf.size(written.points)
        filled = tf.cast(tf.where(written.points != _BLANK)[:, 0], tf.int32)
        filled = tf.concat([filled, [count]], 0)
        next_filled = tf.gather(filled, tf.searchsorted(filled, starts))
        starts = tf.minimum(next_filled, ends)
        # Pieces of nothing but a blank stand before what follows it, or at the end of the text.
        padded_rows = tf.concat([written.rows, [-1]], 0)
        follows = tf.gather(padded_rows, starts) == rows
        padded = tf.concat([written.starts, [0]], 0)
        begin = tf.where(follows, tf.gather(padded, starts), tf.gather(lengths, rows))
        stop = tf.where(ends > starts, tf.gather(written.ends, tf.maximum(ends - 1, 0)), begin)
        return begin, stop


@functools.cache
def _tables() -> tuple[np.ndarray, code_points.Replacements]:
    """Return (whether each code point is a blank, the characters that replace it)."""
    is_blank = np.zeros(code_points.CODE_POINTS, np.int32)
    for char in code_points.defined():
        is_blank[ord(char)] = char.isspace()

    def decomposes(char):
        hangul = 0xAC00 <= ord(char) <= 0xD7A3
        return hangul or unicodedata.decomposition(char) or unicodedata.combining(char)

    changed = filter(decomposes, code_points.defined())
    return is_blank, code_points.replacements(sentence_piece.without_accents, changed)


@functools.cache
def _lower_case_tables() -> tuple[np.ndarray, np.ndarray]:
    """Return lower case, and what `final_sigma` asks, of each code point."""
    lowered = np.arange(code_points.CODE_POINTS)
    for char in code_points.defined():
        # Only U+0130 becomes two characters, and it is decomposed before.
        lowered[ord(char)] = ord(char.lower()[0])
    return lowered, code_points.case_table()
