"""Characters of all texts of a batch as one vector, and the work on each of them in a graph."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from official_bert.tokenization.graph import code_points
from official_bert.tokenization.graph.code_points import ALONE, BLANK

SIGMA, _FINAL_SIGMA = ord("Σ"), ord("ς")


class Characters(NamedTuple):
    """Characters on their way to words, int32 [C] each."""

    points: tf.Tensor  # the code point
    rows: tf.Tensor  # the text it belongs to
    starts: tf.Tensor  # the part [start, end) of the text that it stands for
    ends: tf.Tensor

    def take(self, indices) -> "Characters":
        return Characters(*(tf.gather(values, indices) for values in self))


def split_words(characters: Characters, kind):
    """Return the characters of words, the word of each, and the text of each word.

    Neighbours of one kind of `code_points` make a word, each ALONE one by itself, BLANK none.
    """
    filled = kind != BLANK
    begins = filled & (
        (kind == ALONE) | changes(kind, filling=BLANK) | changes(characters.rows, filling=-1)
    )
    word = tf.cumsum(tf.cast(begins, tf.int32)) - 1
    return (
        characters.take(tf.where(filled)[:, 0]),
        tf.boolean_mask(word, filled),
        tf.boolean_mask(characters.rows, begins),
    )


def decode(texts, errors: str = "ignore") -> Characters:
    """Decode UTF-8 texts; invalid bytes are left out, or U+FFFD where `errors` is "replace"."""
    points = tf.strings.unicode_decode(texts, "UTF-8", errors=errors)
    rows = tf.cast(points.value_rowids(), tf.int32)
    starts = tf.range(tf.size(rows)) - tf.gather(tf.cast(points.row_starts(), tf.int32), rows)
    return Characters(points.flat_values, rows, starts, starts + 1)


def changes(values, filling: int):
    """Return whether each value of [C] differs from the one before it; `filling` precedes the
    first."""
    before = tf.concat([[filling], tf.cast(values[:-1], tf.int32)], 0)[: tf.size(values)]
    return values != before


def canonical_order(order, rows):
    """Return the permutation that sorts each run of marks (order > 0) by order."""
    run = tf.cumsum(tf.cast((order == 0) | changes(rows, filling=-1), tf.int64))
    return tf.argsort(run * 256 + tf.cast(order, tf.int64), stable=True)


def final_sigma(points, case, rows):
    """Replace Σ by ς at the end of words: after a cased letter, with no cased one behind.

    Ignorable characters do not count.

    Args:
      points, case, rows: of characters [C]; `case` as in `code_points`, `rows` their texts.
    """
    relevant = tf.where(case != code_points.CASE_IGNORABLE)[:, 0]
    cased, row = tf.gather(case, relevant) == code_points.CASED, tf.gather(rows, relevant)
    together = row[1:] == row[:-1]
    cased_before = tf.concat([[False], cased[:-1] & together], 0)
    cased_after = tf.concat([cased[1:] & together, [False]], 0)
    count = tf.size(relevant)
    final = tf.gather(points, relevant) == SIGMA
    final &= cased_before[:count] & ~cased_after[:count]
    at = tf.boolean_mask(relevant, final)
    return tf.tensor_scatter_nd_update(
        points, at[:, tf.newaxis], tf.fill([tf.size(at)], _FINAL_SIGMA)
    )


def utf8_sizes(points):
    """Return the number of UTF-8 bytes of characters [C], int32."""
    return 1 + tf.add_n([tf.cast(points >= limit, tf.int32) for limit in (0x80, 0x800, 0x10000)])


class PagedTable(tf.Module):
    """A value for each code point, in pages of 256; equal pages are stored once."""

    def __init__(self, values: np.ndarray):
        super().__init__()
        pages: dict[bytes, int] = {}  # the number of each page
        page_of = [pages.setdefault(page.tobytes(), len(pages)) for page in values.reshape(-1, 256)]
        stored = np.frombuffer(b"".join(pages), values.dtype)
        self._values = tf.constant(stored.astype(np.int32))
        self._page_start = tf.constant(np.array(page_of, np.int32) * 256)

    def __call__(self, points: tf.Tensor) -> tf.Tensor:
        """Return int32 [C] values of int32 [C] code points."""
        page_start = tf.gather(self._page_start, points // 256)
        return tf.gather(self._values, page_start + points % 256)


class Replace(tf.Module):
    """Replaces characters by no, one or several others."""

    def __init__(self, tables: code_points.Replacements):
        super().__init__()
        self._numbers = PagedTable(tables.numbers)
        self._starts, self._lengths = tf.constant(tables.starts), tf.constant(tables.lengths)
        self._points = tf.constant(tables.points)

    def lengths(self, points):
        """Return how many characters replace each of [C], int32."""
        return tf.gather(self._lengths, self._numbers(points))

    def __call__(self, characters: Characters) -> tuple[Characters, tf.Tensor]:
        """Return the new characters, and the place of each in its replacement, int32 [new C]."""
        number = self._numbers(characters.points)  # [C]
        length = tf.gather(self._lengths, number)
        source = tf.repeat(tf.range(tf.size(length)), length)  # [new C]
        place = tf.range(tf.size(source)) - tf.gather(tf.cumsum(length, exclusive=True), source)
        characters, number = characters.take(source), tf.gather(number, source)
        points = tf.gather(self._points, tf.gather(self._starts, number) + place)
        points = tf.where(number == 0, characters.points, points)
        return characters._replace(points=points), place
