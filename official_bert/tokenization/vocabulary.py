"""Vocabulary files: one WordPiece a line; the line number, from 0, is the id."""

import os
import warnings
from collections.abc import Iterable
from pathlib import Path

from official_bert.common.errors import UserError
from official_bert.common.files import atomic_write
from official_bert.common.outside_files import read_bytes
from official_bert.tokenization.base import SpecialTokens

PAD, UNK, CLS, SEP, MASK = SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


MOST_PIECES = 1 << 21  # records have no room for larger ids
_MOST_BYTES = 64 * MOST_PIECES
_CAPITAL_SHARE = 0.1  # of the pieces with letters; more is a cased vocabulary


def load_vocab(path: str | os.PathLike, check: bool = True) -> list[str]:
    """Read a `vocab.txt` as the original does: lines end at "\\n", blanks around a piece go.

    Every line counts, blank and repeated ones too. Where a piece is on several lines, its id is the
    number of the last.

    Args:
      check: whether BERT's special tokens must be among them.

    Returns:
      list[str]: the pieces; the position is the id.

    Raises:
      UserError: the file is missing, is not UTF-8 text, or lacks one of the special tokens that
        are always needed.
    """
    path = Path(path)
    try:
        # Bytes, not lines of a text file: U+2028 and U+0085 are pieces of real vocabularies.
        text = read_bytes(path, _MOST_BYTES, "give a vocabulary file").decode("utf-8")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UserError(
            f"{path} line {line}: not UTF-8 text ({error.reason}); a vocabulary is plain text "
            "with one WordPiece a line"
        ) from None
    if text.count("\n") > MOST_PIECES:  # before the lines are split
        raise UserError(f"{path}: more than {MOST_PIECES:,} lines; is this a vocabulary?")
    lines = text.removeprefix("\ufeff").split("\n")
    if lines[-1] == "":  # after the last line end there is no line
        lines.pop()
    pieces = [line.strip() for line in lines]
    return check_vocab(pieces, where=str(path)) if check else pieces


def write_vocab(path: str | os.PathLike, vocab: Iterable[str]) -> None:
    """Write the pieces, one a line; the file appears whole or not at all.

    Raises:
      UserError: as `load_vocab`, or a piece could not be read back as it is.
    """
    vocab = check_vocab(list(vocab), where="vocabulary to write")
    for index, piece in enumerate(vocab):
        if piece != piece.strip() or "\n" in piece:
            raise UserError(f"vocabulary to write: piece {index} {piece!r} holds blanks")
    with atomic_write(path) as file:
        file.writelines(f"{piece}\n" for piece in vocab)


def is_cased(vocab: Iterable[str]) -> bool:
    """Return whether a vocabulary was made of text that kept its case.

    In the released cased vocabularies a third of the pieces with letters have capital letters, in
    the uncased ones none. Words that users put in place of [unused] lines make up to 4%.
    """
    cased, capital = _letters(vocab)
    return len(capital) > _CAPITAL_SHARE * cased


def lower_case_of(vocab: Iterable[str], where: str) -> bool:
    """Return whether text is to be lower-cased, guessed from the pieces; a warning says so.

    This is for vocabularies of which no file says it.
    """
    lower = not is_cased(vocab)
    looks, does = ("uncased", "is") if lower else ("cased", "is not")
    warnings.warn(
        f"{where}: no file says whether text is lower-cased; the pieces look {looks}, so it {does} "
        f"(do_lower_case={str(not lower).lower()} for the other)",
        stacklevel=4,
    )
    return lower


def case_mismatch(vocab: list[str], do_lower_case: bool) -> str:
    """Return a warning where text would be lower-cased for a cased vocabulary; "" where it fits.

    Pieces with capital letters would never be found: their words become [UNK] or fall apart.
    """
    cased, capital = _letters(vocab)
    if not do_lower_case or len(capital) <= _CAPITAL_SHARE * cased:
        return ""
    return (
        f"{len(capital)} of {len(vocab)} WordPieces have capital letters ({', '.join(capital[:3])},"
        " ...), but text will be lower-cased: pass do_lower_case=false for a cased vocabulary"
    )


def _letters(vocab: Iterable[str]) -> tuple[int, list[str]]:
    """Return the number of pieces with letters that have case, and the pieces with capital ones."""
    # Chinese BERT's vocabulary has <S> and <T> beside the usual special pieces in brackets.
    words = [piece for piece in vocab if piece[:1] + piece[-1:] not in ("[]", "<>")]
    capital = [piece for piece in words if piece != piece.lower()]
    return sum(piece.lower() != piece.upper() for piece in words), capital


def check_vocab(vocab: list[str], where: str = "vocabulary") -> list[str]:
    """Return `vocab` if it can serve BERT; it may lack [MASK], which only pre-training needs.

    Raises:
      UserError: it is empty or lacks a special token.
    """
    if not vocab:
        raise UserError(f"{where}: empty")
    if odd := [piece for piece in vocab if not isinstance(piece, str)]:
        raise UserError(f"{where}: {odd[0]!r:.80} is not a text")
    needed = SPECIAL_TOKENS[:-1]
    if missing := [token for token in needed if token not in set(vocab)]:
        raise UserError(
            f"{where}: lacks {', '.join(missing)}; BERT needs {', '.join(needed)}. Tokens of other "
            "names are read from a folder whose tokenizer_config.json says which is which"
        )
    return vocab


def special_tokens(vocab: Iterable[str]) -> SpecialTokens:
    """Return BERT's special tokens, without [MASK] where the vocabulary lacks it."""
    return SpecialTokens(*SPECIAL_TOKENS)._replace(mask=MASK if MASK in set(vocab) else None)
