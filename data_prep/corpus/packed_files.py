"""The content of a text file, however it is packed or encoded.

The first bytes tell gzip, bzip2, xz, Zstandard and UTF-16 (or UTF-32), whatever the name.
"""

import bz2
import codecs
import io
import lzma
import re
import zlib

from data_prep.jobs import storage
from official_bert.common.errors import UserError, check_installed

_PACKED, _UNPACKED = 1 << 17, 1 << 20  # bytes that are read and returned at a time
_FIRST_BYTES = 1 << 10  # of a frame
_MOST_FRAMES, _LEAST_OF_FRAMES = 10_000, 16  # most frames of fewer bytes than this on average
_ANY, _NOT_ZERO = re.compile(rb"(?s)."), re.compile(rb"[^\0]")
_XZ_MEMORY = 1 << 28  # bytes; `xz -9` needs 65 MB
# Text is packed to a tenth, nothing worth reading to a hundredth: of such files little is read.
_MOST_TIMES, _FREE = 200, 1 << 24
_MOST_LAYERS = 5  # of packing and encoding, one in the other, and the text
_ENDING = re.compile(r"\.(gz|bz2|xz|zst)\Z", re.IGNORECASE)


class DamagedFile(UserError):
    """A packed file cannot be unpacked to its end."""


def open_bytes(path: str) -> io.BufferedReader:
    """Open a file, local or remote, and return its content: unpacked, in UTF-8 where it was UTF-16.

    Only a file that `is_plain` can seek.

    Raises:
      UserError: the file is missing, is a folder, cannot be opened, or is of a kind that is not
        read here.
      DamagedFile: when it is read.
    """
    content = storage.reading(path)
    try:
        for _ in range(_MOST_LAYERS):
            if (kind := _kind(content, path)) is None:
                return content
            # The outer buffer makes reading by lines three times as fast.
            content = io.BufferedReader(_Content(path, kind, content), 1 << 20)
        raise UserError(f"{path} is packed more than {_MOST_LAYERS - 1} times; unpack it before")
    except UserError:
        content.close()
        raise


def unpacked_name(path: str) -> str:
    """Return a file's name without the ending of its packing; the content may be otherwise."""
    return _ENDING.sub("", path)


def plain_stream(stream, name: str = "standard input") -> io.BufferedReader:
    """Return a stream whose bytes are its text, from its first one on.

    Raises:
      UserError: it is packed, UTF-16 or of a kind that is not read here.
    """
    stream = stream if hasattr(stream, "peek") else io.BufferedReader(stream)
    if kind := _kind(stream, name):
        raise UserError(
            f"{name} is {kind[0]}, which is read from files alone; give the file's name"
        )
    return stream


def is_plain(path: str) -> bool:
    """Return whether a file's bytes are its text: neither packed nor UTF-16."""
    with storage.reading(path) as file:
        return _kind(file, path) is None


def _kind(file: io.BufferedReader, path: str):
    """Return (name, function from a file to its content) by the first bytes; None for text."""
    start = file.peek(24)[:24]
    for magic, name, unpack in _KINDS:
        if start.startswith(magic) and (name != "bzip2" or start[4:10] in _BZIP2_BLOCKS):
            return name, unpack
    for starts, what in _REFUSED:
        if start.startswith(starts):
            raise UserError(f"{path} is {what}")
    if len(start) >= 4 and not any(start[1:4:2]) and all(start[0:4:2]):
        return "UTF-16", lambda file: _Utf8Of(file, "utf-16-le")
    if len(start) >= 4 and not any(start[0:4:2]) and all(start[1:4:2]):
        return "UTF-16", lambda file: _Utf8Of(file, "utf-16-be")
    return None


class _Content(io.RawIOBase):
    """The content of a file that is not plain; closes that file and says when it is damaged."""

    def __init__(self, path: str, kind, file):
        self._path, self._file = path, file
        self._name, unpack = kind
        self._content = unpack(file)
        self._given = 0  # bytes

    def readable(self):
        return True

    def readinto(self, buffer):
        try:
            count = self._content.readinto(buffer)
        except UserError:
            raise
        except OverflowError as error:
            raise UserError(
                f"{self._path}: {error} of {self._name}; if that is right, unpack it before"
            ) from None
        except (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError) as error:
            raise DamagedFile(
                f"{self._path} is a damaged or truncated {self._name} file: {error}"
            ) from None
        self._given += count
        if self._given > _FREE and self._given > _MOST_TIMES * self._file.tell():
            raise UserError(
                f"{self._path}: unpacked, it is more than {_MOST_TIMES} times as large; if that is "
                "right, unpack it before"
            )
        return count

    def tell(self):
        return self._given

    def close(self):
        if not self.closed:
            self._file.close()
        super().close()


class _Pieces(io.RawIOBase):
    """A stream of the pieces that `_piece` returns: bytes, b"" for none yet, None at the end."""

    _ready = memoryview(b"")

    def readable(self):
        return True

    def readinto(self, buffer):
        while not self._ready:
            piece = self._piece()
            if piece is None:
                return 0
            self._ready = memoryview(piece)
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size


