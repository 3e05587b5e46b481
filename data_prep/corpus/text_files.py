"""Text files of any place and packing: their lines, and blocks of lines.

Corpora, vocabularies and tasks all read text here, so they accept and refuse files in one way.

A file may be read as blocks of whole lines, and cut into stretches that workers share. A stretch
(start, stop) stands for the documents behind the blank lines that begin in it; the first stretch
has the file's first document too. So the stretches of a file hold every document once, whole, and
each is found without reading the others. Packed files cannot be cut.
"""

import codecs
import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from data_prep.corpus.packed_files import is_plain, open_bytes
from official_bert.common.errors import UserError

BYTE_ORDER_MARK = codecs.BOM_UTF8
_MARKS = re.compile(b"\\A(?:%b)+" % BYTE_ORDER_MARK)  # joined files may begin with several
_LONGEST_LINE = 1 << 29  # a few bytes of a packed or sparse file could ask for all memory
_BLOCK_BYTES = 1 << 17  # fits a processor's cache, together with the tokeniser's arrays
_MOST_SEEN = 1 << 24  # bytes that are looked at to advise an encoding
_MARKS_IN_WORDS = re.compile(rb"[a-z][\x81-\x84\x86-\x90\x95\x98\x9a-\x9f]")
_NOT_WINDOWS = set("\udc81\udc8d\udc8f\udc90\udc9d")  # no letters of CP1252
INVALID_UTF8 = ("error", "replace", "ignore")  # what to do with bytes that are not UTF-8


def text_lines(path: str, invalid_utf8: str = "", counts: Counter | None = None) -> Iterator[str]:
    """Yield the lines of one text file, plain or compressed, without their line ends.

    Only a newline ends a line (with or without a carriage return), as in the original; other
    Unicode separators stay inside it. A byte order mark at the start of the file is dropped.

    Args:
      invalid_utf8, counts: see `decode_lines`.

    Raises:
      UserError: as `open_bytes`, the file is damaged, or is not UTF-8 (with the line).
    """
    with open_bytes(path) as file:
        for _, line in decode_lines(file, path, invalid_utf8, counts):
            yield line


def decode_lines(
    lines: Iterable[bytes], name: str, invalid_utf8: str = "", counts: Counter | None = None
) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, line) of an open binary file or stream.

    Args:
      lines: the file, or its lines.
      name: the file's name in errors.
      invalid_utf8: of INVALID_UTF8: bytes that are not UTF-8 are an error, become U+FFFD, or go. ""
        is for commands without this option: an error that does not name it.
      counts: gets the number of lines with such bytes, under "invalid_utf8".

    Raises:
      UserError: a line is not UTF-8, or too long for the memory.
    """
    if hasattr(lines, "readline"):
        lines = iter(functools.partial(_line, lines, name), b"")
    lines, in_utf8 = iter(lines), False
    for number, line in enumerate(lines, 1):
        if number == 1:
            line = _MARKS.sub(b"", line)
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            if invalid_utf8 in ("", "error"):
                option = ", or where such bytes are few pass --invalid_utf8=replace"
                raise UserError(
                    f"{name} line {number}: byte {line[error.start]:#04x} at column "
                    f"{error.start + 1} is not UTF-8; {_way_to_utf8(line, lines, in_utf8)}"
                    f"{option if invalid_utf8 else ''}"
                ) from None
            text = line.decode("utf-8", invalid_utf8)
            if counts is not None:
                counts["invalid_utf8"] += 1
        in_utf8 = in_utf8 or not text.isascii()
        yield number, text.rstrip("\r\n")


def _way_to_utf8(line: bytes, more: Iterator[bytes], in_utf8: bool) -> str:
    """Return advice from all bytes, from the first line on that is not UTF-8.

    `in_utf8` says whether a line before it has letters in UTF-8.
    """
    seen, size = [line], 0
    while size < _MOST_SEEN and (line := next(more, b"")):
        seen.append(line)
        size += len(line)
    content = b"".join(seen)[-_MOST_SEEN:]
    text = content.decode("utf-8", "surrogateescape")
    strange = re.findall("[\udc80-\udcff]", text)
    if in_utf8 or len(re.findall("[^\0-\x7f\udc80-\udcff]", text)) > len(strange):
        return "other letters of the file are; mend the line"
    if b"\0" in content:
        return "it has zeros between its letters, as UTF-16 has: iconv -f UTF-16LE (or BE) -t UTF-8"
    # In western Europe few letters have marks; in other alphabets most are not ASCII. DOS and old
    # Macs have most of these letters where Windows has marks.
    few = len(re.findall(rb"[\x80-\xff]", content)) <= len(re.findall(rb"[A-Za-z]", content))
    marks = len(_MARKS_IN_WORDS.findall(content)) > len(re.findall(rb"[\xc0-\xff]", content))
    western = few and not marks and _NOT_WINDOWS.isdisjoint(strange)
    known = "for example with: iconv -f CP1252 -t UTF-8"
    other = "from the encoding that it was written in: iconv -f ENCODING -t UTF-8"
    return f"convert the file, {known if western else other}"


def _line(file, name: str) -> bytes:
    line = file.readline(_LONGEST_LINE + 1)
    if len(line) > _LONGEST_LINE:
        raise UserError(f"{name}: it has a line of more than {_LONGEST_LINE:,} bytes")
    return line


def stretches(path: str, size: int, wanted: int) -> list[tuple[int, int | None]]:
    """Return stretches of about `wanted` bytes of a file of `size` bytes; None stands for its
    end."""
    number = size // wanted
    if number < 2 or not is_plain(path):
        return [(0, None)]
    edges = [size * index // number for index in range(number)]
    return list(zip(edges, [*edges[1:], None], strict=True))


def line_blocks(path: str, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
    """Yield the lines of a stretch's documents, some thousand at once, each with its newline.

    The last line of a file gets one if it has none; a byte order mark is dropped.

    Raises:
      UserError: the file is missing, is a folder or is damaged.
    """
    with open_bytes(path) as file:
        at, end = 0, None
        if start:
            at = _next_document(file, path, start, stop)
            if at is None:
                return
        if stop is not None:
            end = _next_document(file, path, stop)
            file.seek(at)
        while end is None or at < end:
            data = file.read(_BLOCK_BYTES if end is None else min(_BLOCK_BYTES, end - at))
            if not data:
                return
            if data[-1:] != b"\n":
                data += _line(file, path)
            at += len(data)
            if at == len(data):
                data = data.removeprefix(BYTE_ORDER_MARK)
            yield data if data[-1:] == b"\n" else data + b"\n"


def _next_document(file, path, place, limit=None):
    """Return the end of the first blank line from `place` on, or the end of the file.

    None where no blank line begins before `limit`: the documents there belong to later stretches.
    """
    file.seek(place - 1)
    _line(file, path)  # the rest of the line before
    while limit is None or file.tell() < limit:
        if not _line(file, path).strip():  # blank, or the end of the file
            return file.tell()
    return None
