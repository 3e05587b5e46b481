"""Files and folders that are complete under their final name or not there at all.

That holds for a process that is killed and for a machine that loses its power: what is written
under a temporary name is on the disk before it gets its own, and a folder that replaces another
changes places with it in one step. And it holds for what others put there: only what this project
wrote (`manifests`) is replaced or removed, a new name never takes that of a file that
came meanwhile, links, devices and pipes are written through, and modes and hard links are kept.
Nothing else in this project replaces or removes a file; a test keeps it so.
"""

import contextlib
import errno
import json
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from official_bert.common import manifests, system
from official_bert.common.errors import UserError, first_of
from official_bert.common.paths import OWN_STREAM, local_path, real_path

FULL = (errno.ENOSPC, errno.EDQUOT)
UNWRITABLE = (
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.ELOOP, errno.EISDIR,
    errno.ENAMETOOLONG, errno.ENXIO, errno.EFBIG,
)  # fmt: skip
# Folders that `atomic_folder` and `scratch` gave out: nobody else writes there.
_private: set[Path] = set()


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike, mode: str = "w") -> Iterator[IO]:
    """Opens a temporary file beside `path` and renames it to `path` when the block succeeds.

    Text is UTF-8 with "\\n" line ends. After an error nothing is left behind and an older file of
    that name is untouched. When this returns, the file would survive a loss of power. What a link
    leads to, a device or a pipe gets the bytes themselves.

    Raises:
      UserError: the path is remote, is a file that this project did not write, the disk is full or
        the folder cannot be written.
    """
    path = local_path(path)
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    with _readable_errors(path):
        target = real_path(path)
        direct = _direct(path, target)
        if direct is not None:
            with open(direct, mode, **text) as file:
                yield file
            return
        make_folder(target.parent)
        temporary, handle = manifests.create(target.parent)
        try:
            with open(handle, mode, **text) as file:
                yield file
                file.flush()
                if os.path.lexists(target):
                    os.fchmod(handle, stat.S_IMODE(os.lstat(target).st_mode))
                os.fsync(handle)
                _put_file(temporary, target, path)
        finally:
            manifests.discard(temporary)


def write_text(path: str | os.PathLike, text: str) -> None:
    """Writes a file of text as `atomic_write` does."""
    with atomic_write(path) as file:
        file.write(text)


def write_json(path: str | os.PathLike, contents: Any, indent: int = 2) -> None:
    """Writes a file of JSON as `atomic_write` does."""
    write_text(path, json.dumps(contents, indent=indent, ensure_ascii=False) + "\n")


def appending(path: str | os.PathLike, mode: str = "a") -> IO:
    """Opens a file of ours at its end, or a new one.

    Raises:
      UserError: as `atomic_write`.
    """
    path = local_path(path)
    text = {} if "b" in mode else {"encoding": "utf-8"}
    with _readable_errors(path):
        target = real_path(path)
        direct = _direct(path, target)
        if direct is None and not target.exists():
            make_folder(target.parent)
            manifests.add(target.parent, target.name)
            with contextlib.suppress(FileExistsError):
                os.close(os.open(target, os.O_CREAT | os.O_EXCL, 0o666))
        opened = target if direct is None else direct
        return open(opened, mode, buffering=0 if "b" in mode else -1, **text)


@contextlib.contextmanager
def atomic_folder(
    path: str | os.PathLike, overwrite: bool = False, size: int = 0
) -> Iterator[Path]:
    """Yields a temporary folder beside `path` and renames it to `path` when the block succeeds.

    With `overwrite` the old folder stays under its name until the new one takes it. When this
    returns, the new one would survive a loss of power. Of several processes that make a new folder
    at once, one succeeds.

    Args:
      size: bytes that will be written at least; where the disk has not so many, nothing begins.

    Raises:
      UserError: `path` is remote, exists and `overwrite` is false, holds what this project did not
        write, or cannot be written.
    """
    check_free(path, overwrite)
    shown, path = path, real_path(path)
    with _readable_errors(path):
        make_folder(path.parent)
        number = secrets.token_hex(8)
        temporary = path.with_name(f".{path.name}.{number}.tmp")
        os.mkdir(temporary)
        handle = os.open(temporary, os.O_RDONLY)
        system.lock(handle)
        _private.add(temporary)
        try:
            manifests.begin(temporary, number)
            with tempfile.TemporaryFile(dir=temporary) as file:
                _reserve(file.fileno(), size)
            yield temporary
            whole = manifests.add_whole(temporary, *os.listdir(temporary))
            if path.exists():
                os.chmod(temporary, stat.S_IMODE(path.stat().st_mode))
            for each in (*whole, temporary):
                system.sync(each)
            _put_folder(temporary, path, number, shown, overwrite)
        finally:
            _private.discard(temporary)
            os.close(handle)
            if temporary.exists():
                manifests.clear_away(temporary)


def check_free(path: str | os.PathLike, overwrite: bool = False) -> None:
    """Raises UserError where `atomic_folder` would not write: something is there.

    What killed processes left beside it goes, or comes back to its place.
    """
    shown, path = path, real_path(path)
    manifests.clean(path.parent)
    if os.path.lexists(path) and not path.is_dir():
        raise UserError(f"{shown} exists already and is no folder; choose another")
    if path.exists() and any(path.iterdir()):
        if not overwrite:
            raise UserError(f"{shown} exists already; choose another folder or pass --overwrite")
        if strangers := list(map(str, manifests.foreign(path))):
            raise UserError(
                f"{shown} holds what this project did not write ({first_of(strangers, 3)}) "
                "and is not replaced; move that away, or choose another folder"
            )


