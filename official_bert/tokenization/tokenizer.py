"""BertTokenizer: from text to WordPiece ids and back."""

import os
import warnings
from collections.abc import Iterable, Sequence

import numpy as np

from official_bert.errors import UserError
from official_bert.tokenization import decoding, fast, offsets, reference, sequences, vocabulary

PADDINGS = ("longest", "max_length")


class BertTokenizer:
    """WordPiece tokenisation with one vocabulary.

    All methods give the pieces of the original's `FullTokenizer`; they differ in what else they
    give and in speed. Calling it gives what a model reads; the other methods add no [CLS] or [SEP].

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
      vocab: list[str], the pieces in the order of their ids.
      do_lower_case: whether text is lower-cased first.
      rules: `reference.Rules`: do_lower_case, strip_accents, tokenize_chinese_chars.
      pad_id, unk_id, cls_id, sep_id, mask_id: the ids of the special tokens.
    """

    def __init__(
        self,
        vocab: str | os.PathLike | Iterable[str],
        do_lower_case: bool = True,
        strip_accents: bool | None = None,
        tokenize_chinese_chars: bool = True,
    ):
        """Reads the vocabulary.

        Args:
          vocab: the path of a `vocab.txt`, or the pieces themselves.
          do_lower_case: as the vocabulary was made; a warning says so where it does not look so.
          strip_accents: None where text is lower-cased; false and true as some models have it.
          tokenize_chinese_chars: whether every ideograph is a word of its own.

        Raises:
          UserError: the vocabulary cannot be used (see `vocabulary.load_vocab`).
        """
        if isinstance(vocab, str | os.PathLike):
            self.vocab = vocabulary.load_vocab(vocab)
        else:
            self.vocab = vocabulary.check_vocab(list(vocab))
        self.rules = reference.Rules(do_lower_case, strip_accents, tokenize_chinese_chars)
        if mismatch := vocabulary.case_mismatch(self.vocab, do_lower_case):
            warnings.warn(mismatch, stacklevel=2)
        self._id_of = {piece: index for index, piece in enumerate(self.vocab)}
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (
            self._id_of[token] for token in vocabulary.SPECIAL_TOKENS
        )
        self._fast = None  # made when first needed

    @property
    def do_lower_case(self) -> bool:
        return self.rules.do_lower_case

    @property
    def vocab_size(self) -> int:
        return len(self.vocab)

    def __call__(
        self,
        texts: str | Sequence[str],
        pairs: str | Sequence[str] | None = None,
        max_length: int = 512,
        padding: str | int = "longest",
        truncation: str | None = None,
    ) -> dict[str, np.ndarray]:
        """What a model reads of some texts: [CLS] text [SEP], or [CLS] text [SEP] pair [SEP].

        Args:
          texts: a list of texts; one text is a list of one.
          pairs: the second text of each row, if rows are pairs.
          max_length: most tokens of a row; BERT has 512 positions.
          padding: rows are filled with [PAD] to "longest" (of the rows), to "max_length", or to the
            next multiple of a number (at most max_length), which saves compiling for every length.
          truncation: which part of a text too long stays: "head", "tail" or "head+tail" (a quarter
            and three quarters); None: a text too long is an error.

        Returns:
          {"input_ids", "input_mask", "segment_ids"}, int32 [texts, length] each.

        Raises:
          UserError: a text is too long or is none, or texts and pairs differ in number.
        """
        rows = self.pack(texts, pairs, max_length, truncation or "head")
        for index, row in enumerate(rows):
            if row["truncated"] and truncation is None:
                raise UserError(
                    f"text {index} has more than max_length={max_length} tokens with [CLS] and "
                    "[SEP]; truncation='head' keeps its beginning"
                )
        longest = max(len(row["input_ids"]) for row in rows)
        return self.pad(rows, _padded_length(longest, max_length, padding))

    def pack(self, texts, pairs=None, max_length: int = 512, truncation: str = "head"):
        """The rows of `sequences.pack` for texts, or for texts and their pairs: list[dict].

        Raises:
          UserError: as for a call, but texts too long are cut.
        """
        texts, pairs = _text_list(texts, "texts"), pairs and _text_list(pairs, "pairs")
        if pairs is not None and len(pairs) != len(texts):
            raise UserError(f"{len(texts)} texts, but {len(pairs)} pairs; give each text its own")
        if not texts:
            raise UserError("texts is empty; give one text or more")
        ids, offsets = self.encode_batch([*texts, *(pairs or ())])
        pieces = [part.tolist() for part in np.split(ids, offsets[1:-1])]
        seconds = pieces[len(texts) :] or [None] * len(texts)
        return [
            sequences.pack(self, first, second, max_length, truncation)
            for first, second in zip(pieces[: len(texts)], seconds, strict=True)
        ]

    def pad(self, rows: Sequence[dict], length: int) -> dict[str, np.ndarray]:
        """Rows of `sequences.pack` as the three arrays int32 [rows, length]."""
        shape = (len(rows), length)
        batch = {name: np.zeros(shape, np.int32) for name in ("input_mask", "segment_ids")}
        batch = {"input_ids": np.full(shape, self.pad_id, np.int32), **batch}
        for index, row in enumerate(rows):
            size = len(row["input_ids"])
            batch["input_ids"][index, :size] = row["input_ids"]
            batch["input_mask"][index, :size] = 1
            batch["segment_ids"][index, :size] = row["segment_ids"]
        return batch

    def tokenize(self, text: str) -> list[str]:
        """The pieces of a text, by the reference algorithm."""
        return reference.tokenize(text, self._id_of, *self.rules)

    def encode(self, text: str) -> list[int]:
        """The ids of a text's pieces."""
        return [self._id_of[piece] for piece in self.tokenize(text)]

    def encode_masked(self, text: str) -> list[int]:
        """As `encode`, but "[MASK]" stands for the token; elsewhere it is a word in brackets."""
        parts = [self.encode(part) for part in text.split(vocabulary.MASK)]
        return [piece for part in parts for piece in (*part, self.mask_id)][:-1]

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """The ids of a text's pieces and where each stands in `text`.

        Returns:
          ids: as `encode`.
          spans: (start, end) for each id; text[start:end] is what the piece was made from.
        """
        placed = offsets.tokenize_with_offsets(text, self._id_of, self.rules)
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
            self._fast = fast.FastEncoder(self._id_of, self.rules)
        return self._fast

    def __getstate__(self):
        # A worker process builds its own cache of words rather than receiving ours.
        return self.__dict__ | {"_fast": None}


def _text_list(texts, name: str) -> list[str]:
    texts = [texts] if isinstance(texts, str) else list(texts)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            hint = "; pairs go into the second argument" if isinstance(text, list | tuple) else ""
            raise UserError(f"{name}[{index}] is {str(text)[:50]!r}, expected a text{hint}")
    return texts


def _padded_length(longest: int, max_length: int, padding: str | int) -> int:
    if isinstance(padding, int) and not isinstance(padding, bool) and padding > 0:
        return min(-(-longest // padding) * padding, max_length)
    if padding not in PADDINGS:
        names = ", ".join(map(repr, PADDINGS))
        raise UserError(f"padding={padding!r}; it is {names} or a number, to fill to its multiples")
    return longest if padding == "longest" else max_length
