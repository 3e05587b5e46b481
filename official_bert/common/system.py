"""Calls that not every file system has: renames that replace nothing or swap names, syncs."""

import contextlib
import ctypes
import errno
import functools
import os
from pathlib import Path

_AT_FDCWD, _NO_REPLACE, _EXCHANGE = -100, 1, 2


def rename_new(old: Path, new: Path) -> None:
    """Rename a file, a folder or a link to a name that is not taken.

    Where the system has no such call, a file gets the new name by a hard link. Only where there are
    no hard links either can a name that is taken at the last moment be overlooked.

    Raises:
      FileExistsError: the new name is taken.
    """
    number = _rename(old, new, _NO_REPLACE)
    if number == 0:
        return
    if number in (errno.EEXIST, errno.ENOENT, errno.EACCES, errno.EPERM, errno.EBUSY, errno.EXDEV):
        raise OSError(number, os.strerror(number), str(new))
    if not os.path.isdir(old) or os.path.islink(old):
        with contextlib.suppress(OSError):
            os.link(old, new, follow_symlinks=False)
            os.unlink(old)
            return
    if os.path.lexists(new):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(new))
    os.rename(old, new)


def exchange(one: Path, other: Path) -> bool:
    """Swap two names in one step; return False where the system has no such call."""
    return _rename(one, other, _EXCHANGE) == 0


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system without the call
            raise
    finally:
        os.close(handle)


def _rename(one: Path, other: Path, flags: int) -> int:
    """Call renameat2; return 0, or the number of the error."""
    rename = _renameat2()
    if rename is None:
        return errno.ENOSYS
    failed = rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), flags)
    return ctypes.get_errno() if failed else 0


@functools.cache
def _renameat2():
    """Return Linux's call renameat2, which Python lacks; None elsewhere."""
    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
