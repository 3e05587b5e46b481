"""Whole words, as word vectors name them.

Text between blanks is a word where the vocabulary has it, as it is or in lower case; if not, marks
at its ends are taken off one by one until what remains is known ("U.S.", "well-known"). Text that
stays unknown is cut at all marks, and before "n't" and "'s" as in the Penn Treebank, whose words
GloVe's vectors have.
"""

import os
import re
from collections.abc import Iterable

from official_bert.common.errors import UserError
from official_bert.tokenization import vocabulary
from official_bert.tokenization.base import SpecialTokens, Tokenizer

_PARTS = re.compile(
    r"\d+(?:[.,]\d+)*|\w+?(?=n't\b)|n't\b|'(?:s|re|ve|ll|d|m)\b|\w+|[^\w\s]", re.IGNORECASE
)
_MARK = re.compile(r"[^\w\s]")


class WordTokenizer(Tokenizer):
    """Words that have vectors; all others are [UNK].

    Examples:
      >>> tokenizer = WordTokenizer(["do", "n't", "u.s.", "."])
      >>> tokenizer.tokenize("Don't (U.S.)")
      ['do', "n't", '[UNK]', 'u.s.', '[UNK]']
    """

    kind = "words"

    def __init__(self, words: Iterable[str], spellings: Iterable[str] | None = None):
        """
        Args:
          words: those that have vectors; texts are cut where these words begin and end.
          spellings: what has an id, behind the five special tokens: `words_of` the texts, for
            models that read letters; None: the words that have vectors.

        Raises:
          UserError: a word stands twice.
        """
        words = list(words)
        vocab = [*vocabulary.SPECIAL_TOKENS, *(words if spellings is None else spellings)]
        self._known = frozenset(words)
        self._cut_by = [] if spellings is None else words
        if len(set(vocab)) < len(vocab):
            raise UserError("the words of a WordTokenizer must differ from each other")
        self._set_vocab(vocab, SpecialTokens(*vocabulary.SPECIAL_TOKENS))

    @property
    def readable(self) -> list[str]:
        return self.vocab

    def words_of(self, text: str) -> list[str]:
        """Return the words of a text as they are written."""
        return [text[start:end] for start, end in self._spans(text)]

    def tokenize(self, text: str) -> list[str]:
        return [self.vocab[index] for index in self.encode(text)]

    def encode(self, text: str) -> list[int]:
        return [self.word_id(word) for word in self.words_of(text)]

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        spans = self._spans(text)
        return [self.word_id(text[start:end]) for start, end in spans], spans

    def decode(self, ids: Iterable[int]) -> str:
        return " ".join(self.vocab[index] for index in self._shown(ids))

    def write(self, folder: str | os.PathLike) -> None:
        raise UserError("word vectors are not a model folder; keep their file")

    def _spans(self, text: str) -> list[tuple[int, int]]:
        return [
            span for chunk in re.finditer(r"\S+", text) for span in self._cut(text, *chunk.span())
        ]

    def _cut(self, text: str, start: int, end: int) -> list[tuple[int, int]]:
        before, behind = [], []
        while start < end and not self._knows(text[start:end]):
            if _MARK.fullmatch(text[start]):
                before.append((start, start + 1))
                start += 1
            elif _MARK.fullmatch(text[end - 1]):
                behind.append((end - 1, end))
                end -= 1
            else:
                parts = (part.span() for part in _PARTS.finditer(text[start:end]))
                before += [(start + first, start + last) for first, last in parts]
                start = end
        whole = [(start, end)] if start < end else []
        return [*before, *whole, *reversed(behind)]

    def _more_content(self) -> list:
        return self._cut_by

    def _knows(self, word: str) -> bool:
        return word in self._known or word.lower() in self._known

    def word_id(self, word: str) -> int:
        """Return the id of a word, as it is written or in lower case; that of [UNK] where it has
        none."""
        found = self._id_of.get(word, self._id_of.get(word.lower(), self.unk_id))
        return found if found >= len(self.special) else self.unk_id
