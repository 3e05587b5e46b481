"""The manifest of a folder: what this project wrote there, and so may replace or remove.

A folder that gets something of ours has a file `.official_bert`. Its first line holds a random
number, which the names of temporary files in the folder carry; then a line says what was written
("+") or removed ("-"), before a new name appears. A folder that came into being as a whole lists
all that is below it. Only regular files and folders are ever listed, replaced or removed; links,
devices and whatever no manifest lists stay as they are.
"""

import contextlib
import errno
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from official_bert.common.errors import UserError
from official_bert.common.held_files import is_held, lock, open_locked

FILE = ".official_bert"
_TITLE = b"# What official_bert wrote in this folder; it replaces and removes nothing else. "
_FIRST_LINE = len(_TITLE) + 30  # bytes at most
_MOST_BYTES = 1 << 28  # a larger one is none of ours: it lists some millions of names
# ".NAME.NUMBER.tmp" and ".NAME.NUMBER.old" are folders, ".NUMBER.MORE.tmp" is a file.
_TEMPORARY = re.compile(r"\.(?:(.*)\.)?([0-9a-f]{16})(?:\.[0-9a-f]{8})?\.(tmp|old)", re.DOTALL)


class _Manifest(NamedTuple):
    """What a manifest says: its numbers, none where there is no manifest; whether each name that it
    mentions was written, and not removed since."""

    numbers: list[str]
    written: dict[str, bool]


# The last one read of some folders, and the state of the file: many files are looked up in each.
_read_before: dict[Path, tuple[tuple, _Manifest]] = {}


def is_listed(path: Path) -> bool:
    """Whether the manifest of a folder above says that this project wrote `path`.

    Args:
      path: absolute, the links above it resolved.
    """
    for folder in path.parents:
        written = _read(folder).written.get(path.relative_to(folder).as_posix())
        if written is not None:
            return written
    return False


