"""Files that a process holds by a lock, which ends with the process; others see that it does.

Where a file system knows no locks, everybody gets them, and all files count as held by others.
"""

import errno
import fcntl
import os
from pathlib import Path

_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP)


def lock(handle: int, shared: bool = False, wait: bool = True, without_locks: bool = True) -> bool:
    """Locks an open file or folder; False where another process holds it and `wait` is false."""
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(handle, kind if wait else kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return without_locks
        if error.errno in (errno.EACCES, errno.EAGAIN):
            return False
        raise
    return True


def is_held(path: Path) -> bool:
    """Whether another process holds a file or folder, or may do so."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return True
    try:
        return not lock(handle, wait=False, without_locks=False)
    finally:
        os.close(handle)


def open_locked(
    path: Path, flags: int, shared: bool = False, wait: bool = True
) -> tuple[int, bool]:
    """Opens a file, never what a link leads to, and locks it: (the open file, what `lock` says)."""
    while True:
        handle = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
        try:
            is_free = lock(handle, shared, wait)
        except OSError:
            os.close(handle)
            raise
        if not is_free or is_at(handle, path):
            return handle, is_free
        os.close(handle)  # its last holder has just removed it


def is_at(handle: int, path: Path) -> bool:
    """Whether an open file is still the one of this name."""
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except OSError:
        return False
