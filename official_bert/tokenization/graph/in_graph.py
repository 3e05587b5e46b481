"""The reference tokeniser as TensorFlow operations, for tf.data and for SavedModels.

The ready-made BERT tokenisers of tensorflow-text differ from the original on ligatures, eszett,
control characters, long words and more, so this one is built of smaller parts. TensorFlow decodes
UTF-8, the tables of `code_points.py` replace characters and divide words, and tensorflow-text's
FastWordpieceTokenizer cuts the words into pieces. A graph with it runs where only TensorFlow and
tensorflow-text are installed.

The characters of all texts of a batch are one flat vector. Dimensions in comments: B texts, C
characters, W words, P pieces.
"""

from typing import NamedTuple

import tensorflow as tf
import tensorflow_text as tf_text

from official_bert.tokenization import reference
from official_bert.tokenization.graph import code_points
from official_bert.tokenization.graph.characters import (
    SIGMA,
    Characters,
    PagedTable,
    Replace,
    canonical_order,
    changes,
    decode,
    final_sigma,
    split_words,
)
from official_bert.tokenization.graph.code_points import REMOVED
from official_bert.tokenization.tokenizer import BertTokenizer


class Pieces(NamedTuple):
    """The WordPieces of a batch of texts: RaggedTensors int32 [B, (pieces)].

    `starts` and `ends` count characters (code points) of the text, not bytes.
    """

    ids: tf.RaggedTensor
    starts: tf.RaggedTensor
    ends: tf.RaggedTensor


def pieces_of(batch, rows, *columns) -> Pieces:
    """Return `Pieces` from the text of each piece, `rows` [P], and their ids, starts and ends."""
    return Pieces(
        *(
            tf.RaggedTensor.from_value_rowids(values, rows, nrows=batch, validate=False)
            for values in columns
        )
    )


