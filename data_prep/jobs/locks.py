"""Locks of folders: one process writes a folder, or many read it.

A process that comes second gets an error that names the first. Locks are flock's, through the
library filelock, so they end with their process. Every wait has a limit.
"""

import contextlib
import errno
import fcntl
import io
import os
import shlex
import socket
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import filelock

from official_bert.common.errors import UserError, os_errors
from official_bert.common.files import make_folder, set_aside
from official_bert.common.paths import local_path

LOCK_FILE = ".official_bert.lock"
SECONDS = 0.5  # of waiting for another process: long enough for one that only looks
_OURS = b"process "  # beginning of the text that a holder writes
_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP)


class FolderLock:
    """The lock of the process that writes a folder; see `exclusive`."""

    def __init__(self, folder: Path, seconds: float):
        self._folder, self._seconds = folder, seconds
        self._acquire()

    def _acquire(self) -> None:
        self._file = None
        with os_errors(self._folder, "written"):
            make_folder(self._folder)
            path = self._folder / LOCK_FILE
            self._file = filelock.FileLock(path, self._seconds, 0o666, on_acquired=self._sign)
            try:
                with contextlib.suppress(FileNotFoundError):
                    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                    with open(handle, "rb", buffering=0):
                        # Before the library opens it, since some versions empty it.
                        _check_ours(handle, path)
                self._file.acquire()
            except filelock.Timeout:
                raise _in_use(path) from None
            except OSError as error:
                if error.errno not in _NO_LOCKS:
                    raise

    def _sign(self, handle: int) -> None:
        self._state = os.fstat(handle)
        _sign(handle)

    def check(self) -> None:
        """Check that the folder is still the one that was locked; call before results are written.

        Raises:
          UserError: the folder was removed or replaced since it was locked.
        """
        path = self._folder / LOCK_FILE
        if self._file.is_locked and not (
            path.exists() and os.path.samestat(self._state, os.lstat(path))
        ):
            raise UserError(
                f"{self._folder} was removed or replaced while this command used it; "
                "its results are lost, run the command again"
            )

    def begin_anew(self) -> None:
        """Rename the folder as --overwrite does (`files.set_aside`), and lock a new one in its
        place.

        Raises:
          UserError: the folder cannot be renamed, or another process was faster to make a new one.
        """
        set_aside(self._folder)
        self.release()
        self._acquire()

    def release(self) -> None:
        """Release the lock; the file stays, so that all who wait lock the same one."""
        self._file.release(force=True)


@contextlib.contextmanager
def exclusive(folder: str | os.PathLike, seconds: float = SECONDS) -> Iterator[FolderLock]:
    """Make `folder` if it is missing, and hold its lock while the block runs.

    The lock's file says who holds it. On a file system without locks every process gets one.

    Args:
      seconds: how long to wait for another process that holds it.

    Raises:
      UserError: another process holds it (the message says which), or the folder cannot be written
        or is not local.
    """
    lock = FolderLock(local_path(folder), seconds)
    try:
        yield lock
    finally:
        lock.release()


def shared(folder: str | os.PathLike) -> io.FileIO | None:
    """Lock an existing folder against processes that would write to it with `exclusive`.

    Returns: the open file of the lock, which holds until it is closed; None where this user cannot
      lock the folder.
    Raises:
      UserError: another process writes to it; the message says which.
    """
    path = Path(folder) / LOCK_FILE
    for flags in (os.O_RDWR | os.O_CREAT, os.O_RDONLY):
        with contextlib.suppress(OSError):
            handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
            file = io.FileIO(handle, "r")
            try:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                raise _in_use(path) from None
            _check_ours(handle, path)
            if flags & os.O_RDWR:  # of many readers it names the last one
                _sign(handle)
            return file
    return None


def is_locked(folder: str | os.PathLike) -> bool:
    """Return whether a process holds the lock of a folder."""
    with contextlib.suppress(OSError):
        handle = os.open(Path(folder, LOCK_FILE), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            return not filelock.lock_descriptor(handle, blocking=False)
        finally:
            os.close(handle)
    return False


def _in_use(path: Path) -> UserError:
    holder = ""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        holder = file.read(1000).decode("utf-8", "replace").strip()
    return UserError(
        f"{path.parent} is in use by {holder or 'another process'}; wait for it to end, or choose "
        "another folder"
    )


def _check_ours(handle: int, path: Path) -> None:
    """Raise UserError where the open file at a lock's path was not written by this project."""
    state = os.fstat(handle)
    plain = stat.S_ISREG(state.st_mode) and state.st_nlink < 2
    if not plain or os.pread(handle, len(_OURS), 0) not in (b"", _OURS):
        raise UserError(f"{path} was not written by this project; choose another folder")


def _sign(handle: int) -> None:
    """Write this process's name into a lock's file."""
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])[:300]
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    text = f"process {os.getpid()} on {socket.gethostname()} since {since} ({command})\n"
    with contextlib.suppress(OSError):  # a full disk
        os.ftruncate(handle, 0)
        os.pwrite(handle, text.encode("utf-8", "backslashreplace"), 0)
