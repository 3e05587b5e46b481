"""The manifest of a folder: what this project wrote there, and so may replace or remove.

A folder that gets something of ours has a file `.official_bert`. Its first line holds a random
number, which the names of temporary files in the folder carry; then a line says what was written
("+") or removed ("-"), before a new name appears. A folder that came into being as a whole lists
all that is below it. Only regular files and folders are ever listed, replaced or removed; links,
devices and whatever no manifest lists stay as they are.

Folders are given to these functions as absolute paths whose links are resolved.
"""

import contextlib
import errno
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from official_bert.common.errors import UserError
from official_bert.common.outside_files import open_file
from official_bert.common.system import is_held, lock, open_locked, sync

FILE = ".official_bert"
_TITLE = b"# What official_bert wrote in this folder; it replaces and removes nothing else. "
_FIRST_LINE = len(_TITLE) + 30  # bytes at most
_MOST_BYTES = 1 << 28  # a larger one is none of ours: it lists some millions of names
# ".NAME.NUMBER.tmp" and ".NAME.NUMBER.old" are folders, ".NUMBER.MORE.tmp" is a file.
_TEMPORARY = re.compile(r"\.(?:(.*)\.)?([0-9a-f]{16})(?:\.[0-9a-f]{8})?\.(tmp|old)", re.DOTALL)


class _Manifest(NamedTuple):
    """What a manifest says: its numbers; whether each name that it mentions was written, and not
    removed since; and whether it is one at all, though its first line may be cut off."""

    numbers: list[str]
    written: dict[str, bool]
    ours: bool


# The last one read of some folders, and the state of the file: many files are looked up in each.
_read_before: dict[Path, tuple[tuple, _Manifest]] = {}


def is_listed(path: Path) -> bool:
    """Whether the manifest of a folder above says that this project wrote `path`."""
    for folder in path.parents:
        written = _read(folder).written.get(path.relative_to(folder).as_posix())
        if written is not None:
            return written
    return False


def is_ours(path: Path) -> bool:
    """Whether `path` is a listed regular file, or a listed folder."""
    plain = not path.is_symlink() and (os.path.isfile(path) or os.path.isdir(path))
    return plain and is_listed(path)


def is_kept(folder: Path) -> bool:
    """Whether new folders in `folder` are listed: it has a manifest, or is ours and gets one."""
    return bool(_read(folder).numbers) or is_listed(folder)


def foreign(folder: Path) -> list[Path]:
    """What stands in a folder, at any depth, and is not ours, sorted."""
    found = (p for p in _below(folder) if p.name != FILE or not _read(p.parent).ours)
    return sorted(path for path in found if not is_ours(path))


def add(folder: Path, *names: str) -> None:
    """Lists what will be written in a folder; the lines are on the disk when this returns."""
    _write(folder, b"".join(_line("+", name) for name in names))


def add_whole(folder: Path, *names: str) -> list[Path]:
    """Lists files and folders, and all below them; returns what it listed, inner names first."""
    tops = [folder / name for name in names if name != FILE and os.path.exists(folder / name)]
    found = [path for top in tops for path in (*_below(top), top) if not path.is_symlink()]
    add(folder, *(path.relative_to(folder).as_posix() for path in found))
    return found


def adopt(folder: str | os.PathLike, *names: str) -> None:
    """Lists what a version without manifests wrote, and all below it.

    Args:
      folder: where the caller has found a file that only this project writes.
      names: of files and folders; those that are not there do not matter. The last one, that file,
        is listed last: where it is, nothing is adopted again.
    """
    folder = Path(os.path.realpath(folder))
    if not is_listed(folder / names[-1]):
        add_whole(folder, *names)


@contextlib.contextmanager
def adding(path: Path) -> Iterator[None]:
    """Lists what the block gives the name `path`; not so where it fails."""
    with _opened(path.parent) as handle:  # others may write the same file at this moment
        size = os.fstat(handle).st_size
        _append(handle, _line("+", path.name))
        try:
            yield
        except OSError:
            if not _parse(os.pread(handle, size, 0)).written.get(path.name):
                _append(handle, _line("-", path.name))
            raise


def begin(folder: Path, number: str) -> None:
    """Gives a folder a further number: temporary folders are known by that of their name."""
    _write(folder, f"= {number}\n".encode())


def create(folder: Path) -> tuple[Path, int]:
    """Makes an empty temporary file of a folder: (its path, the open file, which marks it as used).

    Raises:
      UserError: the folder has a foreign file under the manifest's name.
    """
    with _opened(folder) as manifest:
        number = _parse(os.pread(manifest, _FIRST_LINE, 0)).numbers[0]
        path = folder / f".{number}.{secrets.token_hex(4)}.tmp"
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        lock(handle)
    return path, handle


def discard(temporary: Path) -> None:
    """Removes a temporary file that did not get its name, and a manifest that was made for it."""
    folder = temporary.parent
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)
        with _opened(folder):
            numbers, written, _ = _read(folder)
            used = any(name.startswith(f".{n}.") for n in numbers for name in os.listdir(folder))
            if len(numbers) == 1 and not written and not used:
                os.unlink(folder / FILE)


