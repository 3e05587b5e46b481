"""Files and folders that are complete under their final name or not there at all.

That holds for a process that is killed and for a machine that loses its power: what is written
under a temporary name is on the disk before it gets its own, and a folder that replaces another
changes places with it in one step. Temporary names start with "." and end with ".tmp"; what a
killed process left of them the next one removes (`remove_leftovers`).
"""

import contextlib
import ctypes
import errno
import functools
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from official_bert.errors import UserError

_TEMPORARY = ".tmp"
_OLD = ".old"
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike, mode: str = "w") -> Iterator[IO]:
    """Opens a temporary file beside `path` and renames it to `path` when the block succeeds.

    Text is UTF-8 with "\\n" line ends. After an error nothing is left behind and an older file of
    that name is untouched. When this returns, the file would survive a loss of power.

    Raises:
      UserError: the path is remote, the disk is full or the folder cannot be written.
    """
    path = local_path(path)
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    with _readable_os_errors(path):
        _make_folders(path.parent)
        handle, temporary = tempfile.mkstemp(_TEMPORARY, f".{path.name}.", path.parent)
        os.close(handle)
        try:
            with open(temporary, mode, **text) as file:
                yield file
                file.flush()
                os.fchmod(file.fileno(), 0o666 & ~_umask())
                os.fsync(file.fileno())
            os.replace(temporary, path)
            _sync(path.parent)
        finally:
            Path(temporary).unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_folder(path: str | os.PathLike, overwrite: bool = False) -> Iterator[Path]:
    """Yields a temporary folder beside `path` and renames it to `path` when the block succeeds.

    With `overwrite` the old folder stays under its name until the new one takes it. When this
    returns, the new one would survive a loss of power.

    Raises:
      UserError: `path` is remote, exists and `overwrite` is false, or cannot be written.
    """
    path = local_path(path)
    check_free(path, overwrite)
    with _readable_os_errors(path):
        _make_folders(path.parent)
        temporary = Path(tempfile.mkdtemp(_TEMPORARY, f".{path.name}.", path.parent))
        try:
            yield temporary
            os.chmod(temporary, 0o777 & ~_umask())
            _sync_tree(temporary)
            _put_in_place(temporary, path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def check_free(path: str | os.PathLike, overwrite: bool = False) -> None:
    """Raises UserError where `atomic_folder` would not write: something is there."""
    path = local_path(path)
    recover_folder(path)
    if path.exists() and not overwrite and (not path.is_dir() or any(path.iterdir())):
        raise UserError(f"{path} exists already; choose another folder or pass --overwrite")


def recover_folder(path: str | os.PathLike) -> None:
    """Puts back the old folder where a replacement was cut off between its two steps.

    Only where the system cannot exchange two folders is there such a moment.
    """
    path = Path(path)
    old = _old_name(path)
    if path.exists() or not old.is_dir():
        return
    with contextlib.suppress(FileNotFoundError), _readable_os_errors(path):
        os.rename(old, path)
        _sync(path.parent)


def remove_leftovers(folder: str | os.PathLike) -> None:
    """Puts back or removes what killed processes left in `folder` under other names.

    For folders that one process writes to at a time, such as a locked work folder.
    """
    folder = Path(folder)
    for path in folder.glob(f".*{_OLD}"):
        recover_folder(folder / path.name.removeprefix(".").removesuffix(_OLD))
    for path in [*folder.glob(f".*{_TEMPORARY}"), *folder.glob(f".*{_OLD}")]:
        remove(path)


def remove(path: str | os.PathLike) -> None:
    """Removes a file or a folder with all in it, if it is there and as far as it can."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            os.unlink(path)


def sha256_file(path: str | os.PathLike) -> str:
    """The SHA-256 of the file's bytes, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def crc32c_file(path: str | os.PathLike) -> str:
    """The CRC-32C of the file's bytes, in hexadecimal: finds damage, at gigabytes a second."""
    import google_crc32c

    checksum = 0
    with open(path, "rb", buffering=0) as file:
        while content := file.read(1 << 20):
            checksum = google_crc32c.extend(checksum, content)
    return f"{checksum:08x}"


def inside(folder: str | os.PathLike, name: str, source: str | os.PathLike) -> Path:
    """The file that `source`, a list of files, calls `name`: it must lie in `folder` itself.

    What no file can be called (control characters, over 255 bytes) is refused here as well, since
    asking the system for it fails in other ways.

    A link may lead to the blobs of a Hugging Face cache, which is how that cache is laid out.

    Raises:
      UserError: the name leads out of the folder.
    """
    folder = Path(folder)
    path = folder / name
    plain = name not in ("", ".", "..") and not set(name) & {"/", "\\"}
    plain = plain and name.isprintable() and len(name.encode()) <= 255
    if plain and path.is_symlink():
        target, home = path.resolve().parent, folder.resolve()
        blobs = home.parent.parent / "blobs" if home.parent.name == "snapshots" else home
        plain = target in (home, blobs)
    if not plain:
        raise UserError(f"{source}: it names the file {name!r}, which is outside of {folder}")
    return path


def local_path(path: str | os.PathLike) -> Path:
    """The Path of a local file or folder; one of "gs://bucket/x" would be the local folder "gs:".

    Raises:
      UserError: the path is remote.
    """
    if "://" in str(path):
        raise UserError(
            f"{path} is a remote path; this is written to local folders only: give one, and copy "
            f"it when it is done"
        )
    return Path(path)


def _make_folders(folder: Path) -> None:
    """Makes a folder and those above it; each is on the disk when its parent is synced."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(exist_ok=True)
        _sync(each.parent)


def _put_in_place(new: Path, path: Path) -> None:
    if not path.exists():
        os.rename(new, path)
        _sync(path.parent)
    elif _exchange(new, path):
        _sync(path.parent)  # `new` names the old one now, which the caller removes
    else:
        old = _old_name(path)
        remove(old)
        os.rename(path, old)  # `recover_folder` undoes this if it is the last thing that happens
        os.rename(new, path)
        _sync(path.parent)
        remove(old)


def _exchange(one: Path, other: Path) -> bool:
    """Lets two files or folders change places in one step; False where that is not possible."""
    rename = _renameat2()
    if rename is None:
        return False
    paths = os.fsencode(one), os.fsencode(other)
    return not rename(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE)


@functools.cache
def _renameat2():
    # A call of Linux that Python does not have; not every file system knows the exchange.
    try:
        function = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError, TypeError):
        return None
    function.argtypes = [ctypes.c_int, ctypes.c_char_p] * 2 + [ctypes.c_uint]
    return function


def _old_name(path: Path) -> Path:
    return path.with_name(f".{path.name}{_OLD}")


def _sync_tree(folder: Path) -> None:
    """Waits until all that is below `folder`, and the folder itself, is on the disk."""
    for parent, _, names in os.walk(folder, topdown=False):
        for name in names:
            _sync(Path(parent, name))
        _sync(Path(parent))


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system without the call
            raise
    finally:
        os.close(handle)


@contextlib.contextmanager
def _readable_os_errors(path: Path):
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise UserError(f"{path}: the disk is full; nothing was written there") from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR):
            raise UserError(f"{path}: cannot be written ({error.strerror})") from error
        if error.errno == errno.ENOENT and not path.parent.exists():
            raise UserError(f"{path}: its folder was removed while it was written") from error
        raise


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