class _Utf8Of(_Pieces):
    """The content of a file in another encoding, as UTF-8."""

    def __init__(self, file, encoding):
        self._file, self._decoder = file, codecs.getincrementaldecoder(encoding)()

    def _piece(self):
        data = self._file.read(1 << 17)
        text = self._decoder.decode(data, final=not data)
        return text.encode("utf-8") if data or text else None


class _Frames(_Pieces):
    """The content of a packed file of one or more frames, a bounded piece at a time.

    A frame has `decompress(bytes, most)`, `needs_input`, `eof` and `unused_data`, like those of
    Python's libraries. Zeros may follow the last one. A frame gets few bytes first, since unused
    ones are copied, and a small file may have many frames.
    """

    def __init__(self, file, new_frame, most_at_once=_PACKED):
        self._file, self._new_frame, self._most_at_once = file, new_frame, most_at_once
        self._frame, self._data, self._at, self._size = None, b"", 0, 0
        self._frames, self._given = 0, 0

    def _piece(self):
        frame = self._frame
        if frame is None or frame.eof:
            if not self._has_more(_NOT_ZERO if frame else _ANY):
                return None
            self._frame = frame = self._new_frame()
            self._size, self._frames = _FIRST_BYTES, self._frames + 1
            if self._frames > _MOST_FRAMES + self._given // _LEAST_OF_FRAMES:
                raise OverflowError(f"{self._frames:,} frames hold {self._given:,} bytes")
        elif frame.needs_input and not self._has_more(_ANY):
            raise EOFError("it ends within a frame")
        end = self._at + self._size if frame.needs_input else self._at
        given, self._at = self._data[self._at : end], min(end, len(self._data))
        self._size = min(2 * self._size, self._most_at_once)
        piece = frame.decompress(given, _UNPACKED)
        self._given += len(piece)
        self._at -= len(frame.unused_data) if frame.eof else 0
        return piece

    def _has_more(self, kind: re.Pattern) -> bool:
        """Return whether bytes of that kind follow; skip others."""
        while (found := kind.search(self._data, self._at)) is None:
            self._data, self._at = self._file.read(_PACKED), 0
            if not self._data:
                return False
        self._at = found.start()
        return True


class _Frame:
    """One frame; its library tells where it ends and what follows."""

    @property
    def eof(self):
        return self._frame.eof

    @property
    def unused_data(self):
        return self._frame.unused_data


class _GzipFrame(_Frame):
    """One member of a gzip file; its checksum and length are checked."""

    def __init__(self):
        self._frame = zlib.decompressobj(16 + zlib.MAX_WBITS)

    @property
    def needs_input(self):
        return not self._frame.unconsumed_tail

    def decompress(self, data, most):
        return self._frame.decompress(self._frame.unconsumed_tail + data, most)


class _ZstandardFrame(_Frame):
    """One frame; the library itself does not bound the size of an unpacked piece."""

    needs_input = True

    def __init__(self):
        check_installed("zstandard", "a Zstandard file; unpack it, or", "zstd")
        import zstandard

        self._error = zstandard.ZstdError
        self._frame = zstandard.ZstdDecompressor().decompressobj()

    def decompress(self, data, most):
        del most
        try:
            return self._frame.decompress(data)
        except self._error as error:
            raise ValueError(error) from None


def _new_xz():
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, _XZ_MEMORY)


# First bytes of files, their names, and their readers. UTF-32 begins as UTF-16 does.
_KINDS = (
    (b"\x1f\x8b", "gzip", lambda file: _Frames(file, _GzipFrame)),
    (b"BZh", "bzip2", lambda file: _Frames(file, bz2.BZ2Decompressor)),
    (b"\xfd7zXZ\x00", "xz", lambda file: _Frames(file, _new_xz)),
    (b"\x28\xb5\x2f\xfd", "Zstandard", lambda file: _Frames(file, _ZstandardFrame, _FIRST_BYTES)),
    (codecs.BOM_UTF32_LE, "UTF-32", lambda file: _Utf8Of(file, "utf-32")),
    (codecs.BOM_UTF16_LE, "UTF-16", lambda file: _Utf8Of(file, "utf-16")),
    (codecs.BOM_UTF16_BE, "UTF-16", lambda file: _Utf8Of(file, "utf-16")),
)
_REFUSED = (
    (
        (b"PK\x03\x04", b"7z\xbc\xaf\x27\x1c", b"Rar!"),
        "an archive of files; unpack it first (a spreadsheet: save it as CSV)",
    ),
    (
        (b"ARROW1", b"\xff\xff\xff\xff"),
        "an Arrow file; write it as Parquet (to_parquet of Hugging Face's datasets)",
    ),
    ((bytes(24),), "full of zeros at its start, as a download that did not end; get it again"),
    ((b"PAR1",), "a Parquet file, and text is expected"),
    ((b"version https://git-lfs",), "a pointer of Git LFS; fetch the file itself: git lfs pull"),
    ((b"%PDF-",), "a PDF; make text of it first: pdftotext"),
)
# "BZh" and a digit are followed by a block, or by the end of an empty file.
_BZIP2_BLOCKS = (b"1AY&SY", b"\x17rE8P\x90")
