"""Sliding windows of a text too long for the encoder (section 4.2); their twins inside the graph
are in `official_bert.export.windows`."""

import numpy as np


def window_starts(length: int, room: int, stride: int) -> list[int]:
    """First tokens of windows of `room` tokens, `stride` apart, up to the one that reaches the
    end.
    """
    starts = [0]
    while starts[-1] + room < length:
        starts.append(starts[-1] + min(room, stride))
    return starts


def max_context_window(length: int, starts: list[int], room: int) -> np.ndarray:
    """For each token, the window where it has most context, int [length].

    That is the largest minimum of its left and right context, a longer window winning by a
    hundredth of its length, and the earlier at a tie.
    """
    owner, best = np.zeros(length, np.int64), np.full(length, -1.0)
    for index, start in enumerate(starts):
        size = min(room, length - start)
        left = np.arange(size)
        scores = np.minimum(left, left[::-1]) + 0.01 * size
        window = slice(start, start + size)
        better = scores > best[window]
        best[window][better] = scores[better]
        owner[window][better] = index
    return owner
