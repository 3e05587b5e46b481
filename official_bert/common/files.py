"""Files and folders appear under their names whole or not at all, and replace nothing.

Everything is written in a folder of a random name beside its place, synced, and renamed without
replacing. A file that stands there already is refused. With `overwrite` it is renamed first, to
NAME.~1~ or the next free number, in one line that says so. With `own` a file or a folder is
replaced: that is for the fixed names which a command writes inside a folder that it has made and
locked (`data_prep.jobs.output_folder`). A link at a place is not followed. Devices and pipes get
the bytes. Nothing else in this project replaces or removes a file; a test keeps it so.
"""

import contextlib
import errno
import itertools
import json
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from official_bert.common import system
from official_bert.common.errors import UserError
from official_bert.common.paths import OWN_STREAM, local_path, named_path

FULL = (errno.ENOSPC, errno.EDQUOT)
UNWRITABLE = (
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.ELOOP, errno.EISDIR,
    errno.ENAMETOOLONG, errno.ENXIO, errno.EFBIG, errno.EBUSY,
)  # fmt: skip
_UNFINISHED = re.compile(r"\.(.+)\.[0-9a-f]{16}\.tmp", re.DOTALL)  # what `beside` makes


@contextlib.contextmanager
def beside(path: str | os.PathLike, overwrite: bool = False, own: bool = False) -> Iterator[Path]:
    """Yield a path of the same name in a new folder beside `path`, for a file or a folder.

    Everything that the block puts into that folder is renamed to its place when the block succeeds.
    After an error nothing is left behind, and what stood there is untouched. When this returns, the
    files would survive a loss of power. A device, a pipe and own streams get the file's bytes.

    Raises:
      UserError: the path is remote, something stands at a place, the disk is full, or the folder
        cannot be written.
    """
    path = local_path(path)
    with _readable_errors(path):
        stream = None if own else _stream(path)
        if stream is not None:
            with scratch() as folder, open(stream, "wb") as file:
                yield folder / "out"
                with open(folder / "out", "rb") as made:
                    shutil.copyfileobj(made, file)
            return
        check_free(path, overwrite or own)
        target = named_path(path)
        path = path if path.name == target.name else target  # "here/.." has siblings elsewhere
        make_folder(target.parent)
        folder = target.with_name(f".{target.name[:40]}.{secrets.token_hex(8)}.tmp")
        os.mkdir(folder)
        try:
            yield folder / target.name
            for made in sorted(folder.iterdir()):
                check_free(path.with_name(made.name), overwrite or own)
                _sync_all(made)
            for made in sorted(folder.iterdir()):
                _put(made, target.with_name(made.name), path.with_name(made.name), overwrite, own)
            system.sync(target.parent)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def atomic_write(
    path: str | os.PathLike, mode: str = "w", overwrite: bool = False, own: bool = False
) -> Iterator[IO]:
    """Open a new file, which is at `path` when the block succeeds (`beside`).

    Text is UTF-8 with "\\n" line ends.

    Raises:
      UserError: as `beside`.
    """
    path = local_path(path)
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    with _readable_errors(path):
        stream = None if own else _stream(path)
        if stream is not None:
            with open(stream, mode, **text) as file:
                yield file
            return
    with beside(path, overwrite, own) as made, open(made, mode.replace("w", "x"), **text) as file:
        yield file
        file.flush()


def write_text(
    path: str | os.PathLike, text: str, overwrite: bool = False, own: bool = False
) -> None:
    """Write a file of text as `atomic_write` does."""
    with atomic_write(path, overwrite=overwrite, own=own) as file:
        file.write(text)


def write_json(path: str | os.PathLike, contents: Any, indent: int = 2, own: bool = False) -> None:
    """Write a file of JSON as `atomic_write` does."""
    write_text(path, json.dumps(contents, indent=indent, ensure_ascii=False) + "\n", own=own)


def appending(path: str | os.PathLike, mode: str = "a") -> IO:
    """Open a file of a folder that the command holds, to append to it; make it if it is not there.

    Raises:
      UserError: it is a link or another kind of file, or cannot be written.
    """
    path = local_path(path)
    text = {} if "b" in mode else {"encoding": "utf-8"}
    with _readable_errors(path):
        make_folder(path.parent)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(path, flags | os.O_NONBLOCK, 0o666)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise UserError(f"{path} is in the way: it is not a file; move it away")
        return open(handle, mode, buffering=0 if "b" in mode else -1, **text)


