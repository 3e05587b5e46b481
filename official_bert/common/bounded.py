"""Files from outside, which end: a pipe may wait for ever, and a device gives bytes without end."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from official_bert.common.errors import UserError


def open_file(path: str | os.PathLike, missing: str = "") -> BinaryIO:
    """Opens a regular file for reading.

    Args:
      missing: what to add to the message where the file cannot be read.

    Raises:
      UserError: it cannot be read, or is a pipe, a device or a folder.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # no wait for a pipe
    except OSError as error:
        told = f"{path}: cannot be read ({error.strerror})"
        raise UserError(f"{told}; {missing}" if missing else told) from error
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        raise UserError(f"{path}: is no file" + " but a folder" * stat.S_ISDIR(mode))
    return open(handle, "rb")


def read_bytes(path: str | os.PathLike, most_bytes: int, missing: str = "") -> bytes:
    """The content of a regular file; one of more than `most_bytes` is refused before it is read.

    Raises:
      UserError: as `open_file`, or it is larger.
    """
    with open_file(path, missing) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most_bytes:
            raise UserError(f"{path}: {size:,} bytes; at most {most_bytes:,} are read")
        return file.read(size)


def check_below(folder: str | os.PathLike, most_bytes: int) -> None:
    """Raises UserError where something below `folder`, which a library will read, is no regular
    file or is larger."""
    for path in Path(folder).rglob("*"):
        if not path.is_dir():
            if not path.is_file():
                raise UserError(f"{path}: is no file")
            if (size := path.stat().st_size) > most_bytes:
                raise UserError(f"{path}: {size:,} bytes; at most {most_bytes:,} are read")
