"""Checks that the files of a model are what was written, and no more than they claim to be.

A checksum (CRC-32C) finds damage, not malice: who can change the weights can change the checksum,
too. A stranger's file could do more, so it is checked on its own: a model must not be larger than
its weights, and every weight must be a finite number.
"""

import math
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from official_bert.common.checksums import crc32c_file, crc32c_json
from official_bert.common.errors import UserError
from official_bert.config import BertConfig

CHECKSUMS = "checksums"
_MOST_LAYERS = 512  # layers may share weights: a small file could ask for any number
_MOST_TIMES = 4  # a model may be so many times as large as its weights file


def with_checksums(folder: str | os.PathLike, name: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Return `fields` with "checksums" added: the CRC-32C of the folder's files and of `fields`.

    Args:
      folder: the folder, complete but for the JSON file that the fields are for.
      name: the name of that file.
      fields: what it holds.
    """
    fields = {key: value for key, value in fields.items() if key != CHECKSUMS}  # of another folder
    paths = (path for path in sorted(Path(folder).rglob("*")) if path.is_file())
    found = {path.relative_to(folder).as_posix(): path for path in paths}
    checksums = {inner: crc32c_file(path) for inner, path in found.items()}
    return {**fields, CHECKSUMS: {**checksums, name: crc32c_json(fields)}}


def check_folder(
    folder: str | os.PathLike, name: str, fields: dict[str, Any], required: bool = False
) -> None:
    """Compare a folder with the checksums in its file `name`, whose contents are `fields`.

    Args:
      required: whether a folder without checksums is an error, or only gets a warning.

    Raises:
      UserError: a file differs; the message names it.
    """
    folder = Path(folder)
    fields = dict(fields)
    checksums = fields.pop(CHECKSUMS, None)
    if checksums is None and required:
        raise UserError(f"{folder / name} has no {CHECKSUMS}; an earlier version wrote it")
    if checksums is None:
        warnings.warn(
            f"{folder / name} has no {CHECKSUMS}: damage of this folder would not be noticed; "
            "write it again to add them",
            stacklevel=3,
        )
        return
    if not isinstance(checksums, dict) or checksums.get(name) != crc32c_json(fields):
        raise _differs(folder / name, name)
    for other in checksums:
        path = folder / other
        if other == name or other.startswith("."):
            continue
        inside = folder in path.parents and ".." not in Path(other).parts
        if not (inside and os.path.isfile(path)):
            raise UserError(f"{path}: missing, but {name} has its checksum")
        if crc32c_file(path) != checksums[other]:
            raise _differs(path, name)


def check_size(
    config: BertConfig, settings: dict[str, Any], numbers: int, source: str | os.PathLike
) -> None:
    """Compare the size of the model that a configuration asks for with that of its weights.

    It is called before anything is built: a few bytes of JSON could otherwise ask for all memory.

    Args:
      config, settings: as in `model_folder.build`.
      numbers: how many numbers the weights have.

    Raises:
      UserError: the model would be several times as large.
    """
    if config.num_hidden_layers > _MOST_LAYERS:
        raise UserError(
            f"{source}: the configuration beside it says {config.num_hidden_layers:,} layers; at "
            f"most {_MOST_LAYERS} are read"
        )
    needed = config.num_parameters
    needed += config.hidden_size * (settings.get("num_labels") or 0)
    if needed > _MOST_TIMES * numbers + (1 << 20):
        raise UserError(
            f"{source}: holds {numbers:,} numbers, but the configuration beside it describes a "
            f"model of {needed:,}"
        )


def check_type(name: str, what: str, source: str | os.PathLike) -> None:
    """Check that tensors of a type, such as "float16", can be a model's weights as they are.

    Raises:
      UserError: they are whole numbers or of eight bits (a quantised model's, which mean nothing
        without their scales), complex, or no numbers.
    """
    if name not in ("float16", "bfloat16", "float32", "float64"):
        raise UserError(
            f"{source}: {what} is {name}: a weight must be float16, bfloat16, float32 or float64; "
            "take the weights from before they were quantised or converted"
        )


def check_finite(array: np.ndarray, name: str, source: str | os.PathLike) -> None:
    """Check that all numbers are finite.

    Raises:
      UserError: a number is infinite or none (NaN): such a model answers nothing but NaN.
    """
    # Minimum and maximum are NaN where any number is; so no temporary array of bools is needed.
    if array.size and not (math.isfinite(array.min()) and math.isfinite(array.max())):
        raise UserError(f"{source}: {name} holds numbers that are infinite or NaN")


def _differs(path: Path, name: str) -> UserError:
    return UserError(
        f"{path}: its checksum is not the one in {name}: it is damaged or was changed by hand; "
        f"take an intact copy or, to keep the change, remove {CHECKSUMS!r} from {name}"
    )
