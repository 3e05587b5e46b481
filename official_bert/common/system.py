"""Steps of the operating system that not every file system knows: locks, renames, syncs.

A lock ends with its process, and others see that it does. Where there are no locks everybody gets
them, and all files count as held by others.
"""

import ctypes
import errno
import fcntl
import functools
import os
import tempfile
from pathlib import Path

_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP)
_AT_FDCWD, _RENAME_NOREPLACE, _RENAME_EXCHANGE = -100, 1, 2


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


def ignores_case(folder: Path) -> bool:
    """Whether "A" and "a" are one name in a folder, or in what will hold it; a file there is made
    to see it, and removed."""
    there = next(each for each in (folder, *folder.parents) if each.is_dir())
    try:
        with tempfile.NamedTemporaryFile(dir=there, prefix="a") as file:
            return os.path.exists(there / Path(file.name).name.swapcase())
    except OSError:
        return False


def sync(path: Path) -> None:
    """Waits until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system without the call
            raise
    finally:
        os.close(handle)


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
