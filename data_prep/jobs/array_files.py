"""Files of arrays: one array's raw bytes on any storage, or named arrays in a local .npz file.

The .npz file holds a checksum of its names, types, shapes and bytes. A zip file itself has
checksums of its members' bytes alone, so an array with a damaged name would pass for another one.
"""

import os
import zlib

import numpy as np

from data_prep.jobs import storage
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
    """Write named arrays to a file, whole or not at all.

    Args:
      compressed: whether arrays are compressed.
      own: replace an earlier file; for paths in a folder that the command holds.
    """
    save = np.savez_compressed if compressed else np.savez
    with atomic_write(path, "wb", own=own) as file:
        save(file, **arrays, **{_CHECKSUM: np.uint32(_checksum(arrays))})


def read(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """Return the arrays of a file that `write` wrote, after a check of their checksum.

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


def write_array(path: str, array: np.ndarray) -> int:
    """Write an array's raw bytes, little-endian; return their CRC-32."""
    data = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).view(np.uint8).data
    with storage.writing(path) as file:
        file.write(data)
    return zlib.crc32(data)


def read_array(path: str, dtype, checksum: int | None = None) -> np.ndarray:
    """Return the array of a file that `write_array` wrote; a local one is memory-mapped.

    Raises:
      UserError: the bytes do not have the checksum.
    """
    if storage.size(path) % np.dtype(dtype).itemsize:
        raise storage.damaged(path)
    if storage.is_remote(path):
        array = np.frombuffer(storage.read_bytes(path), dtype)
    elif storage.size(path) == 0:
        array = np.zeros(0, dtype)
    else:
        array = np.memmap(path, dtype, "r")
    if checksum is not None and zlib.crc32(array.view(np.uint8).data) != checksum:
        raise storage.damaged(path)
    return array


def read_slice(path: str, dtype, start: int, stop: int) -> np.ndarray:
    """Return elements start to stop - 1 of a file that `write_array` wrote."""
    size = np.dtype(dtype).itemsize
    content = storage.read_bytes(path, start * size, (stop - start) * size)
    if len(content) != (stop - start) * size:
        raise storage.damaged(path)
    return np.frombuffer(content, dtype)


def _checksum(arrays: dict[str, np.ndarray]) -> int:
    checksum = 0
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        checksum = zlib.crc32(f"{name} {array.dtype} {np.shape(arrays[name])}".encode(), checksum)
        checksum = zlib.crc32(array.reshape(-1).view(np.uint8).data, checksum)
    return checksum
