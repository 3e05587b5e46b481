"""A text too long for the encoder as overlapping windows, inside the graph.

The rule is the original's for SQuAD: windows of `room` tokens start `stride` tokens apart until one
reaches the end, and each token belongs to the window where it has most context. B texts, W windows
of all texts together, T tokens of all windows, S tokens of all texts.
"""

from typing import NamedTuple

import tensorflow as tf

from official_bert.export.packing import positions_in_rows


class Windows(NamedTuple):
    """Windows, those of a text one after another.

    Attributes:
      text: int32 [W], the text that a window belongs to.
      tokens: ragged int32 [W, (tokens)], places in the flat vector of the tokens of all texts.
      window_of_token: int32 [T].
      owns: bool [T], whether the token has its most context in this window. Every token of a text
        is owned once.
    """

    text: tf.Tensor
    tokens: tf.RaggedTensor
    window_of_token: tf.Tensor
    owns: tf.Tensor


def windows(lengths, room, stride) -> Windows:
    """Plans the windows; a text without tokens has one empty window.

    Args:
      lengths: int32 [B], tokens of each text.
      room: int32 [B], tokens that fit in a window of each text, at least 1.
      stride: int32 [B], tokens between starts, where a window is not shorter.
    """
    step = tf.minimum(room, stride)
    counts = 1 + -(-tf.maximum(lengths - room, 0) // step)  # [B]
    text = tf.repeat(tf.range(tf.size(lengths)), counts)  # [W]
    begin = positions_in_rows(counts) * tf.gather(step, text)
    sizes = tf.minimum(tf.gather(lengths, text) - begin, tf.gather(room, text))
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
