"""Output folders that remember the options they were made with."""

import os

from data_prep.jobs import storage
from official_bert.errors import UserError


def claim_folder(folder: str, options: dict, overwrite: bool, what: str) -> None:
    """Makes `folder` ours: new, or begun with the same options, or emptied by `overwrite`.

    Raises:
      UserError: it was begun with other options (listed), or holds other things.
    """
    path = os.path.join(folder, "options.json")
    if storage.exists(path):
        before = storage.read_json(path)
        differences = list(_differences(before, options))
        if not differences:
            return
        if not overwrite:
            raise UserError(
                f"{folder} holds a {what} made with other options: {'; '.join(differences[:8])}. "
                f"Choose another folder or pass --overwrite"
            )
        storage.remove(folder)
    elif storage.list_folder(folder):
        raise UserError(f"{folder} exists and is no {what}; choose another folder")
    storage.make_folder(folder)
    storage.write_json(path, options)


def _differences(before, now, name=""):
    """ "name: was X, now Y" for every leaf that differs."""
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        before, now = dict(enumerate(before)), dict(enumerate(now))
    if isinstance(before, list) and isinstance(now, list):
        yield f"{name}: was {len(before)} files, now {len(now)}"
    elif isinstance(before, dict) and isinstance(now, dict):
        for key in [*before, *(key for key in now if key not in before)]:
            path = f"{name}.{key}" if name else str(key)
            yield from _differences(before.get(key, "absent"), now.get(key, "absent"), path)
    elif before != now:
        yield f"{name}: was {before}, now {now}"
