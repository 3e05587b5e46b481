"""Byte-level byte-pair encoding: the tokeniser of GPT-2 (Radford et al. 2019) and of RoBERTa.

A text is cut into words, each with the blank before it; a word is its UTF-8 bytes, each written as
a printable character ("Ġ" is the blank); the two neighbours whose merge was learnt first become one
piece, until no pair of neighbours has a merge. There is no unknown text, and decoding gives back
every character.

Vocabularies are read from `tokenizer.json` as the library `tokenizers` writes it, or from GPT-2's
`vocab.json` and `merges.txt`.
"""

import functools
import heapq
import itertools
import os
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from official_bert.common.errors import UserError
from official_bert.tokenization import byte_pair_files
from official_bert.tokenization.base import SpecialTokens, Tokenizer
from official_bert.tokenization.byte_characters import BYTE_CHARACTERS, bytes_of, text_of

SPECIAL = SpecialTokens(pad="<pad>", unk="<unk>", cls="<s>", sep="</s>", mask="<mask>")
BLANK = "Ġ"  # how a piece writes the blank that begins it
LAST_LETTER = 0x40000  # beyond, Unicode has marks and private characters only
_MOST_CHUNKS, _LONGEST_CHUNK = 1 << 20, 64  # in the cache
# Unicode's white space; to Python four separators of files are blanks as well.
_BLANKS = "".join(c for c in map(chr, range(0x3001)) if c.isspace() and not "\x1c" <= c <= "\x1f")


class BytePairTokenizer(Tokenizer):
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
    file_name = "tokenizer.json"
    separators = 2

    def __init__(
        self,
        vocab: str | os.PathLike | Iterable[str],
        merges: Iterable[tuple[str, str]] | None = None,
        add_prefix_space: bool | None = None,
    ):
        """Reads the vocabulary.

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
            vocab, merges, written = byte_pair_files.read(Path(vocab))
            add_prefix_space = written if add_prefix_space is None else add_prefix_space
        self.merges = [(left, right) for left, right in merges or ()]
        self.add_prefix_space = bool(add_prefix_space)
        vocab = list(vocab)
        _check(vocab, self.merges, where)
        self._set_vocab(vocab, SPECIAL)
        self._rank = {pair: rank for rank, pair in enumerate(self.merges)}
        self._ids = _Cache(self._ids_of_chunk)

    @property
    def readable(self) -> list[str]:
        special = {*SPECIAL}
        return [piece if piece in special else _readable(piece) for piece in self.vocab]

    @property
    def continues(self) -> np.ndarray:
        """As in RoBERTa's own code: all that begins with no blank. So a mark behind a word belongs
        to it."""
        special = {*SPECIAL}
        return np.array([p not in special and not p.startswith(BLANK) for p in self.vocab])

    def tokenize(self, text: str) -> list[str]:
        return [self.vocab[index] for index in self.encode(text)]

    def encode(self, text: str) -> list[int]:
        return [*itertools.chain.from_iterable(map(self._ids.__getitem__, self._chunks(text)))]

    def encode_lines(self, data: bytes) -> tuple[np.ndarray, np.ndarray]:
        """See `Tokenizer`; every line stands behind a blank, as in running text, so that the first
        word of a sentence has the pieces that it has elsewhere."""
        lines = (line.strip() for line in data.decode().split("\n")[:-1])
        return self.encode_batch([line and f" {line}" for line in lines])

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """See `Tokenizer`; blanks at the ends of a piece are not in its span. Pieces of one
        character (parts of its bytes) have the same span."""
        begun = self._begun(text)
        ids: list[int] = []
        spans: list[tuple[int, int]] = []
        added, at = len(begun) - len(text), 0
        for word in words(begun):
            # The character of each byte.
            places = [at + i for i, char in enumerate(word) for _ in _encoded(char)]
            first = 0
            for index in self._ids[word]:
                last = first + len(self.vocab[index])
                start, end = places[first], places[last - 1] + 1
                before, behind = blanks_around(self.vocab[index])
                start = min(start + before, end)
                end = max(end - behind, start)
                ids.append(index)
                spans.append((max(start - added, 0), max(end - added, 0)))
                first = last
            at += len(word)
        return ids, spans

    def decode(self, ids: Iterable[int]) -> str:
        left_out = {self.pad_id, self.cls_id, self.sep_id}
        content = b""
        for index in ids:
            piece = self.vocab[index]
            if index in (self.unk_id, self.mask_id):
                content += piece.encode()
            elif index not in left_out:
                content += bytes_of(piece)
        text = content.decode("utf-8", "replace")
        return text.removeprefix(" ") if self.add_prefix_space else text

    def write(self, folder: str | os.PathLike) -> None:
        byte_pair_files.write(
            Path(folder, self.file_name), self.vocab, self.merges, SPECIAL, self.add_prefix_space
        )

    def _more_content(self) -> list:
        return [self.merges, self.add_prefix_space]

    def _begun(self, text: str) -> str:
        return f" {text}" if self.add_prefix_space and text[:1] not in ("", " ") else text

    def _chunks(self, text: str) -> list[str]:
        """The words of a text, or several together where that is found out faster."""
        text = self._begun(text)
        if "  " in text or not text.isprintable():
            return words(text)
        return text.replace(" ", "\n ").split("\n")  # a blank alone always begins a word

    def _ids_of_chunk(self, chunk: str) -> tuple[int, ...]:
        parts = words(chunk)
        if len(parts) == 1:
            return self._ids_of_word(chunk)
        return tuple(index for part in parts for index in self._ids[part])

    def _ids_of_word(self, word: str) -> tuple[int, ...]:
        pieces = merged([BYTE_CHARACTERS[byte] for byte in _encoded(word)], self._rank)
        return tuple(map(self._id_of.__getitem__, pieces))

    def __getstate__(self):
        # A worker process fills its own cache.
        return {name: value for name, value in self.__dict__.items() if name != "_ids"}

    def __setstate__(self, state):
        self.__dict__.update(state)
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


def merged(pieces: list[str], rank_of: dict[tuple[str, str], int]) -> list[str]:
    """What the pieces of a word become: the pair of neighbours of least rank is merged, again and
    again, the first of several such pairs first.

    Examples:
      >>> merged(["a", "a", "a", "b"], {("a", "a"): 0, ("a", "b"): 1})
      ['aa', 'ab']
    """
    pieces = list(pieces)
    before, after = [*range(-1, len(pieces) - 1)], [*range(1, len(pieces) + 1)]
    end = len(pieces)
    ranks = enumerate(map(rank_of.get, itertools.pairwise(pieces)))
    queue = [(rank, place) for place, rank in ranks if rank is not None]
    heapq.heapify(queue)
    while queue:
        rank, left = heapq.heappop(queue)
        right = after[left]
        if right == end or rank_of.get((pieces[left], pieces[right])) != rank:
            continue  # one of the two was merged with another meanwhile
        pieces[left] += pieces[right]
        pieces[right], after[left] = "", after[right]
        if after[left] < end:
            before[after[left]] = left
        for first, second in ((before[left], left), (left, after[left])):
            if first >= 0 and second < end:
                new = rank_of.get((pieces[first], pieces[second]))
                if new is not None:
                    heapq.heappush(queue, (new, first))
    return [piece for piece in pieces if piece]


def check_merges(vocab: list[str], merges: list[tuple[str, str]], where: str) -> None:
    """
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
                "that is no piece of the vocabulary"
            )


