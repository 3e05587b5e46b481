"""safetensors files: named tensors behind a header, with nothing that could run as code.

The format has no checksums; ours are in its metadata, as JSON {tensor: CRC-32C}.
"""

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO

import google_crc32c
import numpy as np

from official_bert.common.errors import UserError
from official_bert.common.files import atomic_write, patching
from official_bert.common.json_files import parse_json
from official_bert.common.outside_files import open_file

CHECKSUMS = "official_bert_crc32c"


def open_all(
    paths: Iterable[Path], stack: contextlib.ExitStack
) -> tuple[dict[str, tuple[int, ...]], Callable[[str], np.ndarray]]:
    """Return ({name: shape}, function that reads a name) of the tensors of one or more files.

    Args:
      stack: closes the files; a tensor is read when it is asked for.

    Raises:
      UserError: one is missing or damaged; or, on reading, has a type that numpy does not have.
    """
    import safetensors

    shapes, files, checksums = {}, {}, {}
    for path in paths:
        open_file(path).close()  # the library would wait for a pipe
        try:
            file = stack.enter_context(safetensors.safe_open(path, framework="np"))
            for name in file.keys():  # noqa: SIM118 (not a dictionary)
                shapes[name] = tuple(file.get_slice(name).get_shape())
                files[name] = path, file
            stored = (file.metadata() or {}).get(CHECKSUMS)
        except (safetensors.SafetensorError, OSError, ValueError) as error:
            raise UserError(f"{path}: cannot be read ({error}); the file is damaged") from error
        checksums |= parse_json(stored, f"{path}: {CHECKSUMS}") if stored else {}

    def read(name):
        path, file = files[name]
        try:
            array = file.get_tensor(name)
        except Exception as error:  # a type that numpy does not have
            raise UserError(f"{path}: tensor {name} cannot be read ({error})") from error
        if name in checksums and _checksum(array) != checksums[name]:
            raise UserError(f"{path}: tensor {name} is damaged (its checksum is wrong)")
        return array

    return shapes, read


def write(path: str | os.PathLike, tensors: Mapping[str, np.ndarray], **metadata: str) -> None:
    """Write tensors, bfloat16 as float32 without loss; with metadata, checksums too.

    A file of a folder that has checksums of its files needs none of its own.
    """
    from safetensors.numpy import save_file

    # numpy knows no bfloat16, only its two bytes.
    arrays = {
        name: np.ascontiguousarray(array if array.dtype.kind in "biuf" else array.astype("f4"))
        for name, array in tensors.items()
    }
    if metadata:
        checksums = {name: _checksum(array) for name, array in arrays.items()}
        metadata[CHECKSUMS] = json.dumps(checksums)
    with atomic_write(path, "wb") as file:
        mode = os.fstat(file.fileno()).st_mode & 0o777
    save_file(arrays, path, metadata=metadata or None)
    os.chmod(path, mode)  # the library lets nobody else read it
    with patching(path) as file:
        _sort_metadata(file)


def _sort_metadata(file: IO[bytes]) -> None:
    """Sort the metadata; the library orders them differently in each process."""
    size = int.from_bytes(file.read(8), "little")
    header = json.loads(file.read(size))
    metadata = dict(sorted(header.pop("__metadata__", {}).items()))
    if metadata:
        header = {"__metadata__": metadata, **header}
        text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
        file.seek(8)
        file.write(text.ljust(size))


def _checksum(array: np.ndarray) -> str:
    bytes_of = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return f"{google_crc32c.value(bytes_of):08x}"
