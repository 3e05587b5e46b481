"""Rows of VideoBERT (section 3.2): text, clips, and both; texts with their own clips or others.

    [CLS] now we cut the onion [SEP]      [CLS] v7 v7 v30 [SEP]
    [CLS] now we cut the onion [>] v7 v7 v30 [SEP]

Half of all segments are joined with the one that follows in their video; of their clips every
first, second, ... or fifth stays, drawn anew each time. In half of the rows of both the clips are
another video's. They are masked as the others are, so that no mask says which is which, but only
what belongs together is predicted there.
"""

import dataclasses

import numpy as np

from data_prep.pretraining.masking import mask_rows
from data_prep.pretraining.random_streams import RandomStream, below
from official_bert.common.errors import UserError

MASKED = 0.15
_MOST_APART = 5  # of clips that stay
_MOST_DRAWS = 10_000  # of a segment that shows something else


@dataclasses.dataclass(frozen=True)
class Tokens:
    """Ids: text's tokeniser's, then the one between text and clips, then visual words.

    Attributes:
      between: `[>]`; the first visual word is the next id.
      vocab_size: of all.
    """

    pad: int
    cls: int
    sep: int
    mask: int
    between: int
    vocab_size: int

    def row(self, pieces, words, length: int) -> tuple[list[int], list[int]]:
        """Return (ids, segments) of pieces, visual words, or both, at most `length`; where both are
        too long, each keeps half. Clips and what ends them are segment 1."""
        room = length - 2 - bool(len(pieces) and len(words))
        words = list(words)[: max(room - len(pieces), room // 2)]
        pieces = list(pieces)[: room - len(words)]
        told = [self.cls, *pieces, *[self.between] * bool(pieces and words)]
        shown = [*words, self.sep]
        return told + shown, [0] * len(told) + [int(bool(words))] * len(shown)

    def pad_rows(self, rows, length: int) -> dict:
        """Return rows of `row` as input_ids, input_mask, segment_ids, int32 [rows, length]."""
        arrays = np.zeros((3, len(rows), length), np.int32)
        arrays[0] = self.pad
        for number, (ids, segments) in enumerate(rows):
            arrays[:, number, : len(ids)] = ids, [1] * len(ids), segments
        return dict(zip(("input_ids", "input_mask", "segment_ids"), arrays, strict=True))


class VideoRows:
    """Batches, each by its number.

    Args:
      videos: of each a list of segments, (ids of pieces, ids of visual words); pieces may be empty.
      each: rows of each of the three kinds in a batch.
      length: of a row.
      joint_masks: whether rows of both are masked too.

    Raises:
      UserError: no segment has a text, or there is one video alone.
    """

    def __init__(self, videos, tokens: Tokens, each: int, length: int, joint_masks=True, seed=0):
        self._tokens, self._each, self._length, self._seed = tokens, each, length, seed
        self._joint_masks = joint_masks
        self._segments = [segment for video in videos for segment in video]
        self._video = np.repeat(np.arange(len(videos)), [len(video) for video in videos])
        self._follows = np.append(self._video[1:] == self._video[:-1], False)
        self._told = np.flatnonzero([len(pieces) > 0 for pieces, _ in self._segments])
        if not len(self._told):
            raise UserError("no segment of train has a text: nothing tells what is shown")
        if len(videos) == 1:
            raise UserError("train has one video; texts are set beside clips of other videos too")

    def batch(self, number: int) -> dict:
        """Return texts, clips, and both, in this order, as `BertPretrainer` reads them with the
        objectives masked_lm and alignment: label 1 where the clips are the text's."""
        each, told, every = self._each, self._told, np.arange(len(self._segments))
        stream = RandomStream(self._seed, block=number)
        draws = [chosen[below(stream.raw(each), len(chosen))] for chosen in (told, every, told)]
        rows = [self._tokens.row(self._shown(i, stream)[0], [], self._length) for i in draws[0]]
        rows += [self._tokens.row([], self._shown(i, stream)[1], self._length) for i in draws[1]]
        aligned = np.arange(each) % 2
        for i, own in zip(draws[2], aligned, strict=True):
            rows.append(self._tokens.row(*self.pair(i, own, stream), self._length))
        batch = self._tokens.pad_rows(rows, self._length)
        batch |= self._masked(batch, aligned, stream)
        kind = np.repeat([0, 0, 1], each)[:, None]
        labels = np.concatenate([np.zeros(2 * each), aligned])[:, None]
        return batch | {
            "alignment_labels": labels.astype(np.int32),
            "alignment_weights": kind.astype(np.float32),
        }

    def pair(self, number: int, own: bool, stream) -> tuple[list[int], list[int]]:
        """Return (pieces, visual words) of a segment; not `own`: the words of one of another video,
        which are never the same.

        Raises:
          UserError: all other videos seem to show the same.
        """
        pieces, words = self._shown(number, stream)
        if own:
            return pieces, words
        for _ in range(_MOST_DRAWS):
            other = int(below(stream.raw(1), len(self._segments))[0])
            others = self._shown(other, stream)[1]
            if self._video[other] != self._video[number] and others != words:
                return pieces, others
        raise UserError(f"{_MOST_DRAWS} segments of train show the same visual words as another")

    def _shown(self, number, stream):
        """Return (pieces, visual words) of a segment and perhaps the next one, clips left out."""
        joined, apart = (below(stream.raw(2), (2, _MOST_APART))).tolist()
        segments = self._segments[number : number + 1 + (joined and int(self._follows[number]))]
        pieces = [piece for told, _ in segments for piece in told]
        words = [word for _, shown in segments for word in shown]
        return pieces, words[:: 1 + apart]

    def _masked(self, batch, aligned, stream):
        ids, real, tokens = batch["input_ids"], batch["input_mask"] > 0, self._tokens
        candidates = real & ~np.isin(ids, (tokens.cls, tokens.sep, tokens.between))
        if not self._joint_masks:
            candidates[2 * self._each :] = False
        masked = mask_rows(
            ids,
            candidates,
            real.sum(axis=1),
            stream,
            vocab_size=tokens.vocab_size,
            mask_id=tokens.mask,
            masked_lm_prob=MASKED,
            max_predictions=max(1, round(MASKED * self._length)),
        )
        weights = np.arange(masked.ids.shape[1]) < masked.counts[:, None]
        weights[2 * self._each :] &= aligned[:, None] > 0
        return {
            "input_ids": masked.input_ids,
            "masked_lm_positions": masked.positions.astype(np.int32),
            "masked_lm_ids": masked.ids,
            "masked_lm_weights": weights.astype(np.float32),
        }
