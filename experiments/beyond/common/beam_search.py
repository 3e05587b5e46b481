"""Beam search in `keras.ops`: in a graph where the backend makes one, so that an export has it.

The rule is that of `transformers` (early_stopping=False). Among twice as many continuations as
there are beams, those that end among the best are candidates; the others go on; a text's score is
the sum of its logarithms by its length to the power of `length_penalty`. A row is decided when no
beam that goes on could be better than its worst candidate, by today's lengths. One beam is the
greedy text.
"""

import math
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from official_bert.common.errors import UserError

_NEVER = -1e9  # the score of what shall not be chosen


def search(
    step: Callable,
    state: Any,
    first,
    end,
    longest: int,
    beams: int = 1,
    length_penalty: float = 1.0,
):
    """Write a text for each row.

    Args:
      step: function of (int32 [B * beams], int32 scalar place, state) -> (scores of the next token
        [B * beams, V], state); the beams of a row lie beside each other.
      state: nested tensors [B * beams, ...], of before the first token.
      first: int32 [B], what the texts begin with; it is not a part of them.
      end: int32 [B], what ends them.
      longest: tokens of a text at most, its end among them.
      beams: texts that are followed at a time.
      length_penalty: above 0 longer texts become likelier.

    Returns: int32 [B, longest]: the best text of each row, -1 from its end on.
    Raises:
      UserError: length_penalty is not a finite number.
    """
    if not isinstance(length_penalty, int | float) or not math.isfinite(length_penalty):
        raise UserError(f"length_penalty {length_penalty!r} is not a finite number")
    rows = ops.shape(first)[0]
    places = ops.arange(longest, dtype="int32")
    in_best = ops.arange(2 * beams) < beams
    row_numbers = ops.arange(rows, dtype="int32")[:, None]
    no_text = ops.full((rows, beams, longest), -1, dtype="int32")
    no_score = ops.full((rows, beams), _NEVER, dtype="float32")
    begun = ops.where(ops.arange(beams)[None] == 0, ops.zeros_like(no_score), no_score)
    leaves = keras.tree.flatten(state)

    def goes_on(place, tokens, texts, scores, done, done_scores, is_done, is_open, *leaves):
        return ops.logical_and(place < longest, ops.any(is_open))

    def one_more(place, tokens, texts, scores, done, done_scores, is_done, is_open, *leaves):
        packed = keras.tree.pack_sequence_as(state, leaves)
        logits, packed = step(ops.reshape(tokens, (-1,)), place, packed)
        logs = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
        entries = logs.shape[-1]
        logs = ops.reshape(logs, (-1, beams, entries)) + scores[..., None]
        best, index = ops.top_k(ops.reshape(logs, (-1, beams * entries)), k=2 * beams)
        index = ops.cast(index, "int32")
        parents, tokens = index // entries, index % entries
        longer = ops.where(places == place, tokens[..., None], _of(texts, parents))
        ends = ops.logical_or(tokens == end[:, None], place == longest - 1)

        counts = ops.logical_and(ops.logical_and(ends, in_best), is_open[:, None])
        by_length = ops.cast(place + 1, "float32") ** length_penalty
        candidates = [
            ops.concatenate([done_scores, ops.where(counts, best / by_length, _NEVER)], axis=1),
            ops.concatenate([is_done, counts], axis=1),
            ops.concatenate([done, longer], axis=1),
        ]
        done_scores, chosen = ops.top_k(candidates[0], k=beams)
        is_done, done = (_of(x, ops.cast(chosen, "int32")) for x in candidates[1:])

        scores, chosen = ops.top_k(ops.where(ends, best + _NEVER, best), k=beams)
        chosen = ops.cast(chosen, "int32")
        lines = ops.reshape(row_numbers * beams + _of(parents, chosen), (-1,))
        leaves = [ops.take(x, lines, axis=0) for x in keras.tree.flatten(packed)]
        tokens, texts = _of(tokens, chosen), _of(longer, chosen)

        full = ops.all(is_done, axis=1)
        if beams == 1:  # greedy: what has ended has ended
            could_be_better = ops.zeros_like(full)
        else:
            could_be_better = scores[:, 0] / by_length > ops.min(done_scores, axis=1)
        is_open = ops.logical_and(is_open, ops.logical_or(ops.logical_not(full), could_be_better))
        return place + 1, tokens, texts, scores, done, done_scores, is_done, is_open, *leaves

    tokens = ops.repeat(ops.cast(first, "int32")[:, None], beams, axis=1)
    nothing = ops.zeros_like(no_score, dtype="bool")
    variables = (
        ops.zeros((), dtype="int32"), tokens, no_text, begun, no_text, no_score, nothing,
        ops.ones_like(first, dtype="bool"), *leaves,
    )  # fmt: skip
    best = ops.while_loop(goes_on, one_more, variables)[4][:, 0]
    ended = ops.cumsum(ops.cast(best == end[:, None], "int32"), axis=1) > 0
    return ops.where(ended, -1, best)


def _of(x, chosen):
    """Return some of each row: [B, N, ...] and int32 [B, M] -> [B, M, ...]."""
    chosen = ops.reshape(chosen, (*ops.shape(chosen), *[1] * (len(x.shape) - 2)))
    return ops.take_along_axis(x, chosen, axis=1)
