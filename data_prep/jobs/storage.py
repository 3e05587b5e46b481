"""Files of the data pipeline, on a local disk or any remote file system of fsspec.

Every path of every command of `data_prep` goes through here. One with "://" ("gs://bucket/records",
"s3://...", "hdfs://...") is remote and needs the extra that reaches it: pip install
'official-bert[gcs]', [s3], [azure] or [hdfs]. Local paths import nothing. Files appear whole or not
at all: they are made in a temporary folder, then renamed locally or uploaded in one piece. A name
that is taken is refused, as in `files`. S3 and Google's store can upload without replacing; other
stores are asked before whether the name is free. A store renames by copying.
"""

import concurrent.futures
import contextlib
import gzip
import hashlib
import io
import itertools
import os
import re
import shutil
import sys
from collections.abc import Iterable

from data_prep.jobs import walk
from official_bert.common import files as local_files
from official_bert.common.errors import UserError, first_line, os_errors
from official_bert.common.files import atomic_write
from official_bert.common.outside_files import open_file
from official_bert.common.paths import is_remote

# Extras to install, by kind of remote path.
_EXTRAS = {
    "gs": "gcs", "gcs": "gcs", "s3": "s3", "s3a": "s3",
    "abfs": "azure", "abfss": "azure", "az": "azure", "adl": "azure", "hdfs": "hdfs",
}  # fmt: skip


def exists(path: str) -> bool:
    """Return whether a name exists.

    A link that leads nowhere exists; reading it is refused.
    """
    return _remote(path, "exists") if is_remote(path) else os.path.lexists(path)


def is_directory(path: str) -> bool:
    return _remote(path, "isdir") if is_remote(path) else os.path.isdir(path)


def size(path: str) -> int:
    if is_remote(path):
        return _remote(path, "size")
    with os_errors(path):
        return os.path.getsize(path)


def modified(path: str) -> int:
    """Return the time of a file's last write, in nanoseconds."""
    if is_remote(path):
        return int(_remote(path, "modified").timestamp() * 1e9)
    with os_errors(path):
        return os.stat(path).st_mtime_ns


def absolute(path: str) -> str:
    """Return the path in a form that is valid from any folder."""
    return str(path) if is_remote(path) else os.path.abspath(path)


def matches(pattern: str) -> list[str]:
    """Return the files that a glob pattern names, sorted; `**` matches folders at any depth."""
    if is_remote(pattern):
        files, inner = _file_system(pattern)
        prefix = pattern.removesuffix(inner)
        found = files.glob(inner, detail=True).items()
        return sorted(prefix + path for path, info in found if info["type"] == "file")
    return walk.matches(pattern)


def files_below(folder: str) -> list[str]:
    """Return the files in a folder, at any depth, sorted, without hidden ones; see `walk`."""
    if is_remote(folder):
        files, inner = _file_system(folder)
        prefix = folder.removesuffix(inner)
        below = ((path, path.removeprefix(inner).split("/")) for path in files.find(inner))
        return sorted(prefix + p for p, parts in below if not any(x[:1] == "." for x in parts))
    return walk.files_below(folder)


def list_folder(path: str) -> list[str]:
    """Return the names in a folder, sorted; [] where it does not exist."""
    if not exists(path):
        return []
    names = _remote(path, "ls", detail=False) if is_remote(path) else os.listdir(path)
    return sorted(name.rstrip("/").rpartition("/")[2] for name in names)


def make_folder(path: str) -> None:
    if is_remote(path):
        _remote(path, "makedirs", exist_ok=True)
    else:
        local_files.make_folder(path)


def remove(path: str) -> None:
    """Remove a file or a whole folder that a command made, inside a folder that it holds."""
    if not is_remote(path):
        local_files.remove(path)
    elif exists(path):
        _remote(path, "rm", recursive=True)


def remove_all(paths: Iterable[str]) -> None:
    """Remove files; remote ones several at a time, since stores answer slowly."""
    paths = list(paths)
    local_files.remove(*(path for path in paths if not is_remote(path)))
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(remove, filter(is_remote, paths)))


def remove_known(folder: str, names: re.Pattern) -> None:
    """Remove files with these names from a folder that a command made, then the folder if empty.

    A local link to a folder stays.
    """
    local = not is_remote(folder)
    if local and os.path.islink(folder) or not is_directory(folder):
        return
    remove_all(os.path.join(folder, n) for n in list_folder(folder) if names.fullmatch(n))
    if local:
        local_files.remove_unfinished(folder, names)
        local_files.remove_empty(folder)
    elif not list_folder(folder):
        with contextlib.suppress(OSError, NotImplementedError):  # most stores have no folders
            _remote(folder, "rmdir")


