"""Added tokens of a foreign tokeniser, found in the characters of texts as the library does."""

import numpy as np
import tensorflow as tf

from official_bert.common.errors import UserError
from official_bert.tokenization.graph import foreign_tables
from official_bert.tokenization.graph.characters import Characters, PagedTable, changes
from official_bert.tokenization.graph.foreign_tables import ADDED
from official_bert.tokenization.library import tokenizer_json
from official_bert.tokenization.library.foreign import ForeignTokenizer

_MOST_COMPARED = 1 << 13  # number of added tokens times the longest one's characters


class AddedTokens(tf.Module):
    """Finds added tokens in characters as the library does, and replaces each by one character.

    That character is beyond Unicode (`foreign_tables.ADDED` plus the token's number), so no step
    changes it and no word takes it in. M: tokens found.
    """

    def __init__(self, tokenizer: ForeignTokenizer, normalized: bool, trims: bool = False):
        """
        Args:
          normalized: whether to look for the tokens that are found in normalised text.
          trims: whether offsets leave out blanks that a token takes in.

        Raises:
          UserError: they are too many to compare with, or two of them are the same.
        """
        super().__init__(name="added_tokens")
        self._trims = trims
        normalizer = tokenizer_json.part("normalizer", tokenizer.contents.get("normalizer"))
        entries = tokenizer.added_tokens
        self._ids = tf.constant([entry["id"] for entry in entries] or [0])
        texts: dict[str, int] = {}
        for index, entry in enumerate(entries):
            text = entry["content"]
            if bool(entry["normalized"]) != normalized or not text:
                continue
            if normalized and normalizer is not None:
                text = normalizer.normalize_str(text)
            if text in texts:
                raise UserError(
                    "a TensorFlow graph cannot tell the added tokens "
                    f"{entries[texts[text]]['content']!r} and {entry['content']!r} apart, which "
                    "are the same after the normalizer"
                )
            if text:
                texts[text] = index
        self._count = len(texts)
        longest = max(map(len, texts), default=0)
        if len(texts) * longest > _MOST_COMPARED:
            raise UserError(
                f"a TensorFlow graph cannot look for {len(texts):,} added tokens of up to "
                f"{longest} characters: export token ids instead (experiments.export --format=onnx)"
            )
        if not texts:
            return
        spelt = np.full((len(texts), longest), -1, np.int32)
        for row, text in zip(spelt, texts, strict=True):
            row[: len(text)] = [*map(ord, text)]
        self._spelt = tf.constant(spelt)
        self._lengths = tf.constant([len(text) for text in texts])
        self._blanks_before = tf.constant([len(text) - len(text.lstrip()) for text in texts])
        self._blanks_behind = tf.constant([len(text) - len(text.rstrip()) for text in texts])
        self._index = tf.constant([*texts.values()])
        chosen = [entries[index] for index in texts.values()]
        self._single, self._left, self._right = (
            tf.constant([bool(entry[flag]) for entry in chosen])
            for flag in ("single_word", "lstrip", "rstrip")
        )
        begins = np.zeros(foreign_tables.SIZE, np.uint8)
        begins[spelt[:, 0]] = 1
        self._begins = PagedTable(begins)
        blank, word = foreign_tables.blanks_and_words()
        self._blank, self._word = PagedTable(blank), PagedTable(word)

    def ids_or(self, ids, points):
        """Return the ids of pieces [P], or those of the added tokens in their place."""
        index = tf.clip_by_value(points - ADDED, 0, tf.size(self._ids) - 1)
        return tf.where(points >= ADDED, tf.gather(self._ids, index), ids)

    def __call__(self, characters: Characters) -> Characters:
        """Return the characters, with each token that is found as one of them."""
        if not self._count:
            return characters
        places = tf.cast(tf.where(self._begins(characters.points) == 1)[:, 0], tf.int32)
        return tf.cond(
            tf.size(places) > 0, lambda: self._collapse(characters, places), lambda: characters
        )

    def _collapse(self, characters, places):
        points, rows = characters.points, characters.rows
        size, longest = tf.size(points), self._spelt.shape[1]
        at = places[:, tf.newaxis] + tf.range(longest)  # [places, longest]
        inside = at < size
        at = tf.minimum(at, size - 1)
        inside &= tf.gather(rows, at) == tf.gather(rows, places)[:, tf.newaxis]
        found = tf.where(inside, tf.gather(points, at), -2)
        same = (found[:, tf.newaxis] == self._spelt) | (self._spelt == -1)
        matches = tf.reduce_all(same, axis=2)  # [places, tokens]
        length = tf.reduce_max(tf.where(matches, self._lengths, 0), axis=1)
        token = tf.argmax(tf.where(matches, self._lengths, 0), axis=1, output_type=tf.int32)
        hit = length > 0
        begin, length, token = (tf.boolean_mask(x, hit) for x in (places, length, token))
        begin, end, token, own = self._choose(points, rows, begin, length, token)

        # Only the first character of every token stays.
        edges = tf.zeros(size + 1, tf.int32)
        edges = tf.tensor_scatter_nd_add(edges, (begin + 1)[:, None], tf.ones_like(begin))
        edges = tf.tensor_scatter_nd_add(edges, end[:, None], -tf.ones_like(begin))
        stays = tf.cumsum(edges)[:-1] == 0
        index = tf.gather(self._index, token)
        points = tf.tensor_scatter_nd_update(points, begin[:, None], ADDED + index)
        first, last = own if self._trims else (begin, end)
        starts, ends = tf.gather(characters.starts, first), tf.gather(characters.ends, last - 1)
        starts = tf.tensor_scatter_nd_update(characters.starts, begin[:, None], starts)
        ends = tf.tensor_scatter_nd_update(characters.ends, begin[:, None], ends)
        characters = characters._replace(points=points, starts=starts, ends=ends)
        return characters.take(tf.where(stays)[:, 0])

    def _choose(self, points, rows, begin, length, token):
        """Choose the matches that count, from left to right.

        Return their [begin, end), their tokens, and their [begin, end) without the blanks around.
        """
        count, end = tf.size(begin), begin + length
        fits = ~(tf.gather(self._single, token) & self._is_in_word(points, rows, begin, end))
        left, right = self._with_blanks(points, rows, begin, end)
        left = tf.where(tf.gather(self._left, token), left, begin)
        right = tf.where(tf.gather(self._right, token), right, end)

        def step(i, free, next_free, kept):
            # The search goes on behind a match, whether it counts or not; the next match cannot
            # take in blanks that this one took.
            seen = begin[i] >= next_free
            counts = seen & fits[i]
            from_ = tf.maximum(left[i], free)
            kept = kept.write(i, tf.where(counts, from_, -1))
            free = tf.where(counts, right[i], free)
            return i + 1, free, tf.where(seen, end[i], next_free), kept

        kept = tf.TensorArray(tf.int32, size=count)
        _, _, _, kept = tf.while_loop(
            lambda i, *_: i < count, step, (tf.constant(0), tf.constant(0), tf.constant(0), kept)
        )
        from_ = kept.stack()
        counts = from_ >= 0
        begin = begin + tf.gather(self._blanks_before, token)
        end = end - tf.gather(self._blanks_behind, token)
        columns = (from_, right, token, begin, end)
        from_, right, token, *own = (tf.boolean_mask(x, counts) for x in columns)
        return from_, right, token, own

    def _is_in_word(self, points, rows, begin, end):
        """Return whether a character of a word touches each match [begin, end), bool [M]."""
        size, row = tf.size(points), tf.gather(rows, begin)

        def is_of_word(place, valid):
            place = tf.clip_by_value(place, 0, size - 1)
            is_word = self._word(tf.gather(points, place)) == 1
            return valid & (tf.gather(rows, place) == row) & is_word

        return is_of_word(begin - 1, begin > 0) | is_of_word(end, end < size)

    def _with_blanks(self, points, rows, begin, end):
        """Return the begins and ends of matches together with the blanks beside them."""
        size = tf.size(points)
        filled = tf.cast(tf.where(self._blank(points) != 1)[:, 0], tf.int32)
        first = tf.cast(tf.where(changes(rows, filling=-1))[:, 0], tf.int32)
        of_row = tf.searchsorted(first, begin, side="right")
        last_filled = tf.gather(tf.concat([[-1], filled], 0), tf.searchsorted(filled, begin))
        left = tf.maximum(last_filled + 1, tf.gather(first, of_row - 1))
        next_filled = tf.gather(tf.concat([filled, [size]], 0), tf.searchsorted(filled, end))
        return left, tf.minimum(next_filled, tf.gather(tf.concat([first, [size]], 0), of_row))
