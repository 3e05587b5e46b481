"""MediaWiki dumps: their pages, and stretches that several processes read side by side.

A page's XML is between <page> and </page>, which no text can hold ("<" is escaped there). So a
stretch can be read alone: its pages are those that begin in it. Plain files are cut anywhere,
multistream .bz2 files where a stream begins, which its first bytes tell (the index beside them is
not needed). Other packed files are one stretch.
"""

import bz2
import html
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple
from xml.etree import ElementTree

from data_prep.corpus.mediawiki.nodes import Site
from data_prep.corpus.packed_files import DamagedFile, is_plain, open_bytes
from data_prep.jobs import storage
from official_bert.common.errors import UserError

_STREAM = re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)")  # the beginning of a bzip2 stream
_BZ2_STRETCH, _PLAIN_STRETCH = 1 << 20, 1 << 22  # bytes: some hundred pages
_SEARCHED = 1 << 23  # a second stream is looked for in these first bytes
_PIECE = 1 << 17
_LONGEST_PAGE = 1 << 26  # bytes of XML; MediaWiki takes 2 MB of text
_BEGIN, _END = b"<page>", b"</page>"
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


class Page(NamedTuple):
    """One <page> of a dump; `text` is its first revision's wikitext."""

    identifier: int
    revision: int
    title: str
    namespace: int
    redirect: bool
    model: str
    text: str


def read_site(dump: str) -> Site:
    """Read the wiki's description of itself, before its first page.

    Raises:
      UserError: the file is missing, is damaged at its start, or is not a MediaWiki dump.
    """
    parser, root, names = ElementTree.XMLPullParser(["start", "end"]), None, {}
    try:
        with open_bytes(dump) as file:
            while data := file.read(_PIECE):
                parser.feed(data)
                for event, element in parser.read_events():
                    tag = element.tag.rpartition("}")[2]
                    if root is None and tag != "mediawiki":
                        raise UserError(f"{dump}: no MediaWiki dump (its root is <{tag}>)")
                    root = element if root is None else root
                    if event == "end" and tag == "namespace":
                        names[element.get("key")] = element.text or ""
                    if tag == "page" or (event == "end" and tag in ("siteinfo", "mediawiki")):
                        return Site.of(root.get(_LANGUAGE, ""), names)
        if root is None:
            raise DamagedFile("it is empty")
        return Site.of(root.get(_LANGUAGE, ""), names)
    except (ElementTree.ParseError, DamagedFile) as error:
        raise UserError(f"{dump} is damaged or truncated before its first page: {error}") from None


def stretches(dump: str, first: int = 0) -> list[tuple[int, int | None]]:
    """Return (start, stop) in bytes of all stretches from `first` on; None stands for the end."""
    size = _stretch_bytes(dump)
    edges = [*range(first, storage.size(dump), size)] if size else [0]
    return list(zip(edges, [*edges[1:], None], strict=True)) or [(first, None)]


def _stretch_bytes(dump):
    if is_plain(dump):
        return _PLAIN_STRETCH
    start = storage.read_bytes(dump, 0, _SEARCHED)
    return _BZ2_STRETCH if len(list(itertools.islice(_STREAM.finditer(start), 2))) == 2 else None