class TextsToPieces(tf.Module):
    """The interface of every tokeniser inside the graph; a subclass defines `_pieces(texts)`.

    Attributes:
      resources: what a SavedModel must keep beside the graph: models that TensorFlow's operations
        hold.
    """

    resources: tuple = ()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Return the ids of string texts [B]: int32 [B, (pieces)]."""
        return self._pieces(texts).ids

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def tokenize_with_offsets(self, texts: tf.Tensor) -> Pieces:
        """Return the ids of string texts [B] and the characters that each piece was made from."""
        return self._pieces(texts)

    def _pieces(self, texts: tf.Tensor) -> Pieces:
        raise NotImplementedError


class InGraphTokenizer(TextsToPieces):
    """Maps texts to WordPiece ids, equal to those of `BertTokenizer`.

        tokenizer = InGraphTokenizer(BertTokenizer(vocab))
        tokenizer(tf.constant(["Unaffable!"]))  # <tf.RaggedTensor [[14477, 20961, 3468, 999]]>

    Bytes that are not UTF-8 are ignored, as the original ignores them.
    """

    def __init__(self, tokenizer: BertTokenizer):
        super().__init__(name="in_graph_tokenizer")
        self._cut = WordPieces(tokenizer.vocab, tokenizer.unk_id)
        self._basic = BasicWords(tokenizer.rules)

    def _pieces(self, texts):
        characters, word_of_character, word_rows = self._basic.split(texts)
        words = tf.RaggedTensor.from_value_rowids(
            characters.points, word_of_character, nrows=tf.size(word_rows), validate=False
        )  # [W, (characters)]
        ids, word_of_piece, lengths = self._cut(words)
        piece_of_character = tf.repeat(tf.range(tf.size(ids)), lengths)  # [C]
        starts = tf.math.segment_min(characters.starts, piece_of_character)
        ends = tf.math.segment_max(characters.ends, piece_of_character)
        rows = tf.gather(word_rows, word_of_piece)
        return pieces_of(tf.size(texts), rows, ids, starts, ends)


class WordPieces(tf.Module):
    """Cuts words into pieces.

    Args:
      vocab: the pieces in the order of their ids.
      unk_id: id of a word that cannot be spelt.
      prefix: begins a piece that continues a word.
      most: most characters of a word; a longer one is unknown.
    """

    def __init__(self, vocab, unk_id: int, prefix="##", most=reference.MAX_WORD_CHARACTERS):
        super().__init__(name="word_pieces")
        self._unk_id, self._most = unk_id, most
        self._most_bytes = 4 * max(most, 1)  # UTF-8 takes up to 4 bytes a character
        self._tokenizer = tf_text.FastWordpieceTokenizer(
            every_row({piece: index for index, piece in enumerate(vocab)}, len(vocab)),
            suffix_indicator=prefix,
            max_bytes_per_word=self._most_bytes,
            token_out_type=tf.int32,
            unknown_token=vocab[unk_id],
            no_pretokenization=True,
        )
        self._lengths = tf.constant([len(piece.removeprefix(prefix)) for piece in vocab])
        self._whole_lengths = tf.constant([len(piece) for piece in vocab])

    def __call__(self, words, unknown=False):
        """Cut words, given as code points [W, (characters)].

        Return the id, the word and the number of characters of each piece, int32 [P]. `unknown`
        marks words that are not text.
        """
        noise = "x" * (self._most_bytes + 1)  # too long for FastWordpieceTokenizer
        unknown |= words.row_lengths() > self._most
        spelt = tf.where(unknown, noise, tf.strings.unicode_encode(words, "UTF-8"))
        pieces = self._tokenizer.tokenize(spelt)  # [W, (pieces)]
        ids, word = pieces.flat_values, tf.cast(pieces.value_rowids(), tf.int32)
        # The pieces of a word spell it and an unknown one stands for the whole word: either way
        # the pieces take all the characters, in turn.
        lengths = tf.where(
            ids == self._unk_id,
            tf.gather(tf.cast(words.row_lengths(), tf.int32), word),
            # A word may begin with what looks like the prefix.
            tf.where(
                changes(word, filling=-1),
                tf.gather(self._whole_lengths, ids),
                tf.gather(self._lengths, ids),
            ),
        )
        return ids, word, lengths


def every_row(id_of: dict[str, int], size: int) -> list[str]:
    """Return the pieces by id; an id without a piece gets one that no word can be."""
    rows = [f"no piece {index}" for index in range(size)]  # words hold no blanks
    for piece, index in id_of.items():
        rows[index] = piece or rows[index]
    return rows


class BasicWords(tf.Module):
    """`reference.basic_tokenize` in the graph."""

    def __init__(self, rules: reference.Rules):
        super().__init__(name="basic_words")
        self._rules = rules
        tables = code_points.code_point_tables(rules)
        self._kind = PagedTable(tables.kind)
        self._case = PagedTable(tables.case)
        self._order = PagedTable(tables.order)
        self._is_ideograph = PagedTable(tables.is_ideograph)
        self._replace = Replace(tables.replacements)

    def split(self, texts):
        """Cut cleaned texts at blanks and around punctuation and ideographs.

        Returns:
          characters: those that belong to words, [C].
          word_of_character: int32 [C].
          word_rows: the text of each word, int32 [W].
        """
        characters = self._normalize(texts)
        return split_words(characters, self._kind(characters.points))

    def words(self, texts) -> Pieces:
        """Return words in place of pieces; a word's id is its code point, or that of "a" if it has
        several."""
        characters, word, rows = self.split(texts)
        single = tf.math.bincount(word, minlength=tf.size(rows), maxlength=tf.size(rows)) == 1
        ids = tf.where(single, tf.math.segment_max(characters.points, word), ord("a"))
        starts = tf.math.segment_min(characters.starts, word)
        ends = tf.math.segment_max(characters.ends, word)
        return pieces_of(tf.size(texts), rows, ids, starts, ends)

    def _normalize(self, texts) -> Characters:
        """Apply `clean`, and where the rules say so `lower` and `without_accents`."""
        # Each text gets a blank at its end; invalid bytes become U+FFFD, which is removed.
        characters = decode(tf.strings.join([texts, " "]), errors="replace")
        kept = tf.where(self._kind(characters.points) != REMOVED)[:, 0]
        characters = characters.take(kept)
        if self._rules.do_lower_case:
            points = tf.cond(
                tf.reduce_any(characters.points == SIGMA),
                lambda: final_sigma(
                    characters.points, self._case(characters.points), characters.rows
                ),
                lambda: characters.points,
            )
            characters = characters._replace(points=points)
        if self._rules.do_lower_case or self._rules.accents_go:
            lengths = self._replace.lengths(characters.points)
            characters = characters._replace(ends=self._ends_with_accents(characters, lengths))
            characters, _ = self._replace(characters)
        if not self._rules.accents_go:
            return characters
        order = self._order(characters.points)
        return tf.cond(
            tf.reduce_any(order > 0),
            lambda: characters.take(canonical_order(order, characters.rows)),
            lambda: characters,
        )

    def _ends_with_accents(self, characters, length):
        """Return the ends, extended over accents that follow a letter (but not an ideograph)."""
        stays = tf.where(length > 0)[:, 0]
        # The last accent before the next character that stays. Every text ends with a blank that
        # stays, so this never reaches into another text.
        last = tf.concat([stays[1:], [tf.size(length, tf.int64)]], 0)[: tf.size(stays)] - 1
        extended = tf.gather(characters.ends, last)
        stay = characters.take(stays)
        ends = tf.where(self._is_ideograph(stay.points) == 1, stay.ends, extended)
        return tf.tensor_scatter_nd_update(characters.ends, stays[:, tf.newaxis], ends)
