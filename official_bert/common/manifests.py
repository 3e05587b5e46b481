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
from collections.abc import Iterable, Iterator
from pathlib import Path

from official_bert.common.errors import UserError
from official_bert.common.held_files import is_at, lock

FILE = ".official_bert"
_TITLE = b"# What official_bert wrote in this folder; it replaces and removes nothing else. "
# ".NAME.NUMBER.tmp" and ".NAME.NUMBER.old" are folders, ".NUMBER.MORE.tmp" is a file.
_TEMPORARY = re.compile(r"\.(?:(.*)\.)?([0-9a-f]{16})(?:\.[0-9a-f]{8})?\.(tmp|old)", re.DOTALL)


def is_listed(path: Path) -> bool:
    """Whether the manifest of a folder above says that this project wrote `path`.

    Args:
      path: absolute, the links above it resolved.
    """
    for folder in path.parents:
        content = _read(folder)
        name = path.relative_to(folder).as_posix()
        written, removed = (content.rfind(b"\n" + _line(sign, name)) for sign in "+-")
        if written != removed:
            return written > removed
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
    for parent, folders, names in os.walk(folder):
        for path in (Path(parent, name) for name in (*folders, *names)):
            if not (path.name == FILE and _read(path.parent)) and not is_ours(path):
                yield path


def add(path: Path) -> None:
    """Lists what will be written as `path`; the line is on the disk when this returns."""
    with adding(path) if not is_listed(path) else contextlib.nullcontext():
        pass


@contextlib.contextmanager
def adding(path: Path) -> Iterator[None]:
    """Lists what the block gives the name `path`; not so where it raises FileExistsError."""
    with _opened(path.parent) as handle:  # others may write the same file at this moment
        new = not is_listed(path)
        if new:
            _write(handle, _line("+", path.name))
        try:
            yield
        except FileExistsError:
            if new:
                _write(handle, _line("-", path.name))
            raise


def add_below(folder: Path) -> None:
    """Lists all that is in a folder of ours, at any depth."""
    _append(folder, b"".join(_line("+", name) for name in _names_below(folder)))


def adopt(folder: str | os.PathLike, names: Iterable[str]) -> None:
    """Lists what a version without manifests wrote, and all below it.

    Args:
      folder: where the caller has found a file that only this project writes.
      names: of files and folders; those that are not there do not matter. The last one is listed
        last: it may serve as the sign that all are.
    """
    folder = Path(os.path.realpath(folder))
    lines = []
    for name in names:
        path = folder / name
        if os.path.lexists(path) and not is_listed(path):
            below = _names_below(path) if path.is_dir() and not path.is_symlink() else ()
            lines += [_line("+", f"{name}/{inner}") for inner in below] + [_line("+", name)]
    if lines:
        _append(folder, b"".join(lines))


def has_manifest(folder: Path) -> bool:
    return bool(_read(folder))


def is_kept(folder: Path) -> bool:
    """Whether new folders in `folder` are listed: it has a manifest, or is ours and gets one."""
    return has_manifest(folder) or is_listed(folder)


def keep(folder: Path) -> None:
    """Gives a folder of ours its manifest, where it has none."""
    with _opened(folder):
        pass