def remove(*paths: str | os.PathLike) -> None:
    """Removes files and folders with all in them as far as they are ours; the rest stays, and the
    way there. So does a link, while the folder that it leads to is emptied of what is ours."""
    named = [Path(os.path.realpath(os.path.dirname(p)), os.path.basename(p)) for p in paths]
    for path in list(named):
        if path.is_symlink() and path.is_dir():
            named += path.resolve().iterdir()
    gone = [path for path in named if is_ours(path) and _remove(path)]
    for folder in {path.parent for path in gone}:
        with contextlib.suppress(FileNotFoundError):
            if _read(folder).numbers:
                sync(folder)  # a name that came back after a loss of power would not be ours
                lines = [_line("-", path.name) for path in gone if path.parent == folder]
                _write(folder, b"".join(lines))


def clean(folder: str | os.PathLike) -> None:
    """Puts back or removes what killed processes left in `folder` under temporary names.

    Put back is an old folder where a replacement was cut off between its two steps, on systems that
    cannot exchange two folders.
    """
    folder = Path(os.path.realpath(folder))
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            path, match = folder / name, _TEMPORARY.fullmatch(name)
            if match is None or path.is_symlink():
                continue
            if path.is_dir():
                if match[2] not in _read(path).numbers or is_held(path):
                    continue
                home = path.with_name(match[1] or name)
                if match[3] == "old" and not os.path.lexists(home):
                    os.rename(path, home)
                    sync(folder)
                else:
                    clear_away(path)
            elif path.is_file() and match[2] in _read(folder).numbers:
                with _opened(folder):  # no new one is being made
                    if not is_held(path):
                        os.unlink(path)


def clear_away(path: Path) -> None:
    """Removes a temporary folder, or what is ours in an old one."""
    if _read(path).written:
        _remove(path)
    else:  # it was never whole
        shutil.rmtree(path, ignore_errors=True)


def _remove(path: Path) -> bool:
    """Whether nothing is left of a file or folder of ours."""
    try:
        if not path.is_dir():
            os.unlink(path)
            return True
        for name in os.listdir(path):
            if name != FILE and is_ours(path / name):
                _remove(path / name)
        if os.listdir(path) == [FILE] and _read(path).ours:
            os.unlink(path / FILE)
        os.rmdir(path)
        return True
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.EACCES, errno.EPERM, errno.ENOENT):
            return False
        raise


def _below(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder, topdown=False):
        yield from (Path(parent, name) for name in (*names, *folders))


def _line(sign: str, name: str) -> bytes:
    return f"{sign} {json.dumps(name)}\n".encode()


def _parse(content: bytes) -> _Manifest:
    numbers, written = [], {}
    if content.startswith(_TITLE):
        for line in content.decode("ascii", "replace").split("\n")[:-1]:
            if match := re.fullmatch(r"(?:= |# .* number )([0-9a-f]{16})", line):
                numbers.append(match[1])
            elif line[:3] in ('+ "', '- "'):
                with contextlib.suppress(ValueError):  # a line that was cut off
                    written[json.loads(line[2:])] = line[0] == "+"
    begun = content.startswith(_TITLE[: len(content)]) and b"\n" not in content
    return _Manifest(numbers, written, bool(numbers) or begun and len(content) < _FIRST_LINE)


def _read(folder: Path) -> _Manifest:
    """The manifest of a folder; an empty one where there is none of ours."""
    try:
        file = open_file(folder / FILE, most_bytes=_MOST_BYTES, links=False)
    except UserError:
        return _Manifest([], {}, False)
    with file:
        status = os.fstat(file.fileno())
        first = file.read(_FIRST_LINE)  # other manifests of the same size have another number
        state = status.st_size, status.st_mtime_ns, first
        before = _read_before.get(folder)
        if before is None or before[0] != state:
            if len(_read_before) > 32:
                _read_before.clear()
            before = state, _parse(first + file.read(status.st_size - len(first)))
            _read_before[folder] = before
    return before[1]


def _write(folder: Path, lines: bytes) -> None:
    with _opened(folder) as handle:
        _append(handle, lines)


def _append(handle: int, lines: bytes) -> None:
    while lines:
        lines = lines[os.write(handle, lines) :]
    os.fsync(handle)


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """The manifest, made where it is missing, open at a new line and locked: several processes
    write to it, and a line that was cut off does no harm."""
    path = folder / FILE
    if os.path.lexists(path) and (path.is_symlink() or not path.is_file()):
        raise _not_ours(path)
    handle, _ = open_locked(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    try:
        found = _parse(os.pread(handle, _FIRST_LINE, 0))
        if not found.ours:
            raise _not_ours(path)
        if not found.numbers:
            os.ftruncate(handle, 0)
            _append(handle, _TITLE + f"number {secrets.token_hex(8)}\n".encode())
            sync(folder)
        elif os.pread(handle, 1, os.fstat(handle).st_size - 1) != b"\n":
            os.write(handle, b"\n")
        yield handle
    finally:
        os.close(handle)


def _not_ours(path: Path) -> UserError:
    return UserError(
        f"{path} was not written by this project, which keeps a list of its files under that name; "
        "move it away or choose another folder"
    )
