"""Documents from text files: one sentence a line, a blank line between documents.

This is the input format of the original's create_pretraining_data and what `data_prep.sentences`
and `data_prep.wikipedia` write. Vocabulary learning, the token store and the embedded sample all
read it here, so that a file is understood, and refused, in one way.
"""

import glob
import gzip
import io
import os
import zlib
from collections.abc import Iterable, Iterator

from official_bert.errors import UserError

GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def documents(paths: str | Iterable[str]) -> Iterator[list[str]]:
    """Yields each document of the files, in order, as its list of sentences.

    Lines are stripped; empty documents (several blank lines in a row) are skipped. A document also
    ends where its file ends. Files are read as they are needed: memory holds one document.

    Args:
      paths: files, plain or gzip (told by content, not by name); see `expand_inputs` for globs.

    Raises:
      UserError: a file is missing, is a folder, is a damaged gzip file, is not UTF-8 (with the
        line), or no file holds a single sentence.
    """
    paths = [paths] if isinstance(paths, str) else list(paths)
    if not paths:
        raise UserError("no input files were given")
    any_text = False
    for path in paths:
        document = []
        for line in text_lines(path):
            line = line.strip()
            if line:
                document.append(line)
            elif document:
                any_text = True
                yield document
                document = []
        if document:
            any_text = True
            yield document
    if not any_text:
        raise UserError(f"no text in the input: {_some(paths)} hold nothing but blank lines")


def text_lines(path: str) -> Iterator[str]:
    """Yields the lines of one UTF-8 file, plain or gzip, without their line ends.

    Only a newline ends a line (with or without a carriage return), as in the original; other
    Unicode separators stay inside it. A byte order mark at the start of the file is dropped.

    Raises:
      UserError: as `documents`.
    """
    for number, line in enumerate(_byte_lines(path), start=1):
        if number == 1 and line.startswith(BYTE_ORDER_MARK):
            line = line[len(BYTE_ORDER_MARK) :]
        try:
            yield line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            byte = line[error.start]
            raise UserError(
                f"{path} line {number}: not UTF-8 (byte 0x{byte:02x} at column {error.start + 1}); "
                f"convert the file, for example with: iconv -f LATIN1 -t UTF-8"
            ) from None


def expand_inputs(globs: str | Iterable[str]) -> list[str]:
    """The files that glob patterns name, without repetitions: patterns in order, matches sorted.

    Args:
      globs: one string (several patterns separated by commas) or a list of such strings. `**`
        matches folders at any depth. A path that exists is taken as it is, whatever characters it
        has. Remote patterns ("gs://...") go through tf.io.gfile.

    Raises:
      UserError: nothing given, a pattern that matches no file, or a folder.
    """
    globs = [globs] if isinstance(globs, str) else list(globs)
    patterns = []
    for text in globs:
        split = [text] if os.path.exists(text) else text.split(",")
        patterns.extend(part.strip() for part in split if part.strip())
    if not patterns:
        raise UserError("no input files were given")
    paths = {}  # a dict keeps the order and drops repetitions
    for pattern in patterns:
        matches = _matches(pattern)
        if not matches:
            raise UserError(f"no file matches {pattern!r} (current folder: {os.getcwd()})")
        paths.update(dict.fromkeys(matches))
    return list(paths)


def _matches(pattern: str) -> list[str]:
    if is_remote(pattern):
        import tensorflow as tf

        return sorted(tf.io.gfile.glob(pattern))
    if os.path.isdir(pattern):
        raise UserError(
            f"{pattern} is a folder; give its files, for example {os.path.join(pattern, '*')!r}"
        )
    if os.path.exists(pattern):
        return [pattern]
    return sorted(path for path in glob.glob(pattern, recursive=True) if os.path.isfile(path))


def is_remote(path: str) -> bool:
    """Whether a path belongs to a remote file system ("gs://...") and needs tf.io.gfile."""
    return "://" in path


def open_bytes(path: str, unpack: bool = True):
    """Opens a file, local or remote, as its unpacked bytes; gzip is told by the first two bytes.

    What is no gzip file, or not to be unpacked, can be sought in.

    Raises:
      UserError: the file is missing, is a folder or cannot be opened.
    """
    file = _open_raw(path)
    if unpack and file.peek(2)[:2] == GZIP_MAGIC:
        # The outer buffer makes reading by lines three times as fast.
        return io.BufferedReader(_Gzip(fileobj=file), 1 << 20)
    return file


def _open_raw(path: str):
    """The file as a buffered reader, so that its first bytes can be looked at."""
    if is_remote(path):
        import tensorflow as tf

        if not tf.io.gfile.exists(path):
            raise UserError(f"input file {path} does not exist")
        return io.BufferedReader(_RemoteFile(tf.io.gfile.GFile(path, "rb")), 1 << 20)
    try:
        return open(path, "rb")
    except FileNotFoundError:
        raise UserError(f"input file {path} does not exist") from None
    except IsADirectoryError:
        raise UserError(f"input {path} is a folder, not a file") from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None


def _byte_lines(path: str) -> Iterator[bytes]:
    with open_bytes(path) as file:
        try:
            yield from file
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise damaged_gzip(path, error) from None


def damaged_gzip(path: str, error: Exception) -> UserError:
    return UserError(f"{path} is a damaged or truncated gzip file: {error}")


class _Gzip(gzip.GzipFile):
    """A gzip file that closes the file under it."""

    def close(self):
        under = self.fileobj
        super().close()
        if under is not None:
            under.close()


class _RemoteFile(io.RawIOBase):
    """What io.BufferedReader asks of a raw file, on a tf.io.gfile.GFile."""

    def __init__(self, file):
        self._file = file

    def readable(self):
        return True

    def seekable(self):
        return True

    def seek(self, offset, whence=io.SEEK_SET):
        self._file.seek(offset, whence=whence)
        return self._file.tell()

    def tell(self):
        return self._file.tell()

    def readinto(self, buffer):
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self):
        if not self.closed:
            self._file.close()
        super().close()


def _some(paths: list[str]) -> str:
    shown = ", ".join(paths[:3])
    return shown if len(paths) <= 3 else f"{shown} and {len(paths) - 3} more files"