def patching(path: Path) -> IO[bytes]:
    """Open a file that this process has just made in a folder of `beside`, to change bytes."""
    return open(path, "r+b")


@contextlib.contextmanager
def atomic_folder(
    path: str | os.PathLike, overwrite: bool = False, size: int = 0, own: bool = False
) -> Iterator[Path]:
    """Yield a new folder, which is at `path` when the block succeeds (`beside`).

    An empty folder at `path` passes its mode on to the new one. Where several processes make a
    folder of one name at once, one succeeds.

    Args:
      size: bytes that will be written at least; a disk without so many is refused at the start.

    Raises:
      UserError: as `beside`.
    """
    if _is_stream(named_path(path)):
        raise UserError(f"{path} is a pipe or a device; choose another name")
    with beside(path, overwrite, own) as made:
        os.mkdir(made)
        with tempfile.TemporaryFile(dir=made) as file:
            _reserve(file.fileno(), size)
        yield made


def check_free(path: str | os.PathLike, overwrite: bool = False) -> None:
    """Raise UserError where something stands at a local path that is to be written.

    An empty folder, a pipe and a device do not count. With `overwrite` only what cannot be renamed
    is refused, such as the folder that the command works in, or the place of a mounted disk.
    """
    target = named_path(path)
    if target.is_dir() and not target.is_symlink():
        _check_movable(path, target)
    if not os.path.lexists(target) or _is_empty_folder(target) or _is_stream(target):
        return
    if not overwrite:
        raise UserError(
            f"{path} exists already; choose another name or pass --overwrite, which renames it to "
            f"{_backup(target).name}"
        )
    mode = os.lstat(target).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
        raise UserError(f"{path} is a device; choose another name")


def set_aside(path: str | os.PathLike) -> None:
    """Rename whatever stands at a path to NAME.~1~, or the next free number, and say so."""
    target = named_path(path)
    check_free(path, overwrite=True)
    if _is_stream(target):
        raise UserError(f"{path} is a pipe or a device, which is not renamed")
    with _readable_errors(target):
        while True:
            backup = _backup(target)
            with contextlib.suppress(FileExistsError):  # another process took the number
                system.rename_new(target, backup)
                break
        system.sync(target.parent)
    print(f"{path} is renamed to {backup.name}", file=sys.stderr, flush=True)


def make_folder(path: str | os.PathLike) -> None:
    """Make a folder and its missing parents; the name of each is synced to the disk.

    Raises:
      UserError: it is a file, or cannot be made.
    """
    folder = Path(os.path.realpath(path))
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{path} is a file; give a folder")
    with _readable_errors(folder):
        for each in reversed([each for each in (folder, *folder.parents) if not each.exists()]):
            each.mkdir(exist_ok=True)
            system.sync(each.parent)


def remove(*paths: str | os.PathLike) -> None:
    """Remove files and folders that a command made inside a folder that it holds.

    A link is removed, but not its target.
    """
    for path in paths:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


def remove_empty(folder: str | os.PathLike) -> None:
    """Remove a folder that a command made, unless something is in it."""
    with contextlib.suppress(OSError):
        os.rmdir(folder)


def is_unfinished(name: str) -> bool:
    """Return whether a name is that of a folder which `beside` made."""
    return _UNFINISHED.fullmatch(name) is not None


def remove_unfinished(folder: str | os.PathLike, names: re.Pattern) -> None:
    """Remove the unfinished folders of killed processes from a folder that this process holds.

    Args:
      names: pattern of the names that they were writing (`beside`).
    """
    for path in Path(folder).glob(".*.tmp"):
        match = _UNFINISHED.fullmatch(path.name)
        if match and names.fullmatch(match[1]) and path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """Yield a temporary folder, which is removed afterwards with everything in it."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(os.path.realpath(name))


def allocate(path: str | os.PathLike) -> None:
    """Reserve a file's whole length on the disk before it is mapped into memory.

    On a full disk, writing into a mapped file would end the process (SIGBUS).

    Raises:
      OSError: the disk is full.
    """
    with open(path, "r+b") as file:
        _reserve(file.fileno(), os.fstat(file.fileno()).st_size)


def _check_movable(path: str | os.PathLike, folder: Path) -> None:
    """Raise UserError where a folder, called `path` in the message, can give way to no other."""
    if folder in (here := Path.cwd(), *here.parents):
        raise UserError(
            f"{path} is the folder that this command works in, or holds it; it is not replaced: "
            "start the command elsewhere"
        )
    if os.path.ismount(folder):
        raise UserError(f"{path} is where a disk is mounted; choose a name inside it")


def _backup(target: Path) -> Path:
    """Return the first free name of GNU's numbered backups."""
    names = (target.with_name(f"{target.name}.~{number}~") for number in itertools.count(1))
    return next(name for name in names if not os.path.lexists(name))


