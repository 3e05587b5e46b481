"""The one window of a paragraph that is kept by its answer, and its sentences."""

import functools
import zlib

import numpy as np


def window_at_answer(
    example_id: str, answer: tuple[int, int], sentences: np.ndarray, length: int, room: int
) -> int:
    """First token of the one window that is kept of a paragraph (`context="answer_sentence"`).

    It holds the answer's sentence whole and as many neighbours as fit: it begins at that sentence
    or at one before it. Which one is drawn by a hash of the question's id, or the answer's place in
    the window would say where it is. A sentence longer than the window is cut on either side, again
    by the hash.

    Args:
      answer: its first and last token.
      sentences: first token of each sentence, rising, int [sentences].
      length: tokens of the paragraph.
      room: tokens of a window.
    """
    if length <= room:
        return 0
    first, last = answer
    sentence = max(0, int(np.searchsorted(sentences, first, side="right")) - 1)
    after = int(np.searchsorted(sentences, last, side="right"))
    end = int(sentences[after]) if after < len(sentences) else length
    starts = [int(start) for start in sentences[: sentence + 1] if end - start <= room]
    if not starts:
        starts = range(max(int(sentences[sentence]), last + 1 - room), first + 1) or [first]
    return starts[zlib.crc32(example_id.encode("utf-8", "surrogatepass")) % len(starts)]


@functools.lru_cache(maxsize=4)  # the questions of a paragraph follow each other
def sentence_starts(text: str) -> tuple[int, ...]:
    """The character where each sentence of an English paragraph begins."""
    from data_prep.sentences import split_sentences

    # The splitter changes white space and nothing else.
    places = [place for place, char in enumerate(text) if not char.isspace()]
    starts, seen = [], 0
    for sentence in split_sentences(text):
        starts.append(places[seen])
        seen += sum(map(len, sentence.split()))
    return tuple(starts)


def token_span(answer: tuple[int, int] | None, starts, ends) -> tuple[int, int] | None:
    """First and last token of an answer's characters: those that share one with it."""
    begin, stop = answer or (0, 0)
    touched = np.flatnonzero((ends > begin) & (starts < stop))
    return (int(touched[0]), int(touched[-1])) if len(touched) else None


class LastContext:
    """The pieces of one paragraph, remembered for the questions that follow it."""

    def __init__(self):
        self.context, self.tokenizer, self._pieces = "", None, ([], None, None)

    def encode(self, context: str, tokenizer) -> tuple[list[int], np.ndarray, np.ndarray]:
        """(ids, characters where they start, where they end)."""
        if self.tokenizer is not tokenizer or self.context != context:
            ids, offsets = tokenizer.encode_with_offsets(context)
            places = np.array(offsets, np.int64).reshape(-1, 2)
            self.context, self.tokenizer = context, tokenizer
            self._pieces = ids, places[:, 0], places[:, 1]
        return self._pieces

    def __reduce__(self):
        # A worker process has a tokenizer of its own.
        return LastContext, ()
