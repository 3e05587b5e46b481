"""The protocol of tokenisers of every algorithm, for models, tasks and data preparation."""

import hashlib
import itertools
import operator
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from official_bert.common.errors import UserError
from official_bert.tokenization import sequences

PADDINGS = ("longest", "max_length")


class SpecialTokens(NamedTuple):
    """The tokens that are not text, by their function; the fields have BERT's names.

    Attributes:
      pad: fills a row.
      unk: stands for text that the vocabulary cannot spell; None where it spells everything.
      cls: begins a sequence.
      sep: ends a text.
      mask: hides a token; None where the vocabulary has none.
    """

    pad: str
    unk: str | None
    cls: str
    sep: str
    mask: str | None


class Tokenizer:
    """A vocabulary and an algorithm; a call returns a model's inputs.

    A subclass defines `tokenize`, `encode_with_offsets`, `encode_batch`, `encode_lines`, `decode`,
    `readable` and `write`, and sets the attributes.

    Attributes:
      kind: its name in `model.json`.
      file_name: of its vocabulary in folders of models and records.
      second_file: a file that was read beside that of its vocabulary; "": there is none. `write`
        makes one file of both.
      hub_class: the name of its class in `transformers`.
      hub_files: its files in folders of `transformers`; the first that exists counts.
      reads_hub_json: whether it, and not `ForeignTokenizer`, reads a `tokenizer.json` there.
      algorithm: what cuts words, as a `tokenizer.json` names it; "" for a kind of its own.
      separators: how many `sep` stand between two texts.
      vocab: list[str], the pieces in the order of their ids.
      special: SpecialTokens.
      options: settings that decide the pieces beside the vocabulary, as `model.json` names them.
      pad_id, unk_id, cls_id, sep_id, mask_id: the ids of the special tokens; asking for one that
        the vocabulary lacks is a UserError.
    """

    kind: ClassVar[str]
    file_name: ClassVar[str]
    hub_class: ClassVar[str]
    hub_files: ClassVar[tuple[str, ...]] = ("tokenizer.json", "vocab.txt", "vocab.json")
    reads_hub_json: ClassVar[bool] = False
    algorithm: str = ""
    separators: int = 1
    second_file: str = ""

    vocab: list[str]
    special: SpecialTokens

    @classmethod
    def of_file(
        cls, path: Path, contents: dict[str, Any], do_lower_case: bool
    ) -> "Tokenizer | None":
        """Return the tokeniser of a file that is not a list of pieces; None for other kinds' files.

        Args:
          contents: of a JSON file.
          do_lower_case: as the vocabulary was made.
        """
        return None

    @classmethod
    def hub_contents(cls, path: Path) -> dict[str, Any] | None:
        """Return the contents of the `tokenizer.json` that `transformers` makes of one of
        `hub_files`; None where the class reads the file itself."""
        return None

    @classmethod
    def of_contents(cls, contents: dict[str, Any], where: str) -> Self | None:
        """Return the tokeniser of a `tokenizer.json`; None where the class never has one.

        Raises:
          UserError: the class does not compute these contents.
        """
        return None

    def _set_vocab(self, vocab: list[str], special: SpecialTokens) -> None:
        self.vocab, self.special = vocab, special
        # Where a piece is on several lines, the last counts, as in the original.
        self._id_of = {piece: index for index, piece in enumerate(vocab)}
        self.pad_id, self.cls_id, self.sep_id = (
            self._id_of[token] for token in (special.pad, special.cls, special.sep)
        )

    @property
    def unk_id(self) -> int:
        return self._id_of_role(self.special.unk, "stands for unknown text ([UNK])")

    @property
    def mask_id(self) -> int:
        return self._id_of_role(self.special.mask, "hides another ([MASK])")

    def _id_of_role(self, token: str | None, does: str) -> int:
        if token is None:
            raise UserError(
                f"the vocabulary has no token that {does}, and this needs one; use the vocabulary "
                "of a model that was pre-trained with it"
            )
        return self._id_of[token]

    @property
    def vocab_size(self) -> int:
        return len(self.vocab)

    @property
    def between(self) -> list[int]:
        """The ids that stand between two texts."""
        return [self.sep_id] * self.separators

    @property
    def options(self) -> dict[str, Any]:
        return {}

    @property
    def do_lower_case(self) -> bool:
        return False

    @property
    def readable(self) -> list[str]:
        """The pieces in WordPiece's notation: "##" begins a piece that continues a word."""
        raise NotImplementedError

    @property
    def continues(self) -> np.ndarray:
        """Mask of the pieces that continue the word of the piece before them, bool [vocab_size]."""
        return np.array([piece.startswith("##") for piece in self.readable])

    def __call__(
        self,
        texts: str | Sequence[str],
        pairs: str | Sequence[str] | None = None,
        max_length: int = 512,
        padding: str | int = "longest",
        truncation: str | None = None,
    ) -> dict[str, np.ndarray]:
        """Return a model's inputs for some texts: [CLS] text [SEP], or [CLS] text [SEP] pair [SEP].

        Args:
          texts: a list of texts; one text is a list of one.
          pairs: the second text of each row, if rows are pairs.
          max_length: most tokens of a row; BERT has 512 positions.
          padding: rows are filled with [PAD] to "longest" (of the rows), to "max_length", or to the
            next multiple of a number (at most max_length), which saves compiling for every length.
          truncation: which part of a too long text is kept: "head", "tail" or "head+tail" (a
            quarter and three quarters); None: a too long text is an error.

        Returns:
          {"input_ids", "input_mask", "segment_ids"}, int32 [texts, length] each.

        Raises:
          UserError: a text is too long or not a text, or texts and pairs differ in number.
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
        """Return the rows of `sequences.pack` for texts, or for texts and their pairs: list[dict].

        Raises:
          UserError: as for a call, but too long texts are cut.
        """
        texts, others = text_list(texts, "texts"), []
        if pairs is not None and len(others := text_list(pairs, "pairs")) != len(texts):
            raise UserError(f"{len(texts)} texts, but {len(others)} pairs; give each text its own")
        ids, offsets = self.encode_batch([*texts, *others])
        pieces = [part.tolist() for part in np.split(ids, offsets[1:-1])]
        seconds = pieces[len(texts) :] or [None] * len(texts)
        return [
            sequences.pack(self, first, second, max_length, truncation)
            for first, second in zip(pieces[: len(texts)], seconds, strict=True)
        ]

    def pad(self, rows: Sequence[dict], length: int) -> dict[str, np.ndarray]:
        """Return rows of `sequences.pack` as the three arrays int32 [rows, length]."""
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
        """Return the pieces of a text."""
        raise NotImplementedError

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text's pieces."""
        return [self._id_of[piece] for piece in self.tokenize(text)]

    def encode_masked(self, text: str) -> list[int]:
        """Encode a text in which the mask's name, "[MASK]" in BERT, stands for the token.

        The other methods read that name as text.
        """
        mask_id = self.mask_id
        *before, last = text.split(self.special.mask)
        # A blank before a mask belongs to the word that it hides.
        parts = [[*self.encode(part.rstrip()), mask_id] for part in before]
        return [index for part in (*parts, self.encode(last)) for index in part]

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the ids of a text's pieces and where each stands in `text`.

        Returns:
          ids: as `encode`.
          spans: (start, end) for each id; text[start:end] is what the piece was made from.
        """
        raise NotImplementedError

    def _placed(self, pieces) -> tuple[list[int], list[tuple[int, int]]]:
        """Return ids and spans, as `encode_with_offsets` does, from `offsets.Placed` pieces."""
        ids = [self._id_of[piece.text] for piece in pieces]
        return ids, [(piece.start, piece.end) for piece in pieces]

    def encode_batch(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Encode many texts, faster than one by one.

        Returns:
          ids: int32 [sum of lengths], the texts one after another.
          offsets: int64 [len(texts) + 1]; text i has ids[offsets[i]:offsets[i + 1]].
        """
        rows = [self.encode(text) for text in texts]
        offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        return np.array([*itertools.chain.from_iterable(rows)], np.int32), offsets

    def encode_lines(self, data: bytes) -> tuple[np.ndarray, np.ndarray]:
        """Encode each line of UTF-8 text; blanks at its ends do not count.

        Args:
          data: whole lines, each with its "\n".

        Raises:
          UnicodeDecodeError: the bytes are not UTF-8.
        """
        return self.encode_batch([line.strip() for line in data.decode().split("\n")[:-1]])

    def decode(self, ids: Iterable[int]) -> str:
        """Return readable text from ids; tokens that pad, begin or end sequences are left out.

        Raises:
          IndexError: an id is outside the vocabulary.
        """
        raise NotImplementedError

    def _shown(self, ids: Iterable[int]) -> list[int]:
        """Return the ids that `decode` shows; IndexError where one is outside the vocabulary."""
        numbers = [*map(operator.index, ids)]
        for number in numbers:
            if not 0 <= number < self.vocab_size:
                raise IndexError(f"id {number} is outside the vocabulary")
        left_out = {self.pad_id, self.cls_id, self.sep_id}
        return [number for number in numbers if number not in left_out]

    def digest(self) -> str:
        """Return a hash of everything that decides the pieces."""
        parts = [self.kind, sorted(self.options.items()), self.vocab, *self._more_content()]
        return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()

    def _more_content(self) -> list:
        """Return what decides the pieces beside the vocabulary and the options."""
        return []

    def write(self, folder: str | os.PathLike) -> None:
        """Write the vocabulary into a folder, under `file_name`."""
        raise NotImplementedError

    def write_for_hub(self, folder: str | os.PathLike) -> None:
        """Write the vocabulary as `hub_class` reads it."""
        self.write(folder)

    def to_json(self) -> dict[str, Any] | None:
        """Return the contents of a `tokenizer.json`, or None where the library has no such
        tokeniser."""
        return None


def text_list(texts, name: str) -> list[str]:
    """Return texts as a list; a single text becomes a list of one.

    Raises:
      UserError: the list is empty, or something in it is not a text.
    """
    if type(texts).__module__.startswith("tensorflow"):
        raise UserError(
            f"{name} is a tensor of TensorFlow; in a graph (dataset.map) "
            "official_bert.TokenizerLayer(tokenizer, max_length=128) does the same"
        )
    try:
        texts = [texts] if isinstance(texts, str) else list(texts)
    except TypeError:
        raise UserError(f"{str(texts)[:50]!r} is neither a text nor a list of texts") from None
    if not texts:
        raise UserError(f"{name} is empty; give one text or more")
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
