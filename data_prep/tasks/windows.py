"""Texts longer than a model's positions, read in windows (as DocBERT's documents would have to be).

A document becomes one feature of several rows, `[CLS] window [SEP]` each; the classifier pools
their vectors (`official_bert.window_pooling`). Of a pair the longer text is cut into windows, and
each of them stands beside the whole other text, as SQuAD's paragraphs beside their question.
"""

import dataclasses

from official_bert.common.errors import UserError, check_choice
from official_bert.tokenization.windows import pack_windows
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
        check_choice("window_pooling", self.pooling, POOLINGS)

    @classmethod
    def of_options(cls, windows: int, window_pooling: str, window_overlap: int) -> "Windows | None":
        """From the options of a task; None where it has no windows.

        Raises:
          UserError: a value is impossible, or says how to read windows where there are none.
        """
        if windows:
            return cls(windows, window_pooling, window_overlap)
        if (window_pooling, window_overlap) != (cls.pooling, cls.overlap):
            raise UserError("window_pooling and window_overlap are of windows; set windows too")
        return None

    def options(self) -> dict:
        """The options of a task that make it again."""
        return {
            "windows": self.most,
            "window_pooling": self.pooling,
            "window_overlap": self.overlap,
        }

    def feature(
        self,
        tokenizer,
        first: list[int],
        second: list[int] | None,
        max_seq_length: int,
        truncation: str,
    ) -> dict:
        """One feature whose lists hold `most` lists; those after the text's end are empty.

        Args:
          first, second: ids of the text, or of both.
          max_seq_length, truncation: as for `pack_windows`, which also says what is cut.

        Raises:
          UserError: windows overlap by all that they may hold of a text.
        """
        rows, cut = pack_windows(
            tokenizer, first, second, max_seq_length, truncation, self.most, self.overlap
        )
        empty = [[]] * (self.most - len(rows))
        return {
            "input_ids": [row["input_ids"] for row in rows] + empty,
            "segment_ids": [row["segment_ids"] for row in rows] + empty,
            "truncated": int(cut),
        }
