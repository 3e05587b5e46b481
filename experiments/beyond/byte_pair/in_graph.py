"""Byte-pair encoding as TensorFlow operations, for SavedModels; equal to `BytePairTokenizer`,
and to a `ForeignTokenizer` of the same kind.

GPT-2's cut of a text needs to look ahead, which TensorFlow's regular expressions cannot, and
TensorFlow may know another version of Unicode. So the characters of all texts stand in one flat
vector, as in `in_graph.py`, and whether a word begins is asked of tables and neighbours. Then the
best pair of every word is merged, all words at once, until none has a pair left.

Dimensions in comments: B texts, C characters, W words, P pieces.
"""

import functools

import numpy as np
import tensorflow as tf

from experiments.beyond.byte_pair import files
from experiments.beyond.byte_pair.tokenizer import blanks_around
from official_bert.tokenization.graph import foreign_tables
from official_bert.tokenization.graph.added_tokens import AddedTokens
from official_bert.tokenization.graph.characters import PagedTable, changes, decode, utf8_sizes
from official_bert.tokenization.graph.in_graph import TextsToPieces, pieces_of
from official_bert.tokenization.library.foreign import ForeignTokenizer, LibraryTokenizer
from official_bert.tokenization.library.tokenizer_json import BYTE_CHARACTERS

_EDGE, _MARK, _LETTER, _NUMBER, _BLANK = -1, 0, 1, 2, 3
_NO_RANK = np.int32(2**31 - 1)


class InGraphBytePairs(TextsToPieces):
    """Texts to ids. Bytes that are not UTF-8 are ignored."""

    def __init__(self, tokenizer: LibraryTokenizer):
        """Take a tokeniser apart for a graph.

        Raises:
          UserError: a graph cannot compute a part of the tokeniser; the message names it.
        """
        super().__init__(name="in_graph_byte_pairs")
        id_of = {piece: index for index, piece in enumerate(tokenizer.vocab)}
        self._added: list[AddedTokens] = []
        trims, merges = True, getattr(tokenizer, "merges", ())
        if isinstance(tokenizer, ForeignTokenizer):
            merges, trims = files.merges_of(tokenizer.contents)
            self._added = [AddedTokens(tokenizer, later, trims) for later in (False, True)]
        self._kind = PagedTable(_kinds())
        self._add_prefix_space = getattr(tokenizer, "add_prefix_space", False)
        self._id_of_byte = tf.constant([id_of[char] for char in BYTE_CHARACTERS])
        self._bytes_of_id = tf.constant([len(piece) for piece in tokenizer.vocab])
        blanks = np.array([blanks_around(piece) for piece in tokenizer.vocab], np.int32)
        self._blanks_before, self._blanks_behind = map(tf.constant, blanks.T * trims)
        self._merge = Merges(tokenizer.vocab, merges)

    def _pieces(self, texts):
        added = tf.zeros(tf.shape(texts), tf.int32)
        if self._add_prefix_space:
            first = tf.strings.unicode_decode(texts, "UTF-8", errors="ignore")[:, :1]
            begins = first.values != ord(" ")
            added = tf.reduce_sum(tf.cast(first.with_values(begins), tf.int32), axis=1)
            texts = tf.strings.join([tf.where(added > 0, " ", ""), texts])
        characters = decode(texts)
        for added_tokens in self._added:
            characters = added_tokens(characters)
        points, rows = characters.points, characters.rows
        # An added token stands between texts of their own.
        is_token = points >= foreign_tables.ADDED
        edge = is_token | changes(rows, -1) | changes(tf.cast(is_token, tf.int32), 0)
        part = tf.cumsum(tf.cast(edge, tf.int32))
        begins = _begins(points, self._kind(points), part)
        word = tf.cumsum(tf.cast(begins, tf.int32)) - 1
        content, character = _utf8(tf.where(is_token, ord("x"), points))  # [bytes]
        ids = tf.gather(self._id_of_byte, content)
        ids = self._merge(ids, tf.gather(word, character))
        ends = tf.cumsum(tf.gather(self._bytes_of_id, ids))  # [P], in bytes
        starts = ends - tf.gather(self._bytes_of_id, ids)
        first = tf.gather(character, starts)
        start = tf.gather(characters.starts, first)
        end = tf.gather(characters.ends, tf.gather(character, ends - 1))
        start = tf.minimum(start + tf.gather(self._blanks_before, ids), end)
        end = tf.maximum(end - tf.gather(self._blanks_behind, ids), start)
        row = tf.gather(rows, first)
        before = tf.gather(added, row)
        for added_tokens in self._added:
            ids = added_tokens.ids_or(ids, tf.gather(points, first))
        places = (tf.maximum(place - before, 0) for place in (start, end))
        return pieces_of(tf.size(texts), row, ids, *places)


