"""Files that a process holds by a lock, which ends with the process; others see that it does."""

import contextlib
import errno
import os
from pathlib import Path


def lock(handle: int, shared: bool = False, wait: bool = True) -> bool:
    """Locks an open file or folder; False where another process holds it and `wait` is false."""
    import fcntl

    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(handle, kind | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):
            return False
        raise
    return True


def is_at(handle: int, path: Path) -> bool:
    """Whether an open file is still the one of this name."""
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except OSError:
        return False


def remove_held(path: Path, handle: int) -> None:
    """Removes the file that is open as `handle`, if it is still the one of this name."""
    with contextlib.suppress(OSError):
        if is_at(handle, path):
            os.unlink(path)