def is_ours(path: Path) -> bool:
    """Whether `path` is a listed regular file, or a listed folder."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    return (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) and is_listed(path)


def foreign(folder: Path) -> Iterator[Path]:
    """What stands in a folder, at any depth, and is not ours."""
    for path in _below(folder):
        if not (path.name == FILE and has_manifest(path.parent)) and not is_ours(path):
            yield path


def add(folder: Path, *names: str) -> None:
    """Lists what will be written in a folder; the lines are on the disk when this returns."""
    with _opened(folder) as handle:
        _write(handle, b"".join(_line("+", name) for name in names))


@contextlib.contextmanager
def adding(path: Path) -> Iterator[None]:
    """Lists what the block gives the name `path`; not so where it raises FileExistsError."""
    with _opened(path.parent) as handle:  # others may write the same file at this moment
        size = os.fstat(handle).st_size
        _write(handle, _line("+", path.name))
        try:
            yield
        except FileExistsError:
            if not _parse(os.pread(handle, size, 0)).written.get(path.name):
                _write(handle, _line("-", path.name))
            raise


def names_below(folder: Path) -> Iterator[str]:
    """What can be listed of all that is in a folder, at any depth."""
    for path in _below(folder):
        if path != folder / FILE and not path.is_symlink():
            yield path.relative_to(folder).as_posix()


def adopt(folder: str | os.PathLike, *names: str) -> None:
    """Lists what a version without manifests wrote, and all below it.

    Args:
      folder: where the caller has found a file that only this project writes.
      names: of files and folders; those that are not there do not matter. The last one, that file,
        is listed last: where it is, nothing is adopted again.
    """
    folder = Path(os.path.realpath(folder))
    if not is_listed(folder / names[-1]):
        found = [name for name in names if os.path.lexists(folder / name)]
        below = [f"{name}/{inner}" for name in found for inner in names_below(folder / name)]
        add(folder, *below, *found)


def has_manifest(folder: Path) -> bool:
    return bool(_read(folder).numbers)


def is_kept(folder: Path) -> bool:
    """Whether new folders in `folder` are listed: it has a manifest, or is ours and gets one."""
    return has_manifest(folder) or is_listed(folder)


def create(folder: Path) -> tuple[Path, int]:
    """Makes an empty temporary file of a folder: (its path, the open file, which marks it as used).

    Raises:
      UserError: the folder has a foreign file under the manifest's name.
    """
    with _opened(folder) as manifest:
        number = _parse(os.pread(manifest, _FIRST_LINE, 0)).numbers[0]
        path = folder / f".{number}.{secrets.token_hex(4)}.tmp"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        handle = os.open(path, flags, 0o666)
        lock(handle)
    return path, handle


def discard(temporary: Path) -> None:
    """Removes a temporary file that did not get its name, and a manifest that was made for it."""
    folder = temporary.parent
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)
        with _opened(folder):
            numbers, written = _read(folder)
            names = os.listdir(folder)
            used = any(name.startswith(f".{number}.") for number in numbers for name in names)
            if len(numbers) == 1 and not written and not used:
                os.unlink(folder / FILE)


def begin(folder: Path, number: str) -> None:
    """Gives a folder a further number: temporary folders are known by that of their name."""
    with _opened(folder) as handle:
        _write(handle, f"= {number}\n".encode())


def remove(*paths: Path) -> None:
    """Removes files and folders as far as they are ours; what is foreign in them, and the way
    there, stays.

    Args:
      paths: absolute, the links above them resolved.
    """
    lines: dict[Path, bytes] = {}
    for path in paths:
        if is_ours(path) and _remove(path):
            lines[path.parent] = lines.get(path.parent, b"") + _line("-", path.name)
    for folder, removed in lines.items():
        with contextlib.suppress(FileNotFoundError):
            if has_manifest(folder):
                sync(folder)  # a name that came back after a loss of power would not be ours
                with _opened(folder) as handle:
                    _write(handle, removed)


def clean(folder: str | os.PathLike) -> None:
    """Puts back or removes what killed processes left in `folder` under temporary names."""
    folder = Path(os.path.realpath(folder))
    with contextlib.suppress(OSError):
        found = [(folder / name, _TEMPORARY.fullmatch(name)) for name in os.listdir(folder)]
        found = [(path, match) for path, match in found if match and not path.is_symlink()]
        numbers = _read(folder).numbers
        files = [path for path, match in found if match[2] in numbers and path.is_file()]
        with _opened(folder) if files else contextlib.nullcontext():  # no new one is being made
            for path in files:
                if not is_held(path):
                    os.unlink(path)
        for path, match in found:
            if path.is_dir() and match[2] in _read(path).numbers and not is_held(path):
                clear_away(path, match[1], match[3])


def recover(path: Path) -> None:
    """Puts back the old folder where a replacement was cut off between its two steps.

    Only where the system cannot exchange two folders is there such a moment.
    """
    if not os.path.lexists(path):
        clean(path.parent)


def clear_away(path: Path, name: str | None = None, ending: str = "tmp") -> None:
    """Removes a temporary folder, or puts it back if it is the old one of a `name` that is gone."""
    if ending == "old" and name and not os.path.lexists(path.with_name(name)):
        os.rename(path, path.with_name(name))
        sync(path.parent)
    elif not _read(path).written:  # it was never whole
        shutil.rmtree(path, ignore_errors=True)
    else:
        _remove(path)


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


def _remove(path: Path) -> bool:
    """Whether nothing is left of a file or folder of ours."""
    try:
        if not path.is_dir():
            os.unlink(path)
            return True
        for name in os.listdir(path):
            if name != FILE and is_ours(path / name):
                _remove(path / name)
        if os.listdir(path) == [FILE] and has_manifest(path):
            os.unlink(path / FILE)
        os.rmdir(path)
        return True
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.EACCES, errno.EPERM, errno.ENOENT):
            return False
        raise


def _below(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        yield from (Path(parent, name) for name in (*folders, *names))


def _line(sign: str, name: str) -> bytes:
    return f"{sign} {json.dumps(name)}\n".encode()


def _parse(content: bytes) -> _Manifest:
    found = _Manifest([], {})
    if content.startswith(_TITLE):
        for line in content.decode("ascii", "replace").split("\n")[:-1]:
            if match := re.fullmatch(r"(?:= |# .* number )([0-9a-f]{16})", line):
                found.numbers.append(match[1])
            elif line[:3] in ('+ "', '- "'):
                with contextlib.suppress(ValueError):  # a line that was cut off
                    found.written[json.loads(line[2:])] = line[0] == "+"
    return found


def _read(folder: Path) -> _Manifest:
    """The manifest of a folder; an empty one where there is none of ours."""
    try:
        handle = os.open(folder / FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return _parse(b"")
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
        os.close(handle)
        return _parse(b"")
    with open(handle, "rb") as file:
        first = file.read(_FIRST_LINE)  # other manifests of the same size have another number
        state = status.st_size, status.st_mtime_ns, first
        before = _read_before.get(folder)
        if before and before[0] == state:
            return before[1]
        manifest = _parse(first + file.read(status.st_size - len(first)))
    if len(_read_before) > 32:
        _read_before.clear()
    _read_before[folder] = state, manifest
    return manifest


def _write(handle: int, lines: bytes) -> None:
    while lines:
        lines = lines[os.write(handle, lines) :]
    os.fsync(handle)


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """The manifest, made where it is missing, open at a new line and locked: several processes
    write to it, and a line that was cut off does no harm."""
    path, handle = folder / FILE, None
    try:
        try:
            handle, _ = open_locked(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
                raise
        is_file = handle is not None and stat.S_ISREG(os.fstat(handle).st_mode)
        start = os.pread(handle, _FIRST_LINE, 0) if is_file else b"-"
        is_new = start.startswith(_TITLE[: len(start)])  # or its first line was cut off
        is_new = is_new and b"\n" not in start and len(start) < _FIRST_LINE
        if not (is_new or _parse(start).numbers):
            raise UserError(
                f"{path} was not written by this project, which keeps a list of its files under "
                "that name; move it away or choose another folder"
            )
        if is_new:
            os.ftruncate(handle, 0)
            _write(handle, _TITLE + f"number {secrets.token_hex(8)}\n".encode())
            sync(folder)
        elif os.pread(handle, 1, os.fstat(handle).st_size - 1) != b"\n":
            os.write(handle, b"\n")
        yield handle
    finally:
        if handle is not None:
            os.close(handle)
