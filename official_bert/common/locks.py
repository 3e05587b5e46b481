"""One process that writes a folder, or many that read it: who comes second is told who is there."""

import contextlib
import os
import shlex
import socket
import sys
import time
import weakref
from collections.abc import Iterator
from pathlib import Path

from official_bert.common.errors import UserError, os_errors
from official_bert.common.files import make_folder
from official_bert.common.paths import local_path
from official_bert.common.system import is_at, is_held, lock, open_locked

LOCK_FILE = ".official_bert.lock"
_OURS = b"process "  # how what `exclusive` writes begins


class FolderLock:
    """A lock of a folder: a writer's own (`exclusive`), or one that readers share (`shared`).

    It ends with `release`, with this object, or with the process.
    """

    def __init__(self, path: Path, handle: int):
        self._path, self._handle = path, handle
        self.release = weakref.finalize(self, _release, path, handle, os.getpid())

    def check(self) -> None:
        """Call before results are written: another folder may have come under the name.

        Raises:
          UserError: the folder was removed or replaced since it was locked.
        """
        if not is_at(self._handle, self._path):
            raise UserError(
                f"{self._path.parent} was removed or replaced while this command used it; "
                "its results are lost, run the command again"
            )


@contextlib.contextmanager
def exclusive(folder: str | os.PathLike, wait: bool = False) -> Iterator[FolderLock]:
    """Makes `folder` where it is missing and holds its lock, until the process ends at the latest.

    The file in it says who holds it. Processes forked meanwhile hold it, too, so that a killed
    command's workers are gone before the next one begins.

    Args:
      wait: until another process that holds it has ended.

    Raises:
      UserError: another process holds it (the message says which), or the folder cannot be written
        or is not local.
    """
    folder = local_path(folder)
    path = folder / LOCK_FILE
    with os_errors(folder, "written"):
        make_folder(folder)
        lock = FolderLock(path, _open(path, os.O_RDWR | os.O_CREAT, wait=wait))
    try:
        yield lock
    finally:
        lock.release()


def shared(folder: str | os.PathLike) -> FolderLock | None:
    """Holds an existing folder against processes that would write to it (`exclusive`).

    Returns: None where the file system takes no lock of this user; nor does it take one of a
      writer then, or the writer is another user.
    Raises:
      UserError: another process writes to it; the message says which.
    """
    path = Path(folder) / LOCK_FILE
    for flags in (os.O_RDWR | os.O_CREAT, os.O_RDONLY):
        with contextlib.suppress(OSError):
            return FolderLock(path, _open(path, flags, is_shared=True))
    return None


def is_locked(folder: str | os.PathLike) -> bool:
    """Whether a process holds the lock of a folder."""
    path = Path(folder, LOCK_FILE)
    return os.path.lexists(path) and is_held(path)


def _release(path: Path, handle: int, owner: int) -> None:
    with contextlib.suppress(OSError):
        # A forked process has the same lock: it only lets go. The last holder removes the file,
        # while it is held: nobody can have locked this very file in between.
        if os.getpid() == owner and lock(handle, wait=False) and is_at(handle, path):
            os.unlink(path)
    os.close(handle)


def _open(path: Path, flags: int, is_shared: bool = False, wait: bool = False) -> int:
    handle, is_free = open_locked(path, flags, is_shared, wait)
    content = os.pread(handle, 1000, 0)
    told = None
    if not is_free:
        holder = content.decode("utf-8", "replace").strip()
        told = f"{path.parent} is in use by {holder or 'another process'}; wait for it to end, or"
    elif content[: len(_OURS)] not in (b"", _OURS):
        told = f"{path} was not written by this project;"
    if told:
        os.close(handle)
        raise UserError(f"{told} choose another folder")
    if flags & os.O_RDWR:  # of many readers the last one stands there
        with contextlib.suppress(OSError):  # a full disk
            os.ftruncate(handle, 0)
            os.pwrite(handle, _myself().encode("utf-8", "backslashreplace"), 0)
    return handle


def _myself() -> str:
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])[:300]
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    return f"process {os.getpid()} on {socket.gethostname()} since {since} ({command})\n"
