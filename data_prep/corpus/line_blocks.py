"""Text files as blocks of whole lines, and cut into stretches that workers can share.

A stretch (start, stop) of a file stands for the documents that follow the blank lines that begin in
it; the first one has the start of the file too. So the stretches of a file hold every document
once, whole, and each is found without reading the others. Packed files cannot be cut.
"""

from collections.abc import Iterator

from data_prep.corpus.text_files import BYTE_ORDER_MARK, is_plain, open_bytes

_BLOCK_BYTES = 1 << 17  # fits, with what the tokeniser makes of it, a processor's cache


def stretches(path: str, size: int, wanted: int) -> list[tuple[int, int | None]]:
    """Stretches of about `wanted` bytes of a file of `size` bytes; None stands for its end."""
    number = size // wanted
    if number < 2 or not is_plain(path):
        return [(0, None)]
    edges = [size * index // number for index in range(number)]
    return list(zip(edges, [*edges[1:], None], strict=True))


def line_blocks(path: str, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
    """The lines of the documents of a stretch, some thousand at once, each with its newline.

    The last line of a file gets one; a byte order mark goes.

    Raises:
      UserError: the file is missing, is a folder or is damaged.
    """
    with open_bytes(path) as file:
        at, end = 0, None
        if start:
            at = _next_document(file, start, stop)
            if at is None:
                return
        if stop is not None:
            end = _next_document(file, stop)
            file.seek(at)
        while end is None or at < end:
            data = file.read(_BLOCK_BYTES if end is None else min(_BLOCK_BYTES, end - at))
            if not data:
                return
            if data[-1:] != b"\n":
                data += file.readline()
            at += len(data)
            if at == len(data):
                data = data.removeprefix(BYTE_ORDER_MARK)
            yield data if data[-1:] == b"\n" else data + b"\n"


def _next_document(file, place, limit=None):
    """The end of the first blank line that begins at `place` or later, or the end of the file.

    None where no blank line begins before `limit`: the documents there belong to later stretches.
    """
    file.seek(place - 1)
    file.readline()  # the rest of the line before
    while limit is None or file.tell() < limit:
        if not file.readline().strip():  # blank, or the end of the file
            return file.tell()
    return None
