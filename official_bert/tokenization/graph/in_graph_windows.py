"""Windows of texts that are too long for the encoder, inside a graph, as `windows` makes them.

The rule is the original's for SQuAD: windows of `room` tokens start `stride` tokens apart until one
reaches the end, and each token belongs to the window where it has most context. Classifiers that
pool windows read the longer text of a pair in the same way. B texts, W windows of all texts
together, T tokens of all windows.
"""

from typing import NamedTuple

import tensorflow as tf

from official_bert.tokenization.graph.in_graph_packing import cut, positions_in_rows, token_counts


class Windows(NamedTuple):
    """The windows of texts, those of a text one after another.

    Attributes:
      text: int32 [W], the text that a window belongs to.
      tokens: ragged int32 [W, (tokens)], places in the flat vector of the tokens of all texts.
      window_of_token: int32 [T], the window of each token.
      owns: bool [T], whether the token has its most context in this window. Every token of a text
        is owned once.
    """

    text: tf.Tensor
    tokens: tf.RaggedTensor
    window_of_token: tf.Tensor
    owns: tf.Tensor


def windows(lengths, room, stride) -> Windows:
    """Plan the windows; a text without tokens has one empty window.

    Args:
      lengths: int32 [B], tokens of each text.
      room: int32 [B], tokens that fit in a window of each text, at least 1.
      stride: int32 [B], tokens between the starts of windows, but no more than `room`.
    """
    text, begin, sizes = _places(lengths, room, stride)
    text_starts = tf.cumsum(lengths, exclusive=True)

    place = positions_in_rows(sizes)  # [T], within the window
    window_of_token = tf.repeat(tf.range(tf.size(sizes)), sizes)
    tokens = place + tf.repeat(tf.gather(text_starts, text) + begin, sizes)
    size = tf.repeat(sizes, sizes)
    # A longer window wins by a hundredth of its length, the earlier one at a tie.
    context = tf.cast(tf.minimum(place, size - 1 - place), tf.float64)
    context += 0.01 * tf.cast(size, tf.float64)
    total = tf.reduce_sum(lengths)
    most = tf.math.unsorted_segment_max(context, tokens, total)
    is_most = context >= tf.gather(most, tokens)
    candidate = tf.where(is_most, window_of_token, tf.int32.max)
    owner = tf.math.unsorted_segment_min(candidate, tokens, total)
    owns = tf.gather(owner, tokens) == window_of_token
    ragged = tf.RaggedTensor.from_row_lengths(tokens, sizes, validate=False)
    return Windows(text, ragged, window_of_token, owns)


def pack_windows(texts: list, room: int, most: int, overlap: int, truncation: str):
    """Cut texts into windows for a classifier that pools them, as the function of `windows` does.

    Args:
      texts: ragged int32 [B, (tokens)], one or two.
      room: tokens of the texts that a row holds.
      most, overlap, truncation: as for `pack_windows`.

    Returns:
      The ragged [W, (tokens)] of each text, int32 [W], the text that a row belongs to, and bool
      [B], whether it was cut.
    """
    lengths = tf.stack([token_counts(one) for one in texts])  # [1 or 2, B]
    second = lengths[-1] >= lengths[0]
    longer = tf.stack([~second, second] if len(texts) == 2 else [second])
    beside = tf.where(longer, 0, tf.minimum(lengths, room // 2))
    fits = room - tf.reduce_sum(beside, axis=0)  # [B]
    step = fits - overlap
    kept = tf.where(longer, tf.minimum(lengths, fits + (most - 1) * step), beside)
    text, begin, sizes = _places(tf.reduce_max(tf.where(longer, kept, 0), axis=0), fits, step)
    rows = []
    for one, count, is_longer in zip(texts, tf.unstack(kept), tf.unstack(longer), strict=True):
        moves = tf.gather(is_longer, text)  # the other text stands whole in every row
        size = tf.where(moves, sizes, tf.gather(count, text))
        start = tf.gather(tf.cumsum(count, exclusive=True), text) + tf.where(moves, begin, 0)
        places = tf.repeat(start, size) + positions_in_rows(size)
        values = tf.gather(cut(one, count, truncation).values, places)
        rows.append(tf.RaggedTensor.from_row_lengths(values, size, validate=False))
    return rows, text, tf.reduce_any(kept < lengths, axis=0)


def pooled(vectors, text, pooling: str):
    """Pool vectors [W, H], those of a text one after another, as `window_pooling.pool`: [B, H]."""
    if pooling == "mean":
        return tf.math.segment_mean(vectors, text)
    if pooling == "max":
        return tf.math.segment_max(vectors, text)
    first = tf.math.segment_min(tf.range(tf.size(text)), text)
    last = tf.math.segment_max(tf.range(tf.size(text)), text)
    return (tf.gather(vectors, first) + tf.gather(vectors, last)) / 2


def _places(lengths, room, stride):
    """Return the text of each window, its first token in the text, and its size, int32 [W].

    Arguments are those of `windows`.
    """
    step = tf.minimum(room, stride)
    counts = 1 + -(-tf.maximum(lengths - room, 0) // step)  # [B]
    text = tf.repeat(tf.range(tf.size(lengths)), counts)  # [W]
    begin = positions_in_rows(counts) * tf.gather(step, text)
    return text, begin, tf.minimum(tf.gather(lengths, text) - begin, tf.gather(room, text))
