"""SentencePiece (Kudo and Richardson 2018), the tokeniser of ALBERT.

The library `sentencepiece` cuts the text by the model file (`spiece.model`); what stands here is
what ALBERT's own code does around it: the text is decomposed, loses its accents and its case, and a
piece like "1990," is cut once more, into "1990" and ",", so that a number is the same one before a
comma. (`transformers` leaves the second out, and writes `` and '' as " first.)
"""

import functools
import os
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np

from official_bert.checkpoints.files import guarded_process
from official_bert.common.errors import UserError, check_installed
from official_bert.common.files import atomic_write, scratch
from official_bert.common.outside_files import read_bytes
from official_bert.tokenization import offsets
from official_bert.tokenization.base import SpecialTokens, Tokenizer
from official_bert.tokenization.offsets import Placed

SPECIAL = SpecialTokens(pad="<pad>", unk="<unk>", cls="[CLS]", sep="[SEP]", mask="[MASK]")
BLANK = "▁"  # how a piece writes the blank that begins it
_MOST_BYTES = 64_000_000


class SentencePieceTokenizer(Tokenizer):
    """A SentencePiece model; the interface is that of `BertTokenizer`.

    Attributes:
      model: bytes, the contents of `spiece.model`.
      parts: {id: the ids that take its place}, of pieces that end in a digit and a comma.
      part_lengths: {id: how many characters each part has}, without a blank before the first.
    """

    kind = "sentence_piece"
    file_name = "spiece.model"
    hub_class = "AlbertTokenizer"
    hub_files = ("spiece.model", "tokenizer.json", "vocab.txt")

    def __init__(self, vocab: str | os.PathLike | bytes, do_lower_case: bool = True):
        """Read the model.

        Args:
          vocab: the path of a `spiece.model`, or what is in it.
          do_lower_case: as the model was made; ALBERT's English ones are uncased.

        Raises:
          UserError: the library is not installed, or the file is missing, damaged, or lacks one of
            ALBERT's special tokens.
        """
        where = "SentencePiece model" if isinstance(vocab, bytes) else str(vocab)
        model = vocab if isinstance(vocab, bytes) else read_file(Path(vocab))
        check(model, where)
        self._set(model, do_lower_case, where)

    @classmethod
    def of_file(cls, path: Path, contents: dict[str, Any], do_lower_case: bool) -> Self | None:
        return cls(path, do_lower_case) if path.suffix == ".model" else None

    def _set(self, model: bytes, do_lower_case: bool, where: str) -> None:
        self.model, self._lower = model, do_lower_case
        self._processor, pieces = _processor_and_pieces(model, where)
        if missing := [token for token in SPECIAL if token not in pieces]:
            raise UserError(
                f"{where}: lacks {', '.join(missing)}; ALBERT needs {', '.join(SPECIAL)}"
            )
        self._set_vocab(pieces, SPECIAL)
        self.parts: dict[int, tuple[int, ...]] = {}
        self.part_lengths: dict[int, tuple[int, ...]] = {}
        self._find_parts()

    @property
    def options(self) -> dict[str, Any]:
        return {"do_lower_case": self._lower}

    @property
    def do_lower_case(self) -> bool:
        return self._lower

    @property
    def readable(self) -> list[str]:
        special = {*SPECIAL}
        return [piece if piece in special else _readable(piece) for piece in self.vocab]

    def tokenize(self, text: str) -> list[str]:
        return [self.vocab[index] for index in self.encode(text)]

    def encode(self, text: str) -> list[int]:
        ids = self._processor.encode(normalized(text, self._lower))
        return [part for index in ids for part in self.parts.get(index, (index,))]

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """See `Tokenizer`; the blank that a piece begins with is not in its span."""
        placed = _normalized_with_places(text, self._lower)
        written = "".join(char.text for char in placed)
        # The library counts bytes.
        places = [place for place, char in enumerate(written) for _ in char.encode()]
        places.append(len(written))
        ids, spans = [], []
        for piece in self._processor.encode_as_proto(written).pieces:
            parts = self.parts.get(piece.id, (piece.id,))
            start, end = places[piece.begin], places[piece.begin]
            if piece.end > piece.begin:
                end = places[piece.end - 1] + 1
            # Cut from the end: what stands before the first part is a blank.
            lengths = self.part_lengths.get(piece.id, (0,))
            ends = [end - sum(lengths[i + 1 :]) for i in range(len(parts))]
            for part, end in zip(parts, ends, strict=True):
                while start < end and written[start] == " ":
                    start += 1
                ids.append(part)
                spans.append(_span(placed, start, end, len(text)))
                start = end
        return ids, spans

    def decode(self, ids: Iterable[int]) -> str:
        pieces = (self.vocab[index] for index in self._shown(ids))
        text = "".join(f"{BLANK}{p}" if p in (SPECIAL.mask, SPECIAL.unk) else p for p in pieces)
        return text.replace(BLANK, " ").strip()

    def write(self, folder: str | os.PathLike) -> None:
        with atomic_write(Path(folder, self.file_name), "wb") as file:
            file.write(self.model)

    def _more_content(self) -> list:
        return [self.model]

    def _find_parts(self) -> None:
        for index, piece in enumerate(self.vocab):
            if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit():
                number = self._processor.encode_as_proto(piece[:-1].replace(BLANK, "")).pieces
                names = [part.piece for part in number] + [","]
                lengths = [len(part.surface) for part in number] + [1]
                if not piece.startswith(BLANK) and names[0].startswith(BLANK):
                    names[0] = names[0][1:]
                    kept = slice(0 if names[0] else 1, None)
                    names, lengths = names[kept], lengths[kept]
                self.parts[index] = tuple(map(self._processor.piece_to_id, names))
                self.part_lengths[index] = tuple(lengths)

    def __getstate__(self):
        return {"model": self.model, "do_lower_case": self._lower}

    def __setstate__(self, state):
        self._set(**state, where="SentencePiece model")  # checked where it came from


