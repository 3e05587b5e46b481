"""Foreign WordPiece tokenisers as TensorFlow operations for SavedModels.

They equal `ForeignTokenizer`.

Prefix, unknown token and length of words are free, after steps that work on characters
(`foreign_tables`). Added tokens are cut out first, or after normalisation if they are found in
normalised text. A part that a graph cannot compute is an error that names it.

The characters of all texts of a batch are one flat vector. Dimensions in comments: B texts, C
characters, W words, P pieces, M added tokens found.
"""

import numpy as np
import tensorflow as tf

from official_bert.common.errors import UserError
from official_bert.common.json_files import shorten
from official_bert.tokenization.graph import foreign_tables
from official_bert.tokenization.graph.added_tokens import AddedTokens
from official_bert.tokenization.graph.characters import (
    Characters,
    PagedTable,
    Replace,
    canonical_order,
    changes,
    decode,
    split_words,
)
from official_bert.tokenization.graph.foreign_tables import ADDED
from official_bert.tokenization.graph.in_graph import (
    TextsToPieces,
    WordPieces,
    every_row,
    pieces_of,
)
from official_bert.tokenization.library.foreign import ForeignTokenizer

# Private characters: one for each control below U+0020, and one more that no piece has.
_STAND_INS = "".join(map(chr, range(0x10FF00, 0x10FF21)))


class InGraphWordPieces(TextsToPieces):
    """Maps texts to WordPiece ids; bytes that are not UTF-8 are ignored."""

    def __init__(self, tokenizer: ForeignTokenizer):
        """Build the tables (seconds).

        Raises:
          UserError: a graph cannot compute a part of the tokeniser; the message names it.
        """
        super().__init__(name="in_graph_word_pieces")
        contents, model = tokenizer.contents, tokenizer.contents["model"]
        prefix, unk = model["continuing_subword_prefix"], model["unk_token"]
        if not prefix or unk not in model["vocab"]:
            what = shorten({"continuing_subword_prefix": prefix, "unk_token": unk})
            raise UserError(
                f"a TensorFlow graph cannot compute WordPiece with {what}: it needs a prefix, and "
                "an unknown token that is a piece"
            )
        self._steps = [Normalizer(step) for step in foreign_tables.normalizer_steps(contents)]
        self._kind = PagedTable(foreign_tables.word_kinds(contents))
        self._added = AddedTokens(tokenizer, normalized=False)
        self._added_later = AddedTokens(tokenizer, normalized=True)
        id_of = model["vocab"]
        vocab = every_row(id_of, max(id_of.values()) + 1)
        if any(_STAND_INS[0] <= char <= _STAND_INS[-1] for piece in vocab for char in piece):
            raise UserError("a TensorFlow graph cannot compute pieces with U+10FF00 to U+10FF20")
        # FastWordpieceTokenizer crashes on some control characters (U+0000, U+0011).
        vocab = [piece.translate(dict(enumerate(_STAND_INS[:-1]))) for piece in vocab]
        self._cut = WordPieces(vocab, id_of[unk], prefix, model["max_input_chars_per_word"])

    def _pieces(self, texts):
        added = self._added, self._added_later
        characters, word, rows = words_of(texts, added, self._steps, self._kind)
        points = tf.RaggedTensor.from_value_rowids(
            characters.points, word, nrows=tf.size(rows), validate=False
        )  # [W, (characters)]
        ids, word_of_piece, lengths = self._cut(*self._spelt(points))
        first = tf.gather(characters.points, tf.cumsum(lengths, exclusive=True))
        ids = self._added.ids_or(ids, first)
        ends = tf.cumsum(lengths) - 1
        starts = tf.gather(characters.starts, ends - lengths + 1)
        ends = tf.gather(characters.ends, ends)
        return pieces_of(tf.size(texts), tf.gather(rows, word_of_piece), ids, starts, ends)

    def _spelt(self, points):
        """Return the words as they are looked up, and which of them are added tokens."""
        values = points.values
        is_added = values >= ADDED
        unseen, is_control = ord(_STAND_INS[-1]), values < len(_STAND_INS) - 1
        is_stand_in = (values >= ord(_STAND_INS[0])) & (values <= unseen)
        values = tf.where(is_added | is_stand_in, unseen, values)
        safe = points.with_values(tf.where(is_control, values + ord(_STAND_INS[0]), values))
        return safe, tf.reduce_any(points.with_values(is_added), axis=1)


