"""Vocabulary files: one WordPiece a line, the line number (from 0) is the id."""

import os
from collections.abc import Iterable
from pathlib import Path

from official_bert.errors import UserError
from official_bert.files import atomic_write

PAD, UNK, CLS, SEP, MASK = SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


MOST_PIECES = 1 << 21  # records have no room for larger ids
_MOST_BYTES = 64 * MOST_PIECES


def load_vocab(path: str | os.PathLike) -> list[str]:
    """Reads a `vocab.txt` as the original does: lines end at "\\n", blanks around a piece go.

    Returns:
      list[str]: the pieces; the position is the id.

    Raises:
      UserError: the file is missing, is not UTF-8 text, holds a piece twice or lacks one of the
        special tokens.
    """
    path = Path(path)
    try:
        size = path.stat().st_size
        if size > _MOST_BYTES:
            raise UserError(f"{path}: {size:,} bytes; a vocabulary has at most {_MOST_BYTES:,}")
        # Bytes, not lines of a text file: U+2028 and U+0085 are pieces of real vocabularies.
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise UserError(f"{path}: no such vocabulary file") from None
    except IsADirectoryError:
        raise UserError(f"{path} is a folder; name the vocabulary file in it") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UserError(
            f"{path} line {line}: not UTF-8 text ({error.reason}); a vocabulary is plain text "
            "with one WordPiece a line"
        ) from None
    if text.count("\n") > MOST_PIECES:  # before anything is made of them
        raise UserError(f"{path}: more than {MOST_PIECES:,} lines; is this a vocabulary?")
    lines = text.removeprefix("\ufeff").split("\n")
    if lines[-1] == "":  # what follows the last line end is no line
        lines.pop()
    return check_vocab([line.strip() for line in lines], where=str(path))


def write_vocab(path: str | os.PathLike, vocab: Iterable[str]) -> None:
    """Writes the pieces one a line. The file appears whole or not at all.

    Raises:
      UserError: as `load_vocab`, or a piece could not be read back as it is.
    """
    vocab = check_vocab(list(vocab), where="vocabulary to write")
    for index, piece in enumerate(vocab):
        if piece != piece.strip() or "\n" in piece:
            raise UserError(f"vocabulary to write: piece {index} {piece!r} holds blanks")
    with atomic_write(path) as file:
        file.writelines(f"{piece}\n" for piece in vocab)


def case_mismatch(vocab: list[str], do_lower_case: bool) -> str:
    """What is said where text would be lower-cased for a cased vocabulary; "" where it fits.

    Such pieces are never found: words like them become [UNK] or fall apart.
    """
    if not do_lower_case:
        return ""
    capital = [piece for piece in vocab if piece[:1] != "[" and piece != piece.lower()]
    if len(capital) <= 0.01 * len(vocab):  # a released uncased one may have <S> or a symbol
        return ""
    return (
        f"{len(capital)} of {len(vocab)} WordPieces have capital letters ({', '.join(capital[:3])},"
        " ...), but text will be lower-cased: pass do_lower_case=false for a cased vocabulary"
    )


def check_vocab(vocab: list[str], where: str = "vocabulary") -> list[str]:
    """Returns `vocab` if it can serve BERT.

    Raises:
      UserError: it is empty, lacks a special token or holds a piece twice.
    """
    if not vocab:
        raise UserError(f"{where}: empty")
    line_of = {}
    for line, piece in enumerate(vocab, start=1):
        if piece in line_of:
            raise UserError(f"{where} line {line}: {piece!r} stands in line {line_of[piece]} too")
        line_of[piece] = line
    missing = [token for token in SPECIAL_TOKENS if token not in line_of]
    if missing:
        raise UserError(
            f"{where}: lacks {', '.join(missing)}; BERT needs {', '.join(SPECIAL_TOKENS)}"
        )
    return vocab
