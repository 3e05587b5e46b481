"""Byte-level byte-pair encoding: the tokeniser of GPT-2 (Radford et al. 2019) and of RoBERTa.

A text is cut into words, each with the blank before it; a word is its UTF-8 bytes, each written as
a printable character ("Ġ" is the blank); the two neighbours whose merge was learnt first become one
piece, until no pair of neighbours has a merge. There is no unknown text, and decoding gives back
every character. The library `tokenizers` computes it; here stands what RoBERTa has beside it.

Vocabularies are read from `tokenizer.json` as the library `tokenizers` writes it, or from GPT-2's
`vocab.json` and `merges.txt`.
"""

import itertools
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np

from experiments.beyond.byte_pair import files
from official_bert.common.errors import UserError
from official_bert.tokenization.base import SpecialTokens
from official_bert.tokenization.library import tokenizer_json
from official_bert.tokenization.library.foreign import LibraryTokenizer
from official_bert.tokenization.library.tokenizer_json import BYTE_CHARACTERS

SPECIAL = SpecialTokens(pad="<pad>", unk="<unk>", cls="<s>", sep="</s>", mask="<mask>")
BLANK = "Ġ"  # how a piece writes the blank that begins it
_MOST_CHUNKS, _LONGEST_CHUNK = 1 << 20, 64  # in the cache


class BytePairTokenizer(LibraryTokenizer):
    """Byte-pair encoding with one vocabulary; the interface is that of `BertTokenizer`.

    Examples:
      >>> merges = [("h", "i"), ("Ġ", "hi")]
      >>> tokenizer = BytePairTokenizer([*SPECIAL, *BYTE_CHARACTERS, "hi", "Ġhi"], merges)
      >>> tokenizer.tokenize("hi hi!")
      ['hi', 'Ġhi', '!']
      >>> tokenizer.decode(tokenizer.encode("hi hi!"))
      'hi hi!'

    Attributes:
      merges: the pairs of pieces that become one, the first learnt first.
      add_prefix_space: whether a text that does not begin with a blank gets one, so that its first
        word has the pieces that it has elsewhere. Not in RoBERTa.
    """

    kind = "byte_pair"
    hub_class = "RobertaTokenizer"
    separators = 2

    def __init__(
        self,
        vocab: str | os.PathLike | Iterable[str],
        merges: Iterable[tuple[str, str]] | None = None,
        add_prefix_space: bool | None = None,
    ):
        """Read the vocabulary.

        Args:
          vocab: a `tokenizer.json`, a `vocab.json` with `merges.txt` beside it, or the pieces in
            the order of their ids.
          merges: with pieces only.
          add_prefix_space: None as the file says, and false where it says nothing.

        Raises:
          UserError: a file is missing, damaged or of another kind of tokeniser, or it lacks a
            special token, a byte, or what a merge makes.
        """
        where = "vocabulary"
        if isinstance(vocab, str | os.PathLike):
            where = str(vocab)
            vocab, merges, written = files.read(Path(vocab))
            add_prefix_space = written if add_prefix_space is None else add_prefix_space
            self.second_file = files.MERGES_FILE if written is None else ""
        self.merges = [(left, right) for left, right in merges or ()]
        self.add_prefix_space = bool(add_prefix_space)
        vocab = list(vocab)
        _check(vocab, self.merges, where)
        self._set_vocab(vocab, SPECIAL)
        self.contents = self._contents(self.add_prefix_space)
        self._library, _ = tokenizer_json.library(self._computed(), where)
        self._ids = _Cache(self._ids_of_chunk)

    @classmethod
    def of_file(cls, path: Path, contents: dict[str, Any], do_lower_case: bool):
        if path.suffix == ".json" and files.is_gpt2s(contents):
            return files.gpt2s(contents, path)
        is_own = path.suffix == ".json" and files.is_robertas(contents, path)
        return cls(path) if is_own else None

    @classmethod
    def of_contents(cls, contents: dict[str, Any], where: str) -> Self:
        return cls(*files.parts_of(contents, where))

    def encode(self, text: str) -> list[int]:
        # The words of a text, or several together; a blank alone always begins a word.
        begun = self._begun(text)
        if "  " in begun or not begun.isprintable():
            return self._encoding(begun).ids
        chunks = begun.replace(" ", "\n ").split("\n")
        return [*itertools.chain.from_iterable(map(self._ids.__getitem__, chunks))]

    def encode_lines(self, data: bytes) -> tuple[np.ndarray, np.ndarray]:
        """See `Tokenizer`; every line stands behind a blank, as in running text, so that the first
        word of a sentence has the pieces that it has elsewhere."""
        lines = (line.strip() for line in data.decode().split("\n")[:-1])
        return self.encode_batch([line and f" {line}" for line in lines])

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """See `Tokenizer`; blanks at the ends of a piece are not in its span. Pieces of one
        character (parts of its bytes) have the same span."""
        begun = self._begun(text)
        added = len(begun) - len(text)
        ids, spans = super().encode_with_offsets(begun)
        return ids, [(max(start - added, 0), max(end - added, 0)) for start, end in spans]

    def decode(self, ids: Iterable[int]) -> str:
        text = super().decode(ids)
        return text.removeprefix(" ") if self.add_prefix_space else text

    def _contents(self, add_prefix_space: bool) -> dict[str, Any]:
        """Return a `tokenizer.json` as the library reads it, for RoBERTa."""
        space = {"add_prefix_space": add_prefix_space, "trim_offsets": True}
        byte_level = {"type": "ByteLevel", **space, "use_regex": True}
        ends = {"sep": [SPECIAL.sep, self.sep_id], "cls": [SPECIAL.cls, self.cls_id]}
        added = tokenizer_json.special_tokens(self._id_of, filter(None, SPECIAL))
        for token in added:  # the blank before a mask belongs to the word that it hides
            token["lstrip"] = token["content"] == SPECIAL.mask
        return tokenizer_json.whole(
            files.model_of(self._id_of, self.merges, ignore_merges=False),
            added,
            pre_tokenizer=byte_level,
            post_processor={"type": "RobertaProcessing", **ends, **space},
            decoder=byte_level,
        )

    def _computed(self) -> dict[str, Any]:
        # Names of special tokens in a text are text, and the blank before it is put here.
        return {**self._contents(False), "added_tokens": []}

    def _more_content(self) -> list:
        return [self.merges, self.add_prefix_space]

    def _begun(self, text: str) -> str:
        return f" {text}" if self.add_prefix_space and text[:1] not in ("", " ") else text

    def _ids_of_chunk(self, chunk: str) -> tuple[int, ...]:
        return tuple(self._encoding(chunk).ids)

    def __getstate__(self):
        # A worker process fills its own cache.
        return {name: value for name, value in super().__getstate__().items() if name != "_ids"}

    def __setstate__(self, state):
        super().__setstate__(state)
        self._ids = _Cache(self._ids_of_chunk)


