"""Packed rows for the encoder: the tokens of all rows one after another, without padding.

Everything here is TensorFlow and ends up inside the SavedModel, so that a text is packed exactly as
`sequences` packs it for training. B is the number of rows, N the number of tokens of all rows
together.
"""

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from official_bert.common.errors import check_choice
from official_bert.tokenization.sequences import TRUNCATIONS

_LENGTH_MULTIPLE = 8  # of rows; the vector width of float32 on current processors


class Packed(NamedTuple):
    """The tokens of B rows, one row after another.

    Attributes:
      ids: int32 [N].
      segments: int32 [N], 0 or 1.
      positions: int32 [N], the place of a token in its row.
      row_lengths: int32 [B], at least 1 each; their sum is N.
    """

    ids: tf.Tensor
    segments: tf.Tensor
    positions: tf.Tensor
    row_lengths: tf.Tensor

    @property
    def row_starts(self) -> tf.Tensor:
        """The first token of each row in `ids`, int32 [B]."""
        return tf.cumsum(self.row_lengths, exclusive=True)


class PackedRows:
    """Places of packed tokens in padded rows [B, L], and the way back.

    Attributes:
      length: int32, L: the longest row, rounded up.
      mask: bool [B, L], true at tokens.
    """

    def __init__(self, packed: Packed):
        most = tf.maximum(longest(packed.row_lengths), 1)
        self.length = -(-most // _LENGTH_MULTIPLE) * _LENGTH_MULTIPLE
        self.mask = tf.sequence_mask(packed.row_lengths, self.length)
        count = tf.shape(packed.ids)[0]
        places = packed.row_starts[:, None] + tf.range(self.length)  # [B, L]
        self._spread = tf.minimum(places, count - 1)  # padding repeats some token; it is masked
        self._tokens = tf.squeeze(tf.where(tf.reshape(self.mask, [-1])), axis=1)  # [N]

    def spread(self, x):
        """Map [N, ...] -> [B, L, ...]; what stands at padding has no meaning."""
        return tf.gather(x, self._spread)

    def collect(self, x):
        """Map [B * L, ...] -> [N, ...]."""
        return tf.gather(x, self._tokens)


def of_texts(texts: list, tokenizer, max_seq_length: int, truncation="head") -> Packed:
    """Pack one text or a pair, cut to fit and joined as `sequences.pack` does it.

    Args:
      texts: one or two ragged int32 tensors [B, (tokens)].
      tokenizer: has the `cls_id`, `sep_id` and `between` to use.
    """
    between = tokenizer.between if len(texts) == 2 else []
    room = max_seq_length - 2 - len(between)
    *others, last = map(token_counts, texts)
    if others:
        # In one step: the first may keep the larger half of the room, or whatever the second
        # leaves.
        others = [tf.minimum(others[0], tf.maximum(room - room // 2, room - last))]
        room -= others[0]
    counts = [*others, tf.minimum(last, room)]
    texts = [cut(text, count, truncation) for text, count in zip(texts, counts, strict=True)]
    return assemble(texts, tokenizer.cls_id, tokenizer.sep_id, between)


def was_cut(packed: Packed, texts: list, between: Sequence[int]):
    """Return whether each row holds fewer tokens than its one or two texts have, bool [B]."""
    special = 2 + len(between) * (len(texts) - 1)
    return packed.row_lengths < tf.add_n([token_counts(text) for text in texts]) + special


def cut(text, kept, truncation: str = "head"):
    """Shorten the rows of a ragged tensor.

    Args:
      text: ragged [B, (tokens)].
      kept: int32 [B], how many tokens stay; at most as many as the row has.
      truncation: which stay: the first ("head"), the last ("tail"), or the first quarter and the
        last three quarters ("head+tail").
    """
    check_choice("truncation", truncation, TRUNCATIONS)
    head = {"head": kept, "tail": tf.zeros_like(kept), "head+tail": kept // 4}[truncation]
    lengths = token_counts(text)
    position = positions_in_rows(lengths)
    from_tail = tf.repeat(lengths - (kept - head), lengths)
    stays = (position < tf.repeat(head, lengths)) | (position >= from_tail)
    return tf.RaggedTensor.from_row_lengths(
        tf.boolean_mask(text.values, stays), kept, validate=False
    )


def assemble(texts: list, cls_id: int, sep_id: int, between: Sequence[int] = ()) -> Packed:
    """Join [CLS] text [SEP], and a second text and [SEP] if there is one; nothing is cut.

    `between` holds the ids between two texts; by default one [SEP].

    Each part is one scatter. Ragged concatenation would run several times as many operations; for a
    single short text those would be a third of the time.
    """
    behind = [between or [sep_id], [sep_id]][-len(texts) :]
    part_lengths = [token_counts(text) + len(b) for text, b in zip(texts, behind, strict=True)]
    lengths = 1 + tf.add_n(part_lengths)  # [B]
    starts = tf.cumsum(lengths, exclusive=True)
    ids = tf.fill([tf.reduce_sum(lengths)], sep_id)  # [N]; what is not written below is a [SEP]
    ids = _write(ids, starts, tf.fill(tf.shape(starts), cls_id))
    begin = starts + 1
    for text, part_length, separators in zip(texts, part_lengths, behind, strict=True):
        text_lengths = token_counts(text)
        places = tf.repeat(begin, text_lengths) + positions_in_rows(text_lengths)
        ids = _write(ids, places, text.values)
        for offset, separator in enumerate(separators):
            if separator != sep_id:
                ends = begin + text_lengths + offset
                ids = _write(ids, ends, tf.fill(tf.shape(ends), separator))
        begin += part_length
    positions = tf.range(tf.size(ids)) - tf.repeat(starts, lengths)
    if len(texts) == 1:
        segments = tf.zeros_like(ids)
    else:
        segments = tf.cast(positions > tf.repeat(part_lengths[0], lengths), tf.int32)
    return Packed(ids, segments, positions, lengths)


def from_padded(input_ids, input_mask, segment_ids) -> Packed:
    """Pack the tokens that `input_mask` marks, from int32 [B, L] each.

    The first token of a row always counts.

    A mask of other numbers than 0 and 1, and a row without any token, fail when the graph runs.
    """
    binary = tf.reduce_all((input_mask == 0) | (input_mask == 1))
    tf.debugging.Assert(binary, ["input_mask must be 0 or 1"])
    filled = tf.reduce_all(tf.reduce_any(input_mask > 0, axis=1))
    tf.debugging.Assert(filled, ["input_mask: a row has no token"])
    shape = tf.shape(input_ids)
    mask = (input_mask > 0) | (tf.range(shape[1]) == 0)
    places = tf.where(mask)[:, 1]
    return Packed(
        ids=tf.boolean_mask(input_ids, mask),
        segments=tf.boolean_mask(segment_ids, mask),
        positions=tf.cast(places, tf.int32),
        row_lengths=tf.reduce_sum(tf.cast(mask, tf.int32), axis=1),
    )


def to_padded(values, input_mask):
    """Map [N, ...] of a `from_padded` -> [B, L, ...], zeros at padding."""
    shape = tf.shape(input_mask)
    places = tf.where((input_mask > 0) | (tf.range(shape[1]) == 0))
    return tf.scatter_nd(
        tf.cast(places, tf.int32), values, tf.concat([shape, tf.shape(values)[1:]], axis=0)
    )


def positions_in_rows(lengths):
    """Return [0 .. lengths[0]), [0 .. lengths[1]), ... as one int32 vector."""
    total = tf.reduce_sum(lengths)
    return tf.range(total) - tf.repeat(tf.cumsum(lengths, exclusive=True), lengths)


def longest(lengths):
    """Return the largest of int32 [B]; 0 where B is 0."""
    return tf.reduce_max(tf.concat([lengths, [0]], axis=0))


def token_counts(ragged):
    """Return the lengths of a ragged tensor's rows, int32 [B]."""
    return tf.cast(ragged.row_lengths(), tf.int32)


def _write(tensor, places, values):
    return tf.tensor_scatter_nd_update(tensor, places[:, None], tf.cast(values, tensor.dtype))
