"""Named arrays in one .npz file that holds the checksum of its names, types, shapes and bytes.

A zip file has checksums of its members' bytes alone: an array whose name is damaged would be one
that was never written.
"""

import os
import zlib

import numpy as np

from official_bert.common.errors import UserError
from official_bert.common.files import atomic_write
from official_bert.common.outside_files import open_file

_CHECKSUM = "checksum"


def write(
    path: str | os.PathLike,
    arrays: dict[str, np.ndarray],
    compressed: bool = False,
    own: bool = True,
) -> None:
    """Write the file whole or not at all.

    Args:
      compressed: whether arrays are compressed.
      own: replace an earlier one: the path is in a folder that the command holds.
    """
    save = np.savez_compressed if compressed else np.savez
    with atomic_write(path, "wb", own=own) as file:
        save(file, **arrays, **{_CHECKSUM: np.uint32(_checksum(arrays))})


def read(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """Return the arrays of a file of `write`, their checksum verified.

    Raises:
      UserError: the file is missing or damaged.
    """
    try:
        with open_file(path) as content, np.load(content, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except UserError:
        raise
    except Exception as error:  # zipfile, zlib and numpy raise many kinds
        raise UserError(f"{path} is damaged ({error})") from error
    if arrays.pop(_CHECKSUM, None) != _checksum(arrays):
        raise UserError(f"{path} is damaged (its checksum is wrong)")
    return arrays


def _checksum(arrays: dict[str, np.ndarray]) -> int:
    checksum = 0
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        checksum = zlib.crc32(f"{name} {array.dtype} {np.shape(arrays[name])}".encode(), checksum)
        checksum = zlib.crc32(array.reshape(-1).view(np.uint8).data, checksum)
    return checksum
