"""Word vectors from the text formats of word2vec and GloVe (Mikolov et al. 2013, Pennington et al.
2014): a line a word, the word and its numbers with blanks between.

word2vec's files begin with a line of two numbers, how many words and how many numbers a word;
GloVe's do not. gensim's `save_word2vec_format(binary=False)` writes the former.
"""

import gzip
import os
from pathlib import Path

import numpy as np

from official_bert.common.errors import UserError

LEARNT_WIDTH = 100  # numbers of a word that `data_prep.word2vec` learns


def read_vectors(path: str | os.PathLike) -> tuple[list[str], np.ndarray]:
    """The words of a file, each once, and their vectors, float32 [words, D].

    Args:
      path: text in UTF-8, of either format; packed where its name ends in ".gz".

    Raises:
      UserError: the file is missing, or a line is no word with D numbers; the message names it.
    """
    return _read_file(path, _read)


def vectors_width(path: str | os.PathLike) -> int:
    """How many numbers a word has, by the file's first line; raises UserError as above."""
    first = _read_file(path, lambda file, path: file.readline()).decode(errors="replace")
    parts = first.rstrip("\r\n ").split(" ")
    return int(parts[1]) if _is_header(" ".join(parts)) else len(parts) - 1


def _read_file(path, read):
    path = Path(path)
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
            return read(file, path)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file of word vectors") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error})") from None


def _read(file, path: Path) -> tuple[list[str], np.ndarray]:
    vectors: dict[str, np.ndarray] = {}
    width, declared = 0, None
    for number, line in enumerate(file, 1):
        where = f"{path} line {number}"
        try:
            text = line.decode().rstrip("\r\n ")
        except UnicodeDecodeError as error:
            raise UserError(
                f"{where}: not UTF-8 text ({error.reason}); word2vec's binary format is not read, "
                "gensim writes the other: save_word2vec_format(PATH, binary=False)"
            ) from None
        if number == 1 and _is_header(text):
            declared, width = map(int, text.split(" "))
            continue
        # Some words of GloVe's files have blanks inside.
        parts = text.rsplit(" ", width) if width else text.split(" ")
        width = width or len(parts) - 1
        try:
            vector = np.array(parts[1:], np.float32)
        except ValueError as error:
            raise UserError(f"{where}: {error}") from None
        if len(vector) != width or not width or not np.isfinite(vector).all():
            raise UserError(f"{where}: expected a word and {width or 'some'} numbers")
        vectors.setdefault(parts[0], vector)
    if not vectors:
        raise UserError(f"{path}: no word vectors in it")
    if declared is not None and number - 1 != declared:
        raise UserError(
            f"{path}: {number - 1} words, but its first line says {declared}; is it whole?"
        )
    return list(vectors), np.stack(list(vectors.values()))


def _is_header(text: str) -> bool:
    parts = text.split(" ")
    return len(parts) == 2 and all(part.isdecimal() for part in parts)