class _Cache(dict):
    """The ids of the chunks seen so far."""

    def __init__(self, encode):
        self._encode = encode

    def __missing__(self, chunk: str) -> tuple[int, ...]:
        ids = self._encode(chunk)
        if len(chunk) <= _LONGEST_CHUNK:  # a line of a script without blanks comes once
            if len(self) >= _MOST_CHUNKS:
                self.clear()
            self[chunk] = ids
        return ids


def check_merges(vocab: list[str], merges: list[tuple[str, str]], where: str) -> None:
    """Check merges and their pieces.

    Raises:
      UserError: a piece stands twice in the vocabulary, or it lacks a part or a result of a merge.
    """
    known = set(vocab)
    if len(known) < len(vocab):
        raise UserError(f"{where}: a piece stands in it twice")
    for number, pair in enumerate(merges):
        if not known.issuperset((*pair, "".join(pair))):
            raise UserError(
                f"{where}: merge {number}, {' '.join(pair)!r}, has a part or a result "
                "that is not a piece of the vocabulary"
            )


def blanks_around(piece: str) -> tuple[int, int]:
    """Return how many blanks a piece begins and ends with."""
    return len(piece) - len(piece.lstrip(BLANK)), len(piece) - len(piece.rstrip(BLANK))


def _check(vocab: list[str], merges: list[tuple[str, str]], where: str) -> None:
    known = set(vocab)
    needed = [token for token in SPECIAL if token]
    if missing := [token for token in needed if token not in known]:
        raise UserError(
            f"{where}: lacks {', '.join(missing)}; a RoBERTa's vocabulary has "
            f"{', '.join(needed)}, a GPT-2's <|endoftext|> in their place"
        )
    if absent := [byte for byte, char in enumerate(BYTE_CHARACTERS) if char not in known]:
        raise UserError(f"{where}: lacks the byte {absent[0]} ({BYTE_CHARACTERS[absent[0]]!r})")
    check_merges(vocab, merges, where)
