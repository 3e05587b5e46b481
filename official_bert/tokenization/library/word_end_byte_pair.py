"""Byte-pair encoding of lower-cased words: the tokeniser of OpenAI GPT (Radford et al. 2018).

Words are those of BERT's uncased models; the last piece of each ends in "</w>". A word is its
characters at first, and of two neighbours the pair whose merge was learnt first becomes one piece,
until no pair has a merge (Sennrich et al. 2016). A character that the vocabulary lacks is unknown.

Vocabularies are those of `transformers`: `tokenizer.json`, or `vocab.json` and `merges.txt`. They
have no place for the tokens that begin, divide and end the texts of a task; these stand behind the
last piece.
"""

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from official_bert.common.errors import UserError
from official_bert.tokenization import offsets, reference, sequences
from official_bert.tokenization.base import SpecialTokens
from official_bert.tokenization.library import byte_pair, byte_pair_files, tokenizer_json
from official_bert.tokenization.library.foreign import LibraryTokenizer

END = byte_pair_files.WORD_END
START, DELIMITER, EXTRACT, UNKNOWN = "_start_", "_delimiter_", "_classify_", "<unk>"
ADDED = (START, DELIMITER, EXTRACT)
# The model never reads the padding, and no token is masked.
SPECIAL = SpecialTokens(pad=EXTRACT, unk=UNKNOWN, cls=START, sep=EXTRACT, mask=UNKNOWN)
_RULES = reference.Rules()


class WordEndTokenizer(LibraryTokenizer):
    """GPT's tokeniser; a row is `_start_ A _classify_` or `_start_ A _delimiter_ B _classify_`.

    Examples:
      >>> pieces = ["<unk>", "l", "o", "w", "w</w>", "lo", "low</w>"]
      >>> tokenizer = WordEndTokenizer(pieces, [("l", "o"), ("lo", "w</w>")])
      >>> tokenizer.tokenize("Low lol")
      ['low</w>', 'lo', '<unk>']

    Attributes:
      merges: the pairs of pieces that become one, the first learnt first.
    """

    kind = "word_end_byte_pair"

    def __init__(
        self,
        vocab: str | os.PathLike | Iterable[str],
        merges: Iterable[tuple[str, str]] | None = None,
    ):
        """Read the vocabulary.

        Args:
          vocab: a `tokenizer.json`, a `vocab.json` with `merges.txt` beside it, or the pieces in
            the order of their ids.
          merges: with pieces only.

        Raises:
          UserError: a file is missing or damaged, or what a merge makes is not a piece.
        """
        where = "vocabulary"
        if isinstance(vocab, str | os.PathLike):
            where = str(vocab)
            vocab, merges = byte_pair_files.read_word_ends(Path(vocab))
        vocab, self.merges = list(vocab), [(left, right) for left, right in merges or ()]
        vocab += [token for token in ADDED if token not in vocab]
        byte_pair.check_merges(vocab, self.merges, where)
        if UNKNOWN not in vocab:
            raise UserError(f"{where}: lacks {UNKNOWN}, which stands for unknown characters")
        self._set_vocab(vocab, SPECIAL)
        self.contents = tokenizer_json.whole(
            tokenizer_json.byte_pairs(
                self._id_of, self.merges, unk_token=UNKNOWN, end_of_word_suffix=END
            ),
            tokenizer_json.special_tokens(self._id_of, {*ADDED, UNKNOWN}),
            **byte_pair_files.UNCASED_WORDS,
            post_processor=sequences.as_template(self),
            decoder={"type": "BPEDecoder", "suffix": END},
        )
        self._library, _ = tokenizer_json.library(self.contents, where)

    @property
    def between(self) -> list[int]:
        return [self._id_of[DELIMITER]]

    @property
    def do_lower_case(self) -> bool:
        return True

    @property
    def readable(self) -> list[str]:
        """Pieces say where a word ends, not where it begins: none has a "##"."""
        return [piece.removesuffix(END) for piece in self.vocab]

    @property
    def continues(self) -> np.ndarray:
        """None is known to; whole words cannot be masked."""
        return np.zeros(self.vocab_size, bool)

    def encode(self, text: str) -> list[int]:
        words = reference.basic_tokenize(text, *_RULES)
        return [piece.id for word in words for piece in self._pieces(word)]

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        def cut(word):
            for piece in self._pieces(word):
                unknown = piece.id == self.unk_id
                yield piece.value, 1 if unknown else len(piece.value.removesuffix(END))

        return self._placed(offsets.pieces_of_words(text, _RULES, cut))

    def decode(self, ids: Iterable[int]) -> str:
        pieces = (self.vocab[index] for index in ids)
        shown = (f"{p}{END}" if p == UNKNOWN else p for p in pieces if p not in ADDED)
        return "".join(shown).replace(END, " ").strip()

    def _more_content(self) -> list:
        return [self.merges]

    def _pieces(self, word: str) -> list:
        # A lone surrogate is not text: one unknown character.
        word = word.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return self._library.model.tokenize(word)