def _put(made: Path, target: Path, shown: Path, overwrite: bool, own: bool) -> None:
    """Give a complete file or folder its name, and the mode of what stood there."""
    there = os.path.lexists(target)
    if there and not target.is_symlink() and target.is_dir() == made.is_dir():
        os.chmod(made, stat.S_IMODE(target.stat().st_mode))
    if own and there:
        if target.is_symlink() or not (target.is_dir() if made.is_dir() else target.is_file()):
            raise UserError(f"{shown} is in the way: this command did not write it; move it away")
        if not made.is_dir():
            os.replace(made, target)
            return
        if system.exchange(made, target):  # the old one is removed with the folder of `beside`
            return
        os.rename(target, made.with_name("old"))
    check_free(shown, overwrite)
    try:
        if _is_empty_folder(target) and made.is_dir():
            os.rename(made, target)
            return
        if overwrite and os.path.lexists(target):
            set_aside(shown)
        system.rename_new(made, target)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            raise
        raise UserError(f"{shown} came to be meanwhile; choose another name") from None


def _is_empty_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink() and not any(path.iterdir())


def _is_stream(path: Path) -> bool:
    """Return whether a name leads to a pipe or a character device, which bytes are sent to."""
    with contextlib.suppress(OSError):
        mode = os.stat(path).st_mode
        return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)
    return False


def _stream(path: Path) -> int | None:
    """Open a device, a pipe or one of the process's own streams; None for any other file."""
    if stream := OWN_STREAM.fullmatch(str(path)):
        return os.dup({"stdout": 1, "stderr": 2}.get(stream[1]) or int(stream[2] or stream[3]))
    if not _is_stream(path):
        return None
    try:  # a pipe's reader may never come, so it is not waited for
        handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise UserError(f"{path} is a pipe or a device that nobody reads") from None
        raise
    os.set_blocking(handle, True)
    return handle


def _sync_all(path: Path) -> None:
    """Wait until a file, or a folder and all files in it, are on the disk."""
    for folder, _, names in os.walk(path, topdown=False):
        for each in (*names, ""):
            if not os.path.islink(each := os.path.join(folder, each)):
                system.sync(Path(each))
    if not path.is_dir():
        system.sync(path)


def _reserve(handle: int, size: int) -> None:
    """Raise OSError where the disk has no space for so many bytes.

    Some libraries end the process where they run out of space while they write.
    """
    if size and hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, 0, size)


@contextlib.contextmanager
def _readable_errors(path: Path):
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # libraries raise every kind of exception for a full disk
        number = error.errno if isinstance(error, OSError) else None
        if number in UNWRITABLE:
            raise UserError(f"{path}: cannot be written ({error.strerror})") from error
        if number in FULL or _is_full(path, error):
            raise UserError(f"{path}: the disk is full; nothing was written there") from error
        if number == errno.ENOENT and not path.parent.exists():
            raise UserError(f"{path}: its folder was removed while it was written") from error
        if number == errno.EPIPE and path.is_fifo():
            raise UserError(f"{path}: who read this pipe has ended") from error
        name = os.fsencode(path).decode("utf-8", "replace")
        if isinstance(error, ValueError | TypeError) and name != str(path):
            raise UserError(f"{path}: its name is not UTF-8, as it must be here") from error
        raise


def _is_full(path: Path, error: Exception) -> bool:
    texts = ("No space left on device", "Disk quota exceeded", f"errno = {errno.ENOSPC}")
    if any(text in str(error) for text in texts):
        return True
    with contextlib.suppress(OSError):
        place = os.statvfs(next(one for one in (path, *path.absolute().parents) if one.exists()))
        return place.f_blocks > 0 and place.f_bavail * place.f_frsize < 1 << 16
    return False