def set_aside(path: str) -> None:
    """Rename a file or folder to NAME.~1~, or the next free number, and say so.

    A store does that by copying; after a failure half way, both names have some of the files.
    """
    if not is_remote(path):
        local_files.set_aside(path)
        return
    names = (f"{path.rstrip('/')}.~{number}~" for number in itertools.count(1))
    backup = next(name for name in names if not exists(name))
    files, inner = _file_system(path)
    files.mv(inner, _file_system(backup)[1], recursive=is_directory(path))
    print(f"{path} is renamed to {backup.rpartition('/')[2]}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def writing(path: str, overwrite: bool = False, own: bool = True):
    """Open a binary file that appears under `path` when the block succeeds.

    Args:
      overwrite: rename an existing one.
      own: replace an existing one; for paths in a folder that the command holds.

    Raises:
      UserError: something stands there, or it cannot be written.
    """
    if not is_remote(path):
        with atomic_write(path, "wb", overwrite, own) as file:
            yield file
        return
    check_free(path, overwrite or own)
    with local_files.scratch() as folder:
        copy = os.path.join(folder, "upload")
        with atomic_write(copy, "wb") as file:
            yield file
        if not own and exists(path):
            check_free(path, overwrite)
            set_aside(path)
        files, inner = _file_system(path)
        files.makedirs(inner.rpartition("/")[0], exist_ok=True)
        try:
            files.put_file(copy, inner, mode="overwrite" if own else "create")
        except FileExistsError:
            raise UserError(f"{path} came to be meanwhile; choose another name") from None


def check_free(path: str, overwrite: bool = False) -> None:
    """Raise UserError where something stands at a path that is to be written (`files`)."""
    if not is_remote(path):
        local_files.check_free(path, overwrite)
    elif not overwrite and exists(path):
        raise UserError(
            f"{path} exists already; choose another name or pass --overwrite, which renames it"
        )


def reading(path: str) -> io.BufferedReader:
    """Open a file for reading bytes.

    Raises:
      UserError: it is missing, no regular file, or cannot be opened.
    """
    if is_remote(path):
        with os_errors(path):
            return io.BufferedReader(_remote(path, "open", "rb"), 1 << 20)
    return open_file(path)


def read_bytes(path: str, offset: int = 0, count: int | None = None) -> bytes:
    """Return some bytes of a file, or all from `offset` on."""
    if is_remote(path):
        end = None if count is None else offset + count
        return _remote(path, "cat_file", start=offset, end=end)
    with reading(path) as file:
        file.seek(offset)
        return file.read() if count is None else file.read(count)


def sha256(path: str) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    with reading(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprint(path: str) -> dict:
    """Return fields that identify a file wherever it is: name, size and, if local, SHA-256."""
    digest = {} if is_remote(path) else {"sha256": sha256(path)}
    return {"file": os.path.basename(path), "bytes": size(path), **digest}


def check_unchanged(paths: Iterable[str], before: Iterable[dict]) -> None:
    """Raise UserError where a file no longer has the `fingerprint` from before it was read."""
    for path, known in zip(paths, before, strict=True):
        if not exists(path) or not fingerprint(path).items() <= known.items():
            raise UserError(f"{path} changed while it was read; run again when nothing writes it")


@contextlib.contextmanager
def local_copy(path: str):
    """Return the path itself, or the path of a temporary copy of a remote file."""
    if not is_remote(path):
        yield path
        return
    with local_files.scratch() as folder:
        copy = os.path.join(folder, path.rsplit("/", 1)[1])
        with atomic_write(copy, "wb") as file, reading(path) as source:
            shutil.copyfileobj(source, file, 1 << 20)
        yield copy


@contextlib.contextmanager
def gzipped(file):
    """Return a binary file that writes gzip to an open one, without name and time.

    So equal content gives equal bytes.

    Level 4 takes a third of the time of the usual 6 and makes text 4% larger.
    """
    with gzip.GzipFile("", "wb", 4, file, mtime=0) as compressed:
        yield compressed


def copy_file(path: str, target: str, overwrite: bool = False, own: bool = True) -> None:
    """Copy a small file; either may be remote."""
    with writing(target, overwrite, own) as file:
        file.write(read_bytes(path))


def damaged(path: str) -> UserError:
    """Return the error to raise where a work file of the pipeline has a wrong checksum."""
    return UserError(
        f"{path} is damaged (its checksum is wrong); remove the folder {os.path.dirname(path)} "
        f"and run again"
    )


def _remote(path: str, method: str, *arguments, **options):
    """Call a method of the path's file system."""
    files, inner = _file_system(path)
    return getattr(files, method)(inner, *arguments, **options)


def _file_system(path: str):
    """Return the fsspec file system of a remote path, and the path in that system."""
    scheme = str(path).partition("://")[0]
    try:
        import fsspec

        # Other processes write files too, so listings must not be cached.
        return fsspec.core.url_to_fs(str(path), use_listings_cache=False)
    except ImportError:
        extra = _EXTRAS.get(scheme, "s3")
        raise UserError(f"{path} needs: pip install 'official-bert[{extra}]'") from None
    except ValueError:
        raise UserError(
            f"{path}: {scheme}:// is not a kind of path that is known here; there are "
            f"{', '.join(_EXTRAS)}, and local paths"
        ) from None
    except OSError as error:
        raise UserError(f"{path} cannot be reached: {first_line(error)}") from None
