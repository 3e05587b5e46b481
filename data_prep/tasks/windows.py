"""Texts longer than a model's positions, read in windows (as DocBERT's documents would have to be).

A document becomes one feature of several rows, `[CLS] window [SEP]` each; the classifier pools
their vectors (`official_bert.window_pooling`).
"""

import dataclasses

from official_bert.errors import UserError
from official_bert.tokenization import sequences
from official_bert.window_pooling import POOLINGS


@dataclasses.dataclass(frozen=True)
class Windows:
    """How a text is cut.

    Attributes:
      most: windows a text; what does not fit is left out as `truncation` says.
      pooling: of the vectors of the windows.
      overlap: tokens that a window shares with the one before it.

    Raises:
      UserError: a value is impossible.
    """

    most: int
    pooling: str = "mean"
    overlap: int = 0

    def __post_init__(self):
        if self.most < 1 or self.overlap < 0:
            raise UserError(
                f"windows={self.most}, window_overlap={self.overlap}: neither may be negative"
            )
        if self.pooling not in POOLINGS:
            raise UserError(f"window_pooling={self.pooling!r}; it is one of {', '.join(POOLINGS)}")

    def feature(self, tokenizer, ids: list[int], max_seq_length: int, truncation: str) -> dict:
        """One feature whose lists hold `most` lists; those after the text's end are empty.

        Args:
          ids: the text's.
          max_seq_length: of a window, with [CLS] and [SEP].
          truncation: of `sequences.cut`.

        Raises:
          UserError: windows overlap by all that they hold.
        """
        room = max_seq_length - 2
        step = room - self.overlap
        if step < 1:
            raise UserError(
                f"window_overlap={self.overlap}: windows of max_seq_length={max_seq_length} hold "
                f"{room} tokens of text; the overlap must be smaller"
            )
        kept = sequences.cut(ids, room + (self.most - 1) * step, truncation)
        starts = range(0, max(1, len(kept) - self.overlap), step)
        rows = [[tokenizer.cls_id, *kept[i : i + room], tokenizer.sep_id] for i in starts]
        rows += [[] for _ in range(self.most - len(rows))]
        return {
            "input_ids": rows,
            "segment_ids": [[0] * len(row) for row in rows],
            "truncated": int(len(kept) < len(ids)),
        }