def normalized(text: str, lower: bool) -> str:
    """Return a text as ALBERT's code gives it to SentencePiece: single blanks, decomposed, no
    accents."""
    text = " ".join(text.encode("utf-8", "replace").decode().split())
    text = "".join(map(without_accents, text))
    return text.lower() if lower else text


@functools.lru_cache(maxsize=1 << 12)
def without_accents(char: str) -> str:
    """Return a character decomposed (NFKD), without combining marks."""
    parts = unicodedata.normalize("NFKD", char)
    return "".join(part for part in parts if not unicodedata.combining(part))


def _normalized_with_places(text: str, lower: bool) -> list[Placed]:
    """Return the characters of `normalized`, and where each stands in `text`."""
    placed = []
    for place, char in enumerate(text):
        if char.isspace():
            if placed and placed[-1].text != " ":
                placed.append(Placed(" ", place, place + 1))
            continue
        char = "?" if "\ud800" <= char <= "\udfff" else char
        placed += [Placed(part, place, place + 1) for part in without_accents(char)]
    if placed and placed[-1].text == " ":
        placed.pop()
    return offsets.lower(placed) if lower else placed


def _span(placed: list[Placed], start: int, end: int, length: int) -> tuple[int, int]:
    if start < end:
        return placed[start].start, placed[end - 1].end
    place = placed[start].start if start < len(placed) else length
    return place, place


def _readable(piece: str) -> str:
    return piece[1:] or piece if piece.startswith(BLANK) else f"##{piece}"


def read_file(path: Path) -> bytes:
    """Return a model file's content; raises UserError where it is missing or too large for one."""
    return read_bytes(path, _MOST_BYTES)


@functools.lru_cache(maxsize=8)
def check(model: bytes, where: str) -> None:
    """Let the library read a model, and cut a text of every kind, in a process of its own first.

    Raises:
      UserError: it is not a SentencePiece model, or the library fails on it.
    """
    what = f"{where}: a SentencePiece model needs the library that reads it"
    check_installed("sentencepiece", what, "sentencepiece")
    with scratch() as folder:
        path = folder / "spiece.model"
        with atomic_write(path, "wb") as file:
            file.write(model)
        try:
            guarded_process.arrays(f"{__name__}:try_out", path, "sentencepiece")
        except UserError as error:
            raise UserError(str(error).replace(str(path), where)) from None


def try_out(path: str) -> dict[str, np.ndarray]:
    """Tokenise a text in the process that `check` starts; return the number of pieces."""
    processor, pieces = _processor_and_pieces(Path(path).read_bytes(), path)
    characters = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x12000)]))
    lengths = [len(processor.encode(text)) for text in (characters, "".join(pieces), "a " * 5000)]
    return {"lengths": np.array(lengths)}


def _processor_and_pieces(model: bytes, where: str):
    import sentencepiece

    try:
        processor = sentencepiece.SentencePieceProcessor()
        processor.load_from_serialized_proto(model)
        return processor, [processor.id_to_piece(i) for i in range(processor.get_piece_size())]
    except (RuntimeError, UnicodeDecodeError) as error:
        raise UserError(f"{where}: no SentencePiece model, or damaged ({error})") from None
