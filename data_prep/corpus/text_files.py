"""Text files, wherever they lie and however they are packed: their bytes and their lines.

Corpora, vocabularies and tasks all read text here, so that a file is understood, and refused, in
one way.
"""

import bz2
import gzip
import io
import zlib
from collections.abc import Iterable, Iterator

from data_prep.jobs import storage
from official_bert.errors import UserError

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class DamagedFile(UserError):
    """A packed file cannot be unpacked to its end."""


def text_lines(path: str) -> Iterator[str]:
    """Yields the lines of one UTF-8 file, plain or packed, without their line ends.

    Only a newline ends a line (with or without a carriage return), as in the original; other
    Unicode separators stay inside it. A byte order mark at the start of the file is dropped.

    Raises:
      UserError: as `open_bytes`, the file is damaged, or is not UTF-8 (with the line).
    """
    with open_bytes(path) as file:
        for _, line in decode_lines(file, path):
            yield line


def decode_lines(lines: Iterable[bytes], name: str) -> Iterator[tuple[int, str]]:
    """(line number from 1, line) of an open binary file or stream; `name` is what errors call it.

    Raises:
      UserError: a line is not UTF-8.
    """
    for number, line in enumerate(lines, 1):
        if number == 1:
            line = line.removeprefix(BYTE_ORDER_MARK)
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UserError(
                f"{name} line {number}: byte {line[error.start]:#04x} at column {error.start + 1} "
                f"is not UTF-8; convert the file, for example with: iconv -f LATIN1 -t UTF-8"
            ) from None
        yield number, text.rstrip("\r\n")


def open_bytes(path: str) -> io.BufferedReader:
    """Opens a file, local or remote, as its unpacked bytes; gzip and bz2 are told by content.

    A file that `is_packed` cannot be sought in.

    Raises:
      UserError: the file is missing, is a folder or cannot be opened.
      DamagedFile: when it is read.
    """
    file = storage.reading(path)
    kind = _packed_kind(file)
    if kind is None:
        return file
    # The outer buffer makes reading by lines three times as fast.
    return io.BufferedReader(_Unpacked(path, kind, file), 1 << 20)


def is_packed(path: str) -> bool:
    """Whether a file is a gzip or bz2 file."""
    with storage.reading(path) as file:
        return _packed_kind(file) is not None


# How the files begin, and who reads them.
_KINDS = {
    b"\x1f\x8b": ("gzip", lambda file: gzip.GzipFile(fileobj=file)),
    b"BZh": ("bz2", bz2.BZ2File),  # reads all streams of a multistream file
}


def _packed_kind(file: io.BufferedReader):
    start = file.peek(8)
    return next((kind for magic, kind in _KINDS.items() if start.startswith(magic)), None)


class _Unpacked(io.RawIOBase):
    """The content of a packed file; closes the file under it and says when it is damaged."""

    def __init__(self, path: str, kind, file):
        self._path, self._file = path, file
        self._name, unpack = kind
        self._content = unpack(file)

    def readable(self):
        return True

    def readinto(self, buffer):
        try:
            return self._content.readinto(buffer)
        except (EOFError, OSError, ValueError, zlib.error) as error:
            raise DamagedFile(
                f"{self._path} is a damaged or truncated {self._name} file: {error}"
            ) from None

    def close(self):
        if not self.closed:
            self._content.close()
            self._file.close()
        super().close()