class Merges(tf.Module):
    """The pieces that the smallest ones of words become."""

    def __init__(self, vocab, merges):
        super().__init__(name="merges")
        id_of = {piece: index for index, piece in enumerate(vocab)}
        self._entries = len(vocab)
        pairs = np.array([(id_of[a], id_of[b], id_of[a + b]) for a, b in merges], np.int64).reshape(
            -1, 3
        )
        keys = pairs[:, 0] * self._entries + pairs[:, 1]
        order = np.argsort(keys)
        # One key more, that no pair has: there is always something to find.
        self._keys = tf.constant(np.append(keys[order], np.iinfo(np.int64).max))
        self._ranks = tf.constant(np.append(order, _NO_RANK).astype(np.int32))
        self._merged = tf.constant(np.append(pairs[order, 2], 0).astype(np.int32))

    def __call__(self, ids, word):
        """Map int32 [P]; `word` says whose each is, and rises -> fewer pieces."""

        def step(ids, word, going):
            del going
            # A pair is a piece and the one after it, in the same word.
            key = tf.cast(ids[:-1], tf.int64) * self._entries + tf.cast(ids[1:], tf.int64)
            place = tf.searchsorted(self._keys, key)
            known = (tf.gather(self._keys, place) == key) & (word[:-1] == word[1:])
            rank = tf.where(known, tf.gather(self._ranks, place), _NO_RANK)
            best = tf.math.segment_min(rank, word[:-1])
            joins = known & (rank == tf.gather(best, word[:-1]))
            # In "aaa" the first two join: every second one of pairs that overlap.
            index = tf.range(tf.size(joins))
            run = tf.cumsum(tf.cast(~joins, tf.int32))
            first = tf.math.segment_min(tf.where(joins, index, _NO_RANK), run)
            joins &= (index - tf.gather(first, run)) % 2 == 0
            merged = tf.gather(self._merged, place)
            ids = tf.where(tf.concat([joins, [False]], 0), tf.concat([merged, [0]], 0), ids)
            stays = tf.concat([[True], ~joins], 0)
            return tf.boolean_mask(ids, stays), tf.boolean_mask(word, stays), tf.reduce_any(joins)

        any_size = tf.TensorShape([None])
        ids, word, _ = tf.while_loop(
            lambda ids, word, going: going,
            step,
            (ids, word, tf.size(ids) > 1),
            shape_invariants=(any_size, any_size, tf.TensorShape([])),
        )
        return ids


@functools.cache
def _kinds() -> np.ndarray:
    """Return the kind of each character in GPT-2's cut."""
    import tokenizers

    cut = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str

    def kind(char):
        if len(cut(f"a{char}")) == 1:
            return _LETTER
        if len(cut(f"1{char}")) == 1:
            return _NUMBER
        # The first of two blanks before a letter is apart; "!?" is one word.
        return _MARK if len(cut(f"!{char}")) == 1 else _BLANK

    return foreign_tables.table(kind, np.uint8)


def _begins(points, kind, rows):
    """Return whether a word of GPT-2's cut begins at each character, bool [C]: contractions,
    letters, digits, other marks, blanks; a blank belongs to the word after it."""
    count = tf.size(points)
    new_row = tf.concat([[True], rows[1:] != rows[:-1]], 0)[:count]
    before = tf.where(new_row, _EDGE, tf.concat([[_EDGE], kind[:-1]], 0)[:count])
    last = tf.concat([new_row[1:], [True]], 0)[:count]
    after = tf.where(last, _EDGE, tf.concat([kind[1:], [_EDGE]], 0)[:count])
    after_space = ~new_row & (tf.concat([[0], points[:-1]], 0)[:count] == ord(" "))

    blank = kind == _BLANK
    # The last of several blanks is apart where text follows; a space then belongs to that text.
    begins = tf.where(
        blank, (before != _BLANK) | ((after != _BLANK) & (after != _EDGE)), kind != before
    )
    begins &= blank | ~after_space

    def next_points(steps):
        """Return the character so many places on, 0 behind the end of the text."""
        ahead = tf.concat([points[steps:], tf.zeros([steps], points.dtype)], 0)[:count]
        same = tf.concat([rows[steps:], tf.fill([steps], -1)], 0)[:count] == rows
        return tf.where(same, ahead, 0)

    one, two = next_points(1), next_points(2)
    quote = begins & (points == ord("'"))

    def is_one_of(values, characters):
        return tf.reduce_any([values == ord(char) for char in characters], axis=0)

    short = quote & is_one_of(one, "stmd")
    long = (is_one_of(one, "rv") & (two == ord("e"))) | ((one == ord("l")) & (two == ord("l")))
    long &= quote

    def later(flags, steps):
        return tf.concat([tf.zeros([steps], tf.bool), flags], 0)[:count]

    begins &= ~later(short | long, 1)
    return begins | new_row | later(short, 2) | later(long, 3)


def _utf8(points):
    """Return the bytes of characters [C]: their values, and the character of each."""
    sizes = utf8_sizes(points)
    character = tf.repeat(tf.range(tf.size(points)), sizes)
    place = tf.range(tf.size(character)) - tf.gather(tf.cumsum(sizes, exclusive=True), character)
    size, point = tf.gather(sizes, character), tf.gather(points, character)
    shifted = tf.bitwise.right_shift(point, 6 * (size - 1 - place))
    # A first byte says by its high bits how many follow.
    lead = tf.where(size == 1, 0, tf.bitwise.right_shift(0xF00, size) & 0xFF)
    value = tf.where(place == 0, lead | shifted, 0x80 | (shifted & 0x3F))
    return value, character
