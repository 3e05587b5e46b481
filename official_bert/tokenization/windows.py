"""Sliding windows of a text too long for the encoder (section 4.2), in training and answers.

Their twins inside the graph are in `graph.in_graph_windows`.
"""

from collections.abc import Iterator

import numpy as np

from official_bert.common.errors import UserError
from official_bert.tokenization import sequences


def pack_windows(
    tokenizer,
    first: list[int],
    second: list[int] | None,
    max_seq_length: int,
    truncation: str,
    most: int,
    overlap: int,
) -> tuple[list[dict], bool]:
    """Return a classifier's text as rows of `sequences.pack`, one for each window.

    The longer text of a pair (at a tie the second) is read in windows, each beside the other text,
    of which at most half a window is kept.

    Args:
      first, second: ids of the text, or of both.
      max_seq_length: of a window, with [CLS] and [SEP].
      truncation: which part of a text too long for `most` windows is kept, see `sequences.cut`.
      most: most windows of a text.
      overlap: tokens that a window shares with the one before it.

    Returns: (rows, whether the text was cut).

    Raises:
      UserError: see `check_overlap`.
    """
    check_overlap(overlap, max_seq_length, [] if second is None else tokenizer.between)
    room = max_seq_length - 2 - (0 if second is None else len(tokenizer.between))
    cut_second = second is not None and len(second) >= len(first)
    longer, other = (second, first) if cut_second else (first, second)
    beside = other and sequences.cut(other, room // 2, truncation)
    room -= len(beside or ())
    step = room - overlap
    kept = sequences.cut(longer, room + (most - 1) * step, truncation)
    rows = []
    for start in window_starts(len(kept), room, step):
        window = kept[start : start + room]
        pair = (beside, window) if cut_second else (window, beside)
        rows.append(sequences.pack(tokenizer, *pair, max_seq_length))
    return rows, len(kept) < len(longer) or len(beside or ()) < len(other or ())


def check_overlap(overlap: int, max_seq_length: int, between: list[int]) -> None:
    """Raise UserError where the overlap is not smaller than the least text that a window holds.

    Args:
      between: the ids between the texts of a pair; empty for a single text.
    """
    room = max_seq_length - 2 - len(between)
    least = room - room // 2 if between else room
    if overlap >= least:
        raise UserError(
            f"window_overlap={overlap}: windows of max_seq_length={max_seq_length} hold "
            f"{least} tokens of {'the longer text' if between else 'text'}; the overlap must be "
            "smaller"
        )


def overlapping(
    tokenizer, question: list[int] | None, ids: list[int], max_seq_length: int, stride=0, only=None
) -> Iterator[tuple[dict, slice, np.ndarray]]:
    """Yield the windows of a span model's or a tagger's text as rows of `sequences.pack`.

    The question comes first, if there is one. Each row comes with the slice of the text's tokens
    that it holds, and a bool for each of them: whether it has its most context there.

    Args:
      stride: tokens between the starts of two windows; 0: half a window.
      only: function from a window's size to the start of the one window that is kept.

    Raises:
      UserError: there is no room for the text.
    """
    room = max_seq_length - 2
    beside = "; use at least 8"
    if question is not None:
        room -= len(question) + len(tokenizer.between)
        beside = f" beside a question of {len(question)} tokens; raise it or lower max_query_length"
    if room < 1:
        raise UserError(f"max_seq_length={max_seq_length} leaves no room for text{beside}")
    starts = [only(room)] if only else window_starts(len(ids), room, stride or max(1, room // 2))
    owner = max_context_window(len(ids), starts, room)
    for index, start in enumerate(starts):
        window = slice(start, min(start + room, len(ids)))
        pair = (ids[window], None) if question is None else (question, ids[window])
        row = sequences.pack(tokenizer, *pair, max_seq_length)
        yield row, window, owner[window] == index


def beside_question(tokenizer, question: list[int], passage, *how) -> Iterator[tuple[dict, slice]]:
    """Yield `[CLS] question [SEP] window [SEP]` and the slice of the passage, for each window.

    A row has, beside the model's fields, `context_start` (position of the window's first token)
    and, for each token of the window, `token_starts`, `token_ends` (characters) and
    `is_max_context`.

    Args:
      passage: (ids, starts, ends), int [tokens] each; starts and ends are characters.
      how: the further arguments of `overlapping`.
    """
    ids, starts, ends = passage
    for row, window, owns in overlapping(tokenizer, question, ids, *how):
        row |= {
            "context_start": 1 + len(question) + len(tokenizer.between),
            "token_starts": starts[window].tolist(),
            "token_ends": ends[window].tolist(),
            "is_max_context": owns.astype(int).tolist(),
        }
        yield row, window


def window_starts(length: int, room: int, stride: int) -> list[int]:
    """Return the first token of each window of `room` tokens, `stride` apart, up to the end."""
    starts = [0]
    while starts[-1] + room < length:
        starts.append(starts[-1] + min(room, stride))
    return starts


def max_context_window(length: int, starts: list[int], room: int) -> np.ndarray:
    """Return for each token the window where it has most context, int [length].

    Context is the smaller of the tokens to its left and right, plus a hundredth of the window's
    length; at a tie the earlier window wins.
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
