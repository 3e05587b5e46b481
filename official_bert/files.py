"""Files that are either complete under their final name or not there at all."""

import contextlib
import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from official_bert.errors import UserError


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike, mode: str = "w") -> Iterator[IO]:
    """Opens a temporary file beside `path` and renames it to `path` when the block succeeds.

    Text is UTF-8 with "\\n" line ends. After an error nothing is left behind and an older file of
    that name is untouched.

    Raises:
      UserError: the path is remote, the disk is full or the folder cannot be written.
    """
    path = _local(path)
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    with _readable_os_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(handle)
        try:
            with open(temporary, mode, **text) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o666 & ~_umask())
            os.replace(temporary, path)
        finally:
            Path(temporary).unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_folder(path: str | os.PathLike, overwrite: bool = False) -> Iterator[Path]:
    """Yields a temporary folder beside `path` and renames it to `path` when the block succeeds.

    Raises:
      UserError: `path` is remote, exists and `overwrite` is false, or cannot be written.
    """
    path = _local(path)
    if path.exists() and not overwrite and (not path.is_dir() or any(path.iterdir())):
        raise UserError(f"{path} exists already; choose another folder or pass --overwrite")
    with _readable_os_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        try:
            yield temporary
            os.chmod(temporary, 0o777 & ~_umask())
            _replace_folder(temporary, path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def sha256_file(path: str | os.PathLike) -> str:
    """The SHA-256 of the file's bytes, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _local(path: str | os.PathLike) -> Path:
    # A Path of "gs://bucket/x" would be the local folder "gs:".
    if "://" in str(path):
        raise UserError(f"{path} is a remote path; this is written to local folders only")
    return Path(path)


def _replace_folder(new: Path, path: Path) -> None:
    # os.replace cannot put a folder in the place of a non-empty one: the old one steps aside first,
    # so that at every moment either the old or the new folder exists whole.
    if path.exists():
        aside = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent))
        os.replace(path, aside / "old")
        os.replace(new, path)
        shutil.rmtree(aside)
    else:
        os.replace(new, path)


@contextlib.contextmanager
def _readable_os_errors(path: Path):
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise UserError(f"{path}: the disk is full; nothing was written there") from error
        if error.errno in (errno.EACCES, errno.EROFS, errno.ENOTDIR):
            raise UserError(f"{path}: cannot be written ({error.strerror})") from error
        raise


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
