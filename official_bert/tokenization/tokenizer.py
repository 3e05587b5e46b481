"""`BertTokenizer`: WordPiece ids from text, and text from ids."""

import os
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from official_bert.common.errors import UserError
from official_bert.tokenization import decoding, fast, offsets, reference, vocabulary
from official_bert.tokenization.base import Tokenizer


class BertTokenizer(Tokenizer):
    """WordPiece tokenisation with one vocabulary.

    All methods give the pieces of the original's `FullTokenizer`; they differ in further results
    and in speed. A call returns a model's inputs; the other methods add no [CLS] or [SEP].

    Examples:
      >>> pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##aff", "##able", "!"]
      >>> tokenizer = BertTokenizer(pieces)
      >>> tokenizer.tokenize("Unaffable!")
      ['un', '##aff', '##able', '!']
      >>> tokenizer.encode("Unaffable!")
      [5, 6, 7, 8]
      >>> tokenizer.decode([5, 6, 7, 8])
      'unaffable!'
      >>> batch = tokenizer(["Unaffable!", "!"])
      >>> batch["input_ids"]
      array([[2, 5, 6, 7, 8, 3],
             [2, 8, 3, 0, 0, 0]], dtype=int32)

    Attributes:
      rules: `reference.Rules`: do_lower_case, strip_accents, tokenize_chinese_chars.
    """

    kind = "word_piece"
    file_name = "vocab.txt"
    hub_class = "BertTokenizer"
    algorithm = "WordPiece"

    def __init__(
        self,
        vocab: str | os.PathLike | Iterable[str],
        do_lower_case: bool = True,
        strip_accents: bool | None = None,
        tokenize_chinese_chars: bool = True,
    ):
        """Read the vocabulary.

        Args:
          vocab: the path of a `vocab.txt`, or the pieces themselves.
          do_lower_case: as the vocabulary was made; a warning tells where they seem to disagree.
          strip_accents: None: where text is lower-cased; some models say true or false.
          tokenize_chinese_chars: whether every ideograph is a word of its own.

        Raises:
          UserError: the vocabulary cannot be used (see `vocabulary.load_vocab`).
        """
        if isinstance(vocab, dict):
            raise UserError("vocabulary: give the pieces in the order of their ids, not a dict")
        if isinstance(vocab, str | os.PathLike):
            vocab = vocabulary.load_vocab(vocab)
        else:
            vocab = vocabulary.check_vocab(list(vocab))
        self._set_vocab(vocab, vocabulary.special_tokens(vocab))
        self.rules = reference.Rules(do_lower_case, strip_accents, tokenize_chinese_chars)
        if mismatch := vocabulary.case_mismatch(self.vocab, do_lower_case):
            warnings.warn(mismatch, stacklevel=2)
        self._fast = None  # made when first needed

    @property
    def do_lower_case(self) -> bool:
        return self.rules.do_lower_case

    @property
    def options(self) -> dict[str, Any]:
        return self.rules._asdict()

    @property
    def readable(self) -> list[str]:
        return self.vocab

    def tokenize(self, text: str) -> list[str]:
        """Return the pieces of a text, by the reference algorithm."""
        return reference.tokenize(text, self._id_of, *self.rules)

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        return self._placed(offsets.tokenize_with_offsets(text, self._id_of, self.rules))

    def decode(self, ids: Iterable[int]) -> str:
        return decoding.pieces_to_text(self.vocab[index] for index in self._shown(ids))

    def encode_batch(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        # Tens of megabytes a second; lines are fastest some 100 kB at once, see `fast.py`.
        return self._fast_encoder().encode(texts)

    def encode_lines(self, data: bytes) -> tuple[np.ndarray, np.ndarray]:
        return self._fast_encoder().encode_lines(data)

    def write(self, folder: str | os.PathLike) -> None:
        vocabulary.write_vocab(os.path.join(folder, self.file_name), self.vocab)

    def _fast_encoder(self):
        if self._fast is None:
            self._fast = fast.FastEncoder(self._id_of, self.rules)
        return self._fast

    def __getstate__(self):
        # A worker process builds its own cache of words rather than receiving ours.
        return self.__dict__ | {"_fast": None}
