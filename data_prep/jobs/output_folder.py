"""Outputs that remember the options with which they were made."""

import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from itertools import filterfalse
from typing import Any

from data_prep.jobs import checked_json, locks, storage
from official_bert.common.errors import UserError
from official_bert.common.files import is_unfinished, remove_unfinished

# Files of folders of records and token stores.
_WRITTEN = re.compile(
    r"(options|manifest|tasks)\.json|heldout|work|vocab\.txt|tokenizer\.json|spiece\.model|"
    r"(examples-\d+-of-\d+|(chunk|joined|block|train|heldout)-\d+)\.\w+"
)
OPTIONS = "options.json"  # marker of a folder of `claim_folder`


@contextlib.contextmanager
def locked(folder: str) -> Iterator[locks.FolderLock | None]:
    """Hold a folder against other processes; make it if it is missing.

    A remote one is not locked, since remote storage has no locks.

    Raises:
      UserError: another process works in it, it cannot be written, or it was removed meanwhile.
    """
    if storage.is_remote(folder):
        yield None
        return
    with locks.exclusive(folder) as lock:
        yield lock
        lock.check()


def earlier(
    path: str, options: dict, what: str, field: str = "", overwrite: bool = False
) -> dict | None:
    """Return the content of the JSON file that an earlier run with the same options left.

    Args:
      path: the file.
      what: the thing that was made, for the message.
      field: field of the file with the options; "" where the file is the options.
      overwrite: a damaged file, or one of other options, counts as missing.

    Returns:
      The file's content; None where there is none.

    Raises:
      UserError: it was made with other options (listed), or is damaged.
    """
    path = str(path)
    if not storage.exists(path):
        return None
    if not storage.is_remote(path) and not os.path.isfile(path):
        raise UserError(f"{path} is in the way: it is not a file; choose another output")
    try:
        content = checked_json.read(path)
        differences = list(_differences(content[field] if field else content, options))
    except (UserError, KeyError, TypeError, AttributeError) as error:
        if overwrite:
            return None
        raise UserError(
            f"{path} is damaged ({error}); delete it, or choose another output"
        ) from None
    if differences and not overwrite:
        raise UserError(
            f"{what} was made with other options: {'; '.join(differences[:8])}. "
            f"Choose another output or pass --overwrite"
        )
    return None if differences else content


def claim_folder(folder: str, options: dict, overwrite: bool, what: str, lock=None) -> None:
    """Begin a folder, or continue one that was begun with the same options.

    Half-written files of killed processes are removed.

    Args:
      overwrite: rename a folder of other options or of other things, and begin a new one.
      lock: the result of `locked`.

    Raises:
      UserError: it was begun with other options (listed), or holds other things.
    """
    path = os.path.join(folder, OPTIONS)
    before = earlier(path, options, f"the {what} in {folder}", overwrite=overwrite)
    if before is None:
        begin(folder, OPTIONS, None, overwrite, lock)
        checked_json.write(path, options)
    if not storage.is_remote(folder):
        for inner in (folder, os.path.join(folder, "heldout")):
            remove_unfinished(inner, _WRITTEN)


def begin(
    folder: str | os.PathLike,
    marker: str,
    names: Iterable[str] | None,
    overwrite: bool = False,
    lock: locks.FolderLock | None = None,
) -> None:
    """Begin a folder that a command writes piece by piece, or continue one.

    The caller writes the marker next, before anything else. From then on the command may replace
    and remove files with its names; files that were there before are not its own.

    Args:
      marker: name of the file that every folder of this kind has.
      names: names of everything else that the command writes there; None: all names.
      overwrite: rename the folder where one of the names is taken, and begin a new one.
      lock: the folder's, if it is locked.

    Raises:
      UserError: a name is taken, there is no marker, and `overwrite` is false.
    """
    there = set(filterfalse(is_unfinished, storage.list_folder(str(folder)))) - {locks.LOCK_FILE}
    taken = sorted(there if names is None else there & {marker, *names})
    if taken and overwrite:
        lock.begin_anew() if lock else storage.set_aside(str(folder))
    elif taken and marker not in there:
        raise UserError(
            f"{os.path.join(folder, taken[0])} is in the way: {folder} has no {marker}, so no such "
            "command wrote it; move it away, or choose another folder"
        )
    storage.make_folder(str(folder))


def _differences(before, now):
    for name, old, new in differing(before, now, absent="absent"):
        if isinstance(old, list) and isinstance(new, list):
            old, new = f"{len(old)} files", len(new)
        yield f"{name}: was {old}, now {new}"


def differing(before, now, name: str = "", absent=None) -> Iterator[tuple[str, Any, Any]]:
    """Yield (name, value before, value now) of each leaf that differs between two JSON values.

    Lists of different lengths are leaves; `absent` stands for fields that are not there.
    """
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        before, now = dict(enumerate(before)), dict(enumerate(now))
    if isinstance(before, dict) and isinstance(now, dict):
        for key in {**before, **now}:
            inner = before.get(key, absent), now.get(key, absent)
            yield from differing(*inner, f"{name}.{key}" if name else str(key), absent)
    elif before != now:
        yield name, before, now