def words(text: str) -> list[str]:
    """GPT-2's cut of a text: contractions, letters, digits, other marks, blanks.

    A blank belongs to the word after it, of several blanks the last one; nothing is lost.

    Examples:
      >>> words("It's  9am, you know")
      ['It', "'s", ' ', ' 9', 'am', ',', ' you', ' know']
    """
    return _pattern().findall(text)


def blanks_around(piece: str) -> tuple[int, int]:
    """How many blanks a piece begins and ends with."""
    return len(piece) - len(piece.lstrip(BLANK)), len(piece) - len(piece.rstrip(BLANK))


def kind_of(char: str) -> str:
    """ "L" for letters, "N" for numbers, "Z" for blanks, "" for others."""
    category = unicodedata.category(char)[0]
    return "Z" if char in _BLANKS else category if category in "LN" else ""


@functools.cache
def _pattern() -> re.Pattern:
    letters, numbers = _ranges("L"), _ranges("N")
    blanks = _BLANKS
    return re.compile(
        f"'(?:[stmd]|re|ve|ll)| ?[{letters}]+| ?[{numbers}]+| ?[^{blanks}{letters}{numbers}]+"
        f"|[{blanks}]+(?![^{blanks}])|[{blanks}]+"
    )


def _ranges(category: str) -> str:
    """The inside of a regular expression's brackets for a category of Unicode.

    Not `[^\\W\\d_]`, to which "½" is a letter.
    """
    found = [code for code in range(LAST_LETTER) if unicodedata.category(chr(code))[0] == category]
    starts = [code for code, before in zip(found, [-2, *found], strict=False) if code != before + 1]
    ends = [code for code, after in zip(found, [*found[1:], 0], strict=True) if after != code + 1]
    return "".join(f"{chr(a)}-{chr(b)}" for a, b in zip(starts, ends, strict=True))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")  # a lone surrogate is no text: "?"


def _readable(piece: str) -> str:
    text = text_of(piece)
    return text[1:] or text if text.startswith(" ") else f"##{text}"


def _check(vocab: list[str], merges: list[tuple[str, str]], where: str) -> None:
    known = set(vocab)
    needed = [token for token in SPECIAL if token]
    if missing := [token for token in needed if token not in known]:
        raise UserError(
            f"{where}: lacks {', '.join(missing)}; RoBERTa needs {', '.join(needed)}, and a "
            "tokeniser of bytes that lacks them (GPT-2's) belongs to another kind of model"
        )
    if absent := [byte for byte, char in enumerate(BYTE_CHARACTERS) if char not in known]:
        raise UserError(f"{where}: lacks the byte {absent[0]} ({BYTE_CHARACTERS[absent[0]]!r})")
    check_merges(vocab, merges, where)
