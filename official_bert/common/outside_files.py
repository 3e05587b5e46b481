"""Files from outside, opened only if they end: no pipe that waits, no device without end."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from official_bert.common.errors import UserError, os_errors


def open_file(
    path: str | os.PathLike, missing: str = "", most_bytes: int | None = None, links: bool = True
) -> BinaryIO:
    """Open a regular file for reading.

    Args:
      missing: added to the message where the file cannot be read.
      most_bytes: a larger file is refused.
      links: whether the name may be a link.

    Raises:
      UserError: it cannot be read, is larger, or is a pipe, a device or a folder.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC  # no wait for a pipe
    with os_errors(path, advice=missing):
        handle = os.open(path, flags if links else flags | os.O_NOFOLLOW)
    status, reason = os.fstat(handle), ""
    if not stat.S_ISREG(status.st_mode):
        reason = "is not a file" + " but a folder" * stat.S_ISDIR(status.st_mode)
    elif most_bytes is not None and status.st_size > most_bytes:
        reason = f"{status.st_size:,} bytes; at most {most_bytes:,} are read"
    if reason:
        os.close(handle)
        raise UserError(f"{path}: {reason}")
    return open(handle, "rb")


def read_bytes(path: str | os.PathLike, most_bytes: int, missing: str = "") -> bytes:
    """Return the content of a regular file; one above `most_bytes` is refused unread.

    Raises:
      UserError: as `open_file`.
    """
    with open_file(path, missing, most_bytes) as file:
        return file.read(os.fstat(file.fileno()).st_size)  # takes no more memory than the file


def check_below(folder: str | os.PathLike, most_bytes: int) -> None:
    """Raise UserError where a file below `folder` is not regular or is larger.

    A library will read the folder.
    """
    for path in Path(folder).rglob("*"):
        if not path.is_dir():
            open_file(path, most_bytes=most_bytes).close()