def words_of(texts, added, steps, kind):
    """Divide texts into words as the library does, added tokens first.

    Args:
      texts: string [B].
      added: the `AddedTokens` that are found before the steps, and those found after them.
      steps: functions from `Characters` to `Characters`.
      kind: `PagedTable` of `foreign_tables.word_kinds`.

    Returns: as `split_words`.
    """
    characters = added[0](decode(texts))
    for step in steps:
        characters = step(characters)
    characters = added[1](characters)
    return split_words(characters, kind(characters.points))


class Normalizer(tf.Module):
    """One `foreign_tables.Step`."""

    def __init__(self, step: foreign_tables.Step):
        super().__init__(name="normalizer")
        self._replace = Replace(step.replacements)
        self._order = None if step.order is None else PagedTable(step.order)
        self._composed = None
        if step.compositions is not None:
            keys, values = step.compositions.T
            # One more key, which no pair has, so that a search always finds something.
            self._keys = tf.constant(np.append(keys, np.iinfo(np.int64).max))
            self._composed = tf.constant(np.append(values, 0).astype(np.int32))

    def __call__(self, characters: Characters) -> Characters:
        characters, place = self._replace(characters)
        points = characters.points
        if self._order is None:
            return characters
        # Where marks are sorted and composed, the library counts places anew: each character of the
        # text counts once, where the first part of its replacement ends up.
        sources, counted = (
            characters.take(tf.where(place == 0)[:, 0]),
            tf.cast(place == 0, tf.int32),
        )
        order = self._order(points)
        moved = tf.cond(
            tf.reduce_any(order > 0),
            lambda: canonical_order(order, characters.rows),
            lambda: tf.range(tf.size(order)),
        )
        points, rows, counted = (tf.gather(x, moved) for x in (points, characters.rows, counted))
        if self._composed is not None:
            points, rows, counted = self._compose(points, rows, counted)
        source = tf.cumsum(counted, exclusive=True) - tf.cast(counted == 0, tf.int32)
        sources = sources.take(tf.maximum(source, 0))
        return sources._replace(points=points, rows=rows)

    def _compose(self, points, rows, counted):
        """Apply canonical composition: a starter joins what follows where both have a
        composition."""

        any_size = tf.TensorShape([None])
        *columns, _ = tf.while_loop(
            lambda *state: state[-1],
            self._compose_once,
            (points, rows, counted, tf.size(points) > 1),
            shape_invariants=(any_size,) * 3 + (tf.TensorShape([]),),
        )
        return columns

    def _compose_once(self, points, rows, counted, _):
        """Let each starter take in one character; return also whether any did."""
        size = tf.size(points)
        order = self._order(points)
        index = tf.range(size)
        is_starter = (order == 0) | changes(rows, filling=-1)
        starter = tf.cumsum(tf.cast(is_starter, tf.int32)) - 1
        place = tf.cast(tf.where(is_starter)[:, 0], tf.int32)
        # A starter may join the starter right before it; a mark may join its starter.
        partner = tf.gather(place, tf.where(is_starter, tf.maximum(starter - 1, 0), starter))
        key = tf.cast(tf.gather(points, partner), tf.int64) * (1 << 21)
        key += tf.cast(points, tf.int64)
        slot = tf.searchsorted(self._keys, key)
        known = tf.gather(self._keys, slot) == key
        before = tf.concat([[0], order[:-1]], 0)[:size]
        unblocked = (index - partner == 1) | (~is_starter & (before < order))
        joins = known & unblocked & (partner < index)
        joins &= tf.gather(rows, partner) == rows
        # Each starter takes in one character at a time, and none while it joins the one before.
        first = tf.math.unsorted_segment_min(tf.where(joins, index, size), partner, size)
        joins &= tf.gather(first, partner) == index
        run = tf.cumsum(tf.cast(~(joins & is_starter), tf.int32))
        begun = tf.math.segment_min(index, run)
        joins &= ~is_starter | ((index - tf.gather(begun, run)) % 2 == 1)
        taken = tf.gather(joins & is_starter, partner)
        joins &= is_starter | ~taken
        at = tf.boolean_mask(partner, joins)
        new = tf.boolean_mask(tf.gather(self._composed, slot), joins)
        points = tf.tensor_scatter_nd_update(points, at[:, None], new)
        taken_in = tf.boolean_mask(counted, joins)
        counted = tf.tensor_scatter_nd_add(counted, at[:, None], taken_in)
        stays = tf.where(~joins)[:, 0]
        kept = [tf.gather(x, stays) for x in (points, rows, counted)]
        return *kept, tf.reduce_any(joins)
