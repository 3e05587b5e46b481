"""Renames that take no name from anything: to a new name only, or two that change places."""

import ctypes
import errno
import functools
import os
from pathlib import Path

_AT_FDCWD, _RENAME_NOREPLACE, _RENAME_EXCHANGE = -100, 1, 2


def to_new_name(old: Path, new: Path) -> None:
    """Renames a file; raises FileExistsError where the new name is taken, at whatever moment."""
    number = _rename(old, new, _RENAME_NOREPLACE)
    if number == errno.EEXIST:
        raise FileExistsError(number, os.strerror(number), str(new))
    if number:  # not known to this file system
        os.close(os.open(new, os.O_CREAT | os.O_EXCL, 0o666))
        os.replace(old, new)


def exchange(one: Path, other: Path) -> bool:
    """Lets two files or folders change places in one step; False where that is not possible."""
    return not _rename(one, other, _RENAME_EXCHANGE)


def _rename(one: Path, other: Path, flags: int) -> int:
    """0, or the number of the error."""
    rename = _renameat2()
    if rename is None:
        return errno.ENOSYS
    failed = rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), flags)
    return ctypes.get_errno() if failed else 0


@functools.cache
def _renameat2():
    # A call of Linux that Python does not have; not every file system knows the flags.
    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
