"""Paths that a user gives: remote or local, through links, inside a folder or not."""

import os
import re
from pathlib import Path

from official_bert.common.errors import UserError

# The process's own streams, which are written to and never replaced.
OWN_STREAM = re.compile(r"/dev/(stdout|stderr|fd/(\d+))|/proc/self/fd/(\d+)")


def inside(folder: str | os.PathLike, name: str, source: str | os.PathLike) -> Path:
    """Return the path in `folder` of the file `name` of `source`, a list of files.

    A name that no file can have (control characters, over 255 bytes) is refused here as well, since
    the system would answer with other errors. A link may lead to the blobs of a Hugging Face cache,
    which is laid out so.

    Raises:
      UserError: the name leads out of the folder.
    """
    folder = Path(folder)
    path = folder / name
    plain = name not in ("", ".", "..") and not set(name) & {"/", "\\"}
    plain = plain and name.isprintable() and len(name.encode()) <= 255
    if plain and path.is_symlink():
        target, home = (Path(os.path.realpath(each)) for each in (path, folder))
        blobs = home.parent.parent / "blobs" if home.parent.name == "snapshots" else home
        plain = target.parent in (home, blobs)
    if not plain:
        raise UserError(f"{source}: it names the file {name!r}, which is outside of {folder}")
    return path


def is_remote(path: str | os.PathLike) -> bool:
    return "://" in str(path)


def named_path(path: str | os.PathLike) -> Path:
    """Return the absolute form of a local path; a link at its end is not followed."""
    above, name = os.path.split(os.fspath(local_path(path)))
    if name in ("", ".", ".."):
        return Path(os.path.realpath(path))
    return Path(os.path.realpath(above or "."), name)


def local_path(path: str | os.PathLike) -> Path:
    """Return the path of a local file or folder.

    A remote one is refused: "gs://bucket/x" would be the local folder "gs:".

    Raises:
      UserError: the path is remote.
    """
    if is_remote(path):
        raise UserError(
            f"{path} is a remote path; this is written to local folders only: give one, and copy "
            f"it when it is done"
        )
    return Path(path)