class Stretch:
    """The pages that begin in a stretch of a dump, as XML.

    Attributes:
      first, end: once the pages have been read, the begin of its first bzip2 stream and the end of
        its last; None where no stream begins in it. Complete neighbours meet there.
    """

    def __init__(self, dump: str, start: int = 0, stop: int | None = None):
        self.dump, self.start, self.stop = dump, start, stop
        self.first = self.end = None
        self._last = b""  # the last page that was read

    def pages(self) -> Iterator[bytes]:
        """Yield the XML of each page.

        Raises:
          UserError: the dump is damaged or truncated.
        """
        buffer, own, behind = bytearray(), 0, b""
        searched = 0  # bytes of the buffer in which the current page does not end
        try:
            for piece, mine in self._pieces():
                buffer += piece
                own += len(piece) if mine else 0
                behind = (behind + piece)[-64:]
                at, begin = 0, buffer.find(_BEGIN)
                while 0 <= begin < own and (end := buffer.find(_END, max(begin, searched))) >= 0:
                    at = end + len(_END)
                    self._last = bytes(buffer[begin:at])
                    yield self._last
                    begin, searched = buffer.find(_BEGIN, at), 0
                kept = begin if begin >= 0 else max(at, len(buffer) - _tag_begun(buffer))
                del buffer[:kept]
                own -= kept
                searched = max(0, len(buffer) - len(_END))
                if len(buffer) > _LONGEST_PAGE:
                    raise self._damaged(
                        f"page {_title(buffer)!r} does not end within {_LONGEST_PAGE:,} bytes"
                    )
                if not mine and own <= 0:
                    return
        except DamagedFile as error:
            raise self._damaged(error) from None
        if self.first != self.end and (own > 0 or b"</mediawiki>" not in behind):
            raise self._damaged("its end is missing")

    def parse(self, raw: bytes, invalid_utf8: str = "error", counts: Counter | None = None) -> Page:
        """Parse a page's XML.

        Args:
          invalid_utf8: of `text_files.INVALID_UTF8`.
          counts: gets the number of pages with bytes that are not UTF-8, under "invalid_utf8".

        Raises:
          UserError: its XML is damaged or has bytes that are not UTF-8.
        """
        try:
            try:
                return _page(ElementTree.fromstring(raw))
            except ElementTree.ParseError:
                return _page(ElementTree.fromstring(self._repaired(raw, invalid_utf8, counts)))
        except (ElementTree.ParseError, ValueError) as error:
            raise UserError(f"{self.dump}: page {_title(raw)!r} is damaged: {error}") from None

    def _damaged(self, error):
        where = f"after byte {self.start:,}" if self.start else "before its first page"
        where = f"after page {_title(self._last)!r}" if self._last else where
        return UserError(f"{self.dump} is damaged or truncated {where}: {error}")

    def _repaired(self, raw, invalid_utf8, counts):
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            if invalid_utf8 == "error":
                raise UserError(
                    f"{self.dump}: page {_title(raw)!r} has the byte {raw[error.start]:#04x}, "
                    f"which is not UTF-8; where such pages are few pass --invalid_utf8=replace"
                ) from None
            if counts is not None:
                counts["invalid_utf8"] += 1
            return raw.decode("utf-8", invalid_utf8)

    def _pieces(self):
        """Yield (bytes of text, whether they are of this stretch), up to the end of the file."""
        if (self.start, self.stop) == (0, None):
            self.first, self.end = 0, storage.size(self.dump)
            with open_bytes(self.dump) as file:
                while data := file.read(_PIECE):
                    yield data, True
        else:
            with storage.reading(self.dump) as file:
                yield from (self._plain if is_plain(self.dump) else self._streams)(file)

    def _plain(self, file):
        self.first, self.end = self.start, self.stop or storage.size(self.dump)
        file.seek(self.start)
        left = self.end - self.start
        while data := file.read(min(_PIECE, left) if left else _PIECE):
            mine = left > 0
            left -= len(data) if mine else 0
            yield data, mine
            if mine and not left:
                yield b"", False

    def _streams(self, file):
        at = self.first = self.end = _next_stream(file, self.start, self.stop)
        while at is not None and _is_there(file, at):
            mine = self.stop is None or at < self.stop
            if not mine:
                yield b"", False  # more is asked for where a page continues in it
            stream = bz2.BZ2Decompressor()
            while not stream.eof:
                data = file.read(_PIECE)
                if not data:
                    raise DamagedFile("it ends within a bzip2 stream")
                at += len(data)
                while data or not (stream.needs_input or stream.eof):
                    try:
                        piece = stream.decompress(data, _PIECE)
                    except (OSError, ValueError) as error:
                        raise DamagedFile(error) from None
                    yield piece, mine
                    data = b""
            at -= len(stream.unused_data)
            if mine:
                self.end = at


def _page(element) -> Page:
    def find(path):
        return element.findtext(path) or ""

    return Page(
        int(find("id") or 0),
        int(find("revision/id") or 0),
        find("title"),
        int(find("ns") or 0),
        element.find("redirect") is not None,
        find("revision/model"),
        find("revision/text"),
    )


def _title(raw: bytes) -> str:
    found = re.search(rb"<title>(.*?)</title>", raw)
    return html.unescape(found[1].decode("utf-8", "replace")) if found else ""


def _tag_begun(buffer: bytes) -> int:
    """Return how many of the last bytes may be the beginning of <page>."""
    return next((n for n in range(len(_BEGIN) - 1, 0, -1) if buffer.endswith(_BEGIN[:n])), 0)


def _next_stream(file, start, stop):
    """Return where the first bzip2 stream from `start` on, before `stop`, begins, or None."""
    at, window = start, 1 << 20
    while stop is None or at < stop:
        file.seek(at)
        data = file.read(window)
        if found := _STREAM.search(data):
            at += found.start()
            return at if stop is None or at < stop else None
        if len(data) < window:
            return None
        at += len(data) - 9  # the beginning of a stream may be divided
    return None


def _is_there(file, at):
    file.seek(at)
    there = bool(file.read(1))
    file.seek(at)
    return there