def check_file(target: Path, shown: str | os.PathLike) -> bool:
    """Whether a regular file is or will be at `target`, the end of all links, and not a device.

    Raises:
      UserError: what is there is not ours, and bytes cannot be sent to it.
    """
    try:
        mode = os.lstat(target).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return True
    if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
        return False
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "no file that can be written"
        raise UserError(f"{shown} is {kind}; choose another name")
    if not manifests.is_listed(target) and not _is_private(target):
        raise UserError(
            f"{shown} exists, and this project did not write it; it is not replaced: move it away, "
            "or choose another name"
        )
    return True


def make_folder(path: str | os.PathLike) -> None:
    """Makes a folder and those above it; each is on the disk when its parent is synced.

    A folder that is made inside one of ours is ours.

    Raises:
      UserError: it is a file, or cannot be made.
    """
    folder = Path(os.path.realpath(path))
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{path} is a file; give a folder")
    with _readable_errors(folder):
        made = None
        missing = [each for each in (folder, *folder.parents) if not each.exists()]
        for each in reversed(missing):
            if each.parent == made or manifests.is_kept(each.parent):
                manifests.add(each.parent, each.name)
            each.mkdir(exist_ok=True)
            system.sync(each.parent)
            made = each


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A temporary folder somewhere, which is removed with all in it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(os.path.realpath(name))
        _private.add(folder)
        try:
            yield folder
        finally:
            _private.discard(folder)


def allocate(path: str | os.PathLike) -> None:
    """Gives a file that was made longer than its bytes its place on the disk, before it is mapped
    into memory: where there is none, a mapped file would end the process (SIGBUS).

    Raises:
      OSError: the disk is full.
    """
    with open(path, "r+b") as file:
        _reserve(file.fileno(), os.fstat(file.fileno()).st_size)


def _is_private(path: Path) -> bool:
    return any(folder in _private for folder in path.parents)


def _put_file(temporary: Path, target: Path, shown: Path) -> None:
    """Gives a whole temporary file its name."""
    with contextlib.suppress(FileExistsError):  # another process of ours may be faster
        if not os.path.lexists(target):
            with manifests.adding(target):
                system.to_new_name(temporary, target)
            system.sync(target.parent)
            return
    if check_file(target, shown) and os.lstat(target).st_nlink == 1:
        os.replace(temporary, target)
    else:  # its other names keep their file
        with open(temporary, "rb") as new, open(target, "r+b") as old:
            shutil.copyfileobj(new, old, 1 << 20)
            old.truncate()
            old.flush()
            os.fsync(old.fileno())
    system.sync(target.parent)


def _direct(path: Path, target: Path) -> int | Path | None:
    """What to open where bytes need no temporary file: a stream or a device, or a file in a
    temporary folder; None for any other file."""
    if stream := OWN_STREAM.fullmatch(str(path)):
        return os.dup({"stdout": 1, "stderr": 2}.get(stream[1]) or int(stream[2] or stream[3]))
    if _is_private(target):
        return target
    if check_file(target, path):
        return None
    try:  # to wait for a pipe's reader who may never come is no use
        handle = os.open(target, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise UserError(f"{target} is a pipe or a device that nobody reads") from None
        raise
    os.set_blocking(handle, True)
    return handle


def _put_folder(new: Path, path: Path, number: str, shown, overwrite: bool) -> None:
    if not path.exists() or not any(path.iterdir()):
        kept = manifests.is_kept(path.parent)
        try:
            with manifests.adding(path) if kept else contextlib.nullcontext():
                os.rename(new, path)
        except OSError:
            check_free(shown)  # it came to be meanwhile
            raise
    else:
        check_free(shown, overwrite)
        manifests.begin(path, number)
        if not system.exchange(new, path):
            old = new.with_suffix(".old")
            os.rename(path, old)  # `manifests.clean` undoes this if it is the last that happens
            os.rename(new, path)
            system.sync(path.parent)
            manifests.clear_away(old)
    system.sync(path.parent)  # exchanged, `new` names the old one, which the caller removes


def _reserve(handle: int, size: int) -> None:
    """Raises OSError where the disk has no place for so many bytes: what other libraries do when
    it runs full in their hands is everything from a message to the end of the process."""
    if size and hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, 0, size)


@contextlib.contextmanager
def _readable_errors(path: Path):
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # libraries that write turn a full disk into every kind
        number = error.errno if isinstance(error, OSError) else None
        if number in UNWRITABLE:
            raise UserError(f"{path}: cannot be written ({error.strerror})") from error
        if number in FULL or _is_full(path, error):
            raise UserError(f"{path}: the disk is full; nothing was written there") from error
        if number == errno.ENOENT and not path.parent.exists():
            raise UserError(f"{path}: its folder was removed while it was written") from error
        if number == errno.EPIPE and real_path(path).is_fifo():
            raise UserError(f"{path}: who read this pipe has ended") from error
        name = os.fsencode(path).decode("utf-8", "replace")
        if isinstance(error, ValueError | TypeError) and name != str(path):
            raise UserError(f"{path}: its name is no UTF-8, as it must be here") from error
        raise


def _is_full(path: Path, error: Exception) -> bool:
    texts = ("No space left on device", "Disk quota exceeded", f"errno = {errno.ENOSPC}")
    if any(text in str(error) for text in texts):
        return True
    try:
        place = os.statvfs(next(each for each in path.parents if each.exists()))
    except OSError:
        return False
    return place.f_blocks > 0 and place.f_bavail * place.f_frsize < 1 << 16