def discard(temporary: Path) -> None:
    """Removes a temporary file that did not get its name, and a manifest that was made for it."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)
        if b"\n+" not in _read(temporary.parent):
            with _opened(temporary.parent):
                content = _read(temporary.parent)
                number = _numbers(content)[0]
                used = any(n.startswith(f".{number}.") for n in os.listdir(temporary.parent))
                if content.count(b"\n") == 1 and not used:
                    os.unlink(temporary.parent / FILE)


def create(folder: Path) -> tuple[Path, int]:
    """Makes an empty temporary file of a folder: (its path, the open file, which marks it as used).

    Raises:
      UserError: the folder has a foreign file under the manifest's name.
    """
    with _opened(folder) as manifest:
        own_number = _numbers(os.pread(manifest, len(_TITLE) + 30, 0))[0]
        path = folder / f".{own_number}.{secrets.token_hex(4)}.tmp"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        handle = os.open(path, flags, 0o666)
        lock(handle)
    return path, handle


def begin(folder: Path, own_number: str) -> None:
    """Gives a folder a further number: temporary folders are known by that of their name."""
    _append(folder, f"= {own_number}\n".encode())


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
                _append(folder, removed)


def clean(folder: str | os.PathLike) -> None:
    """Puts back or removes what killed processes left in `folder` under temporary names."""
    folder = Path(os.path.realpath(folder))
    with contextlib.suppress(OSError):
        found = [(folder / name, _TEMPORARY.fullmatch(name)) for name in os.listdir(folder)]
        found = [(path, match) for path, match in found if match and not path.is_symlink()]
        numbers = _numbers(_read(folder))
        files = [path for path, match in found if match[2] in numbers and path.is_file()]
        with _opened(folder) if files else contextlib.nullcontext():  # no new one is being made
            for path in files:
                if not _is_held(path):
                    os.unlink(path)
        for path, match in found:
            if path.is_dir() and match[2] in _numbers(_read(path)) and not _is_held(path):
                clear_away(path, match[1], match[3])


def recover(path: Path) -> None:
    """Puts back the old folder where a replacement was cut off between its two steps.

    Only where the system cannot exchange two folders is there such a moment.
    """
    if not os.path.lexists(path):
        clean(path.parent)


def hold(folder: Path) -> int:
    """Marks a temporary folder as used until the number returned, an open file, is closed."""
    handle = os.open(folder, os.O_RDONLY)
    lock(handle)
    return handle


def clear_away(path: Path, name: str | None = None, ending: str = "tmp") -> None:
    """Removes a temporary folder, or puts it back if it is the old one of a `name` that is gone."""
    if ending == "old" and name and not os.path.lexists(path.with_name(name)):
        os.rename(path, path.with_name(name))
        sync(path.parent)
    elif b"\n+" not in _read(path):  # it was never whole
        shutil.rmtree(path, ignore_errors=True)
    else:
        _remove(path)


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


def _is_held(path: Path) -> bool:
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return True
    try:
        return not lock(handle, wait=False)
    finally:
        os.close(handle)


def _names_below(folder: Path) -> Iterator[str]:
    for parent, folders, names in os.walk(folder):
        for path in (Path(parent, name) for name in (*folders, *names)):
            if path != folder / FILE and not path.is_symlink():
                yield path.relative_to(folder).as_posix()


def _numbers(content: bytes) -> list[str]:
    return re.findall(r"(?:= |number )([0-9a-f]{16})\n", content.decode("ascii", "replace"))


def _line(sign: str, name: str) -> bytes:
    return f"{sign} {json.dumps(name)}\n".encode()


def _read(folder: Path) -> bytes:
    """The manifest of a folder; b"" where there is none of ours."""
    try:
        handle = os.open(folder / FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return b""
    with open(handle, "rb") as file:
        content = file.read()
    return content if content.startswith(_TITLE) and b"\n" in content else b""


def _append(folder: Path, lines: bytes) -> None:
    with _opened(folder) as handle:
        _write(handle, lines)


def _write(handle: int, lines: bytes) -> None:
    while lines:
        lines = lines[os.write(handle, lines) :]
    os.fsync(handle)


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """The manifest, made where it is missing, open at a new line and locked: several processes
    write to it, and a line that was cut off does no harm."""
    handle = _open(folder)
    try:
        start = os.pread(handle, len(_TITLE) + 30, 0)
        if not start.startswith(_TITLE[: len(start)]):
            raise _not_ours(folder)
        if b"\n" not in start:  # new, or its first line was cut off
            os.ftruncate(handle, 0)
            _write(handle, _TITLE + f"number {secrets.token_hex(8)}\n".encode())
            sync(folder)
        elif os.pread(handle, 1, os.fstat(handle).st_size - 1) != b"\n":
            os.write(handle, b"\n")
        yield handle
    finally:
        os.close(handle)


def _open(folder: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    while True:
        try:
            handle = os.open(folder / FILE, flags, 0o666)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
                raise _not_ours(folder) from None
            raise
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise _not_ours(folder)
        lock(handle)
        if is_at(handle, folder / FILE):
            return handle
        os.close(handle)  # its last user has just removed it


def _not_ours(folder: Path) -> UserError:
    return UserError(
        f"{folder / FILE} was not written by this project, which keeps a list of its files under "
        "that name; move it away or choose another folder"
    )


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
