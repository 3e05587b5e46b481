"""SentencePiece's table of replacements as TensorFlow operations, as the library applies it.

SentencePiece replaces the longest text that its table has. The library `tokenizers` looks at a
character with the marks behind it. If both have fewer than six bytes, the shortest beginning that
the table has takes the place of all of them; else each character is looked up alone.
"""

import itertools
import unicodedata

import numpy as np
import tensorflow as tf

from official_bert.common.errors import UserError
from official_bert.tokenization.graph import code_points, foreign_tables
from official_bert.tokenization.graph.characters import Characters, PagedTable, changes, utf8_sizes
from official_bert.tokenization.library import tokenizer_json

_MOST_BYTES = 5  # of a character with marks that are looked up together
_ACCENT = "\u0301"
_LETTERS_ALL = ((0x3400, 0xA000), (0xAC00, 0xD800), (0x20000, 0xE0000))  # ideographs, Hangul
_LETTER, _MARK, _PREFIX, _ALONE = range(4)


class Charsmap(tf.Module):
    """A step "Precompiled" of a normalizer."""

    def __init__(self, step):
        """Ask the library about every character (seconds).

        Raises:
          UserError: the table does not compose letters and accents.
        """
        super().__init__(name="charsmap")
        normalize = tokenizer_json.part("normalizer", step).normalize_str
        if normalize(f"e{_ACCENT}") == f"e{_ACCENT}":
            raise UserError(
                "a TensorFlow graph cannot compute a precompiled_charsmap that leaves letters "
                "and accents apart: export token ids instead (experiments.export --format=onnx)"
            )
        kinds = np.full(foreign_tables.SIZE, _LETTER, np.uint8)
        for char in code_points.defined():
            if not any(first <= ord(char) < end for first, end in _LETTERS_ALL):
                kinds[ord(char)] = _kind(char, normalize)
        self._kind = PagedTable(kinds)
        alone = code_points.replacements(normalize, code_points.defined(), foreign_tables.SIZE)
        joined = _joined(normalize, kinds, alone.numbers)
        self._numbers = PagedTable(alone.numbers)
        # One more key, which no text has, so that a search always finds something.
        self._keys = tf.constant(np.array([*sorted(joined), np.iinfo(np.int64).max]))
        texts = [joined[key] for key in sorted(joined)]
        self._first = len(alone.lengths)  # number of the first replacement of several characters
        lengths = np.append(alone.lengths, [*map(len, texts)]).astype(np.int32)
        self._lengths = tf.constant(lengths)
        self._starts = tf.constant((np.cumsum(lengths) - lengths).astype(np.int32))
        self._points = tf.constant(
            np.append(alone.points, [*map(ord, "".join(texts))]).astype(np.int32)
        )

    def __call__(self, characters: Characters) -> Characters:
        points, rows = characters.points, characters.rows
        size = tf.size(points)
        kind = self._kind(points)
        before = tf.concat([[_LETTER], kind[:-1]], 0)[:size]
        follows = ((kind == _MARK) & (before != _ALONE)) | ((before == _PREFIX) & (kind != _ALONE))
        begins = changes(rows, filling=-1) | ~follows
        group = tf.cumsum(tf.cast(begins, tf.int32)) - 1  # of marks and the character before
        place = tf.range(size) - tf.gather(tf.cast(tf.where(begins)[:, 0], tf.int32), group)
        count = tf.gather(tf.math.segment_sum(tf.ones_like(points), group), group)
        sizes = tf.gather(tf.math.segment_sum(utf8_sizes(points), group), group)

        number = self._numbers(points)
        together = begins & (count > 1) & (sizes <= _MOST_BYTES)
        number = tf.where(together & (number == 0), self._number_of_group(points, count), number)
        joins = tf.gather(tf.boolean_mask(together & (number > 0), begins), group)
        length = tf.where(joins & ~begins, 0, tf.gather(self._lengths, number))
        source = tf.repeat(tf.range(size), length)  # [new C]
        place = tf.range(tf.size(source)) - tf.gather(tf.cumsum(length, exclusive=True), source)
        number = tf.gather(number, source)
        new = tf.gather(self._points, tf.gather(self._starts, number) + place)
        new = tf.where(number == 0, tf.gather(points, source), new)
        # The library gives the characters of the replacement those of the group one by one.
        within = tf.where(tf.gather(joins, source), tf.gather(count, source) - 1, 0)
        return characters.take(source + tf.minimum(place, within))._replace(points=new)

    def _number_of_group(self, points, count):
        """Return the replacement that two, else three, characters from each place have, or 0."""
        ahead = tf.concat([tf.cast(points, tf.int64), tf.zeros([2], tf.int64)], 0)
        key, number, size = ahead[:-2] * (1 << 42), tf.zeros_like(points), tf.size(points)
        for place in (1, 2):
            key += ahead[place : size + place] * (1 << 21 * (2 - place))
            slot = tf.searchsorted(self._keys, key)
            found = (tf.gather(self._keys, slot) == key) & (count > place) & (number == 0)
            number = tf.where(found, self._first + slot, number)
        return number


def _kind(char: str, normalize) -> int:
    """Return whether a character joins one before it, or one behind it, or none."""
    letter = f"e{_ACCENT}"  # with one mark more it has too many bytes, or the mark is lost
    if normalize(letter + char) != normalize(letter) + normalize(char):
        return _MARK
    if normalize(char + letter) != normalize(char) + normalize(letter):
        return _PREFIX
    replaced = normalize(char) != char
    return _ALONE if replaced and normalize(char + _ACCENT) != normalize(char) else _LETTER


def _joined(normalize, kinds, alone) -> dict[int, str]:
    """Return {key: replacement} of two and three characters of which the first has none alone.

    The key holds 21 bits of each. Asked are all letters with accents, in any order of accents.
    """
    found = {}
    for char in filter(unicodedata.decomposition, code_points.defined()):
        parts = unicodedata.decomposition(char).split()
        pair = "".join(chr(int(part, 16)) for part in parts if "<" not in part)
        first, *others = unicodedata.normalize("NFD", char)
        for text in (pair, *("".join([first, *each]) for each in itertools.permutations(others))):
            points = [*map(ord, text)]
            if not 2 <= len(text) <= 3 or len(text.encode()) > _MOST_BYTES or alone[points[0]]:
                continue
            apart = "".join(map(normalize, text))
            if all(kinds[points[1:]] == _MARK) and (new := normalize(text)) != apart:
                key = points[0] << 42 | points[1] << 21 | (points[2] if len(points) > 2 else 0)
                found[key] = new
    return found
