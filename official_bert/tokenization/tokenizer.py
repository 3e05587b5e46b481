"""BertTokenizer: from text to WordPiece ids and back."""

import os
from collections.abc import Iterable, Sequence

import numpy as np

from official_bert.tokenization import decoding, fast, offsets, reference, vocabulary


class BertTokenizer:
    """WordPiece tokenisation with one vocabulary.

    All methods give the pieces of the original's `FullTokenizer`; they differ in what else they
    give and in speed. None adds [CLS] or [SEP].

        tokenizer = BertTokenizer("vocab.txt")
        tokenizer.tokenize("Unaffable!")    # ["una", "##ffa", "##ble", "!"]
        tokenizer.encode("Unaffable!")      # [14477, 20961, 3468, 999]
        tokenizer.decode([14477, 20961, 3468, 999])  # "unaffable!"

    Attributes:
      vocab: list[str], the pieces in the order of their ids.
      do_lower_case: whether text is lower-cased and loses its accents first.
      pad_id, unk_id, cls_id, sep_id, mask_id: the ids of the special tokens.
    """

    def __init__(self, vocab: str | os.PathLike | Iterable[str], do_lower_case: bool = True):
        """Reads the vocabulary.

        Args:
          vocab: the path of a `vocab.txt`, or the pieces themselves.
          do_lower_case: as the vocabulary was made.

        Raises:
          UserError: the vocabulary cannot be used (see `vocabulary.load_vocab`).
        """
        if isinstance(vocab, str | os.PathLike):
            self.vocab = vocabulary.load_vocab(vocab)
        else:
            self.vocab = vocabulary.check_vocab(list(vocab))
        self.do_lower_case = do_lower_case
        self._id_of = {piece: index for index, piece in enumerate(self.vocab)}
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (
            self._id_of[token] for token in vocabulary.SPECIAL_TOKENS
        )
        self._fast = None  # made when first needed

    @property
    def vocab_size(self) -> int:
        return len(self.vocab)

    def tokenize(self, text: str) -> list[str]:
        """The pieces of a text, by the reference algorithm."""
        return reference.tokenize(text, self._id_of, self.do_lower_case)

    def encode(self, text: str) -> list[int]:
        """The ids of a text's pieces."""
        return [self._id_of[piece] for piece in self.tokenize(text)]

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """The ids of a text's pieces and where each stands in `text`.

        Returns:
          ids: as `encode`.
          spans: (start, end) for each id; text[start:end] is what the piece was made from.
        """
        placed = offsets.tokenize_with_offsets(text, self._id_of, self.do_lower_case)
        ids = [self._id_of[piece.text] for piece in placed]
        return ids, [(piece.start, piece.end) for piece in placed]

    def decode(self, ids: Iterable[int]) -> str:
        """Readable text from ids; [PAD], [CLS] and [SEP] are left out.

        Raises:
          IndexError: an id is outside the vocabulary.
        """
        return decoding.pieces_to_text(self.vocab[index] for index in ids)

    def encode_batch(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """The ids of many texts, tens of megabytes a second (see `fast.py`).

        Returns:
          ids: int32 [sum of lengths], the texts one after another.
          offsets: int64 [len(texts) + 1]; text i has ids[offsets[i]:offsets[i + 1]].
        """
        return self._fast_encoder().encode(texts)

    def encode_lines(self, data: bytes) -> tuple[np.ndarray, np.ndarray]:
        """As `encode_batch`, for each line of some UTF-8 text: faster than as strings.

        Args:
          data: whole lines, each with its "\\n", best some 100 kB at once.

        Raises:
          UnicodeDecodeError: the bytes are not UTF-8.
        """
        return self._fast_encoder().encode_lines(data)

    def _fast_encoder(self):
        if self._fast is None:
            self._fast = fast.FastEncoder(self._id_of, self.do_lower_case)
        return self._fast

    def __getstate__(self):
        # A worker process builds its own cache of words rather than receiving ours.
        return self.__dict__ | {"_fast": None}
