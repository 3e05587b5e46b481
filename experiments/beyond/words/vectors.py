"""Word vectors from the text formats of word2vec and GloVe (Mikolov et al. 2013, Pennington et al.
2014): a line a word, the word and its numbers with blanks between.

word2vec's files begin with a line of two numbers, how many words and how many numbers a word;
GloVe's do not. gensim's `save_word2vec_format(binary=False)` writes the former.
"""

import codecs
import functools
import gzip
import os
import zlib
from pathlib import Path

import numpy as np

from official_bert.common.errors import UserError
from official_bert.common.outside_files import open_file

LEARNT_WIDTH = 100  # numbers of a word that `experiments.beyond.words.word2vec` learns
_LONGEST_LINE = 1 << 20  # bytes


def read_vectors(path: str | os.PathLike) -> tuple[list[str], np.ndarray]:
    """Return the words of a file, each once, and their vectors, float32 [words, D].

    Args:
      path: text in UTF-8, of either format; packed where its name ends in ".gz".

    Raises:
      UserError: the file is missing, or a line is not a word with D numbers; the message names it.
    """
    return _read_file(path, _read)


def vectors_width(path: str | os.PathLike) -> int:
    """Return the width of the vectors, from the file's first line; raise UserError as above."""
    first = _read_file(path, lambda lines, path: next(lines, b"")).decode(errors="replace")
    first = first.rstrip("\r\n ")
    width = (_header(first, path) or [0, first.count(" ")])[1]
    if not width:
        raise UserError(f"{path} line 1: expected a word and some numbers")
    return width


def _read_file(path, read):
    path = Path(path)
    try:
        with open_file(path, "give a file of word vectors") as file:
            content = gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file
            if content.peek(3)[:3] == codecs.BOM_UTF8:
                content.read(3)
            return read(iter(functools.partial(content.readline, _LONGEST_LINE), b""), path)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path}: cannot be read ({error})") from None


def _read(lines, path: Path) -> tuple[list[str], np.ndarray]:
    vectors: dict[str, np.ndarray] = {}
    width, declared = 0, None
    for number, line in enumerate(lines, 1):
        where = f"{path} line {number}"
        try:
            text = line.decode().rstrip("\r\n ")
        except UnicodeDecodeError as error:
            raise UserError(
                f"{where}: not UTF-8 text ({error.reason}); word2vec's binary format is not read, "
                "gensim writes the other: save_word2vec_format(PATH, binary=False)"
            ) from None
        if number == 1 and (header := _header(text, path)):
            declared, width = header
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


def _header(text: str, path: Path) -> list[int]:
    """Return [words, width] of a first line that gives them; [] for other lines."""
    parts = text.split(" ")
    if len(parts) != 2 or not all(map(str.isdecimal, parts)):
        return []
    if max(map(len, parts)) > 9:
        raise UserError(f"{path} line 1: so many words or numbers are in no file")
    return list(map(int, parts))
