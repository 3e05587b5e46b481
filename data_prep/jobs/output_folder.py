"""Outputs that remember the options they were made with."""

import contextlib
import os
import re
from collections.abc import Iterator
from typing import Any

from data_prep.jobs import storage
from official_bert.common import locks, manifests
from official_bert.common.errors import UserError

# What is written into folders of records and token stores.
_WRITTEN = re.compile(
    r"(options|manifest|tasks)\.json|heldout|work|vocab\.txt|tokenizer\.json|spiece\.model|"
    r"(examples-\d+-of-\d+|(chunk|joined|block|train|heldout)-\d+)\.\w+"
)
_HIDDEN = (locks.LOCK_FILE, manifests.FILE)

OPTIONS = "options.json"  # marks a folder of `claim_folder`


@contextlib.contextmanager
def locked(folder: str, *inner: str):
    """Holds a folder against other processes; what killed ones left in it half written goes.

    Args:
      folder: made where it is missing. A remote one is not locked: there are no locks there.
      inner: folders in it that its processes write to as well.

    Raises:
      UserError: another process works in it, it cannot be written, or it was removed meanwhile.
    """
    if storage.is_remote(folder):
        yield
        return
    with locks.exclusive(folder) as lock:
        for name in ("", *inner):
            manifests.clean(os.path.join(folder, name))
        yield
        lock.check()


def earlier(
    path: str, options: dict, what: str, field: str = "", overwrite: bool = False
) -> dict | None:
    """What an earlier run with the same options left in the JSON file `path`.

    Args:
      what: the thing that was made, for the message.
      field: where the file keeps the options; "" where it holds nothing else.
      overwrite: a damaged file, or one of other options, counts as none.

    Returns:
      The file's content; None where there is none.

    Raises:
      UserError: it was made with other options (listed), or is damaged.
    """
    path = str(path)
    if not storage.exists(path):
        return None
    if not storage.is_remote(path) and not os.path.isfile(path):
        raise UserError(f"{path} is in the way: it is no file; choose another output")
    try:
        content = storage.read_json(path)
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


def claim_folder(folder: str, options: dict, overwrite: bool, what: str) -> None:
    """Makes `folder` ours: new, or begun with the same options, or emptied by `overwrite`.

    Raises:
      UserError: it was begun with other options (listed), or holds other things.
    """
    path = os.path.join(folder, OPTIONS)
    before = earlier(path, options, f"the {what} in {folder}", overwrite=overwrite)
    if before is not None:
        return
    if storage.exists(path):
        names = storage.list_folder(folder)
        if storage.is_remote(folder):  # where no list is kept
            names = filter(_WRITTEN.fullmatch, names)
        storage.remove_all(os.path.join(folder, name) for name in names)
        for name in filter(_WRITTEN.fullmatch, storage.list_folder(folder)):
            raise UserError(
                f"{os.path.join(folder, name)} is in the way: this project did not write it; move "
                "it away, or choose another folder"
            )
    elif foreign := [n for n in storage.list_folder(folder) if n not in _HIDDEN]:
        raise UserError(
            f"{folder} exists and is no {what} (it holds {foreign[0]}); choose another folder"
        )
    storage.make_folder(folder)
    storage.write_json(path, options)


def _differences(before, now):
    for name, old, new in differing(before, now, absent="absent"):
        if isinstance(old, list) and isinstance(new, list):
            old, new = f"{len(old)} files", len(new)
        yield f"{name}: was {old}, now {new}"


def differing(before, now, name: str = "", absent=None) -> Iterator[tuple[str, Any, Any]]:
    """(name, value before, value now) of every leaf of JSON values that differs.

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
