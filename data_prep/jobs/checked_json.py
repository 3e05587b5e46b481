"""Work files of JSON with a checksum of their fields, on any storage.

A file that was damaged, or changed by hand, is refused when it is read.
"""

import contextlib
import json
import os

from data_prep.jobs import storage
from official_bert.common.checksums import crc32c_json
from official_bert.common.errors import UserError
from official_bert.common.json_files import parse_json
from official_bert.common.paths import is_remote

_MOST = 1_000_000_000  # bytes; the largest lists of tasks are far below


def write(path: str | os.PathLike, content: dict, overwrite: bool = False, own: bool = True) -> str:
    """Write an object with a checksum of its fields as the last field; return the checksum."""
    content = parse_json(json.dumps(content), str(path), finite=False)  # as it will be read
    checksum = crc32c_json(content)
    text = json.dumps({**content, "checksum": checksum}, indent=1)
    with storage.writing(path, overwrite, own) as file:
        file.write((text + "\n").encode())
    return checksum


def read(path: str | os.PathLike, finite: bool = True) -> dict:
    """Return the object of a file of `write`, after a check of its checksum, if it has one.

    Args:
      finite: whether NaN and infinite numbers are refused.

    Raises:
      UserError: the file is missing, damaged, too large, or not a JSON object.
    """
    path = str(path)
    if storage.exists(path) and storage.size(path) > _MOST:
        raise UserError(f"{path}: {storage.size(path):,} bytes; at most {_MOST:,} are read")
    content = parse_json(storage.read_bytes(path), path, finite=finite)
    checksum = content.pop("checksum", None)
    if checksum not in (None, crc32c_json(content)):
        raise UserError(
            f"{path} is damaged or was changed by hand (its checksum is wrong); put back what it "
            f"was, or make its folder anew"
        )
    return content


def is_ours(path: str | os.PathLike) -> bool:
    """Return whether a file is a complete one of `write`: no other program writes its checksum."""
    path = str(path)
    with contextlib.suppress(UserError, OSError, TypeError, AttributeError):
        if is_remote(path) or os.path.isfile(path):
            read(path, finite=False)
            return "checksum" in parse_json(storage.read_bytes(path), path, finite=False)
    return False
