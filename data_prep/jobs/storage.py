"""Arrays and JSON files of the data pipeline, on a local disk or any file system of tf.io.gfile.

A path with "://" ("gs://bucket/records") goes through TensorFlow's file systems, so that cluster
workers can share a folder; local paths never import TensorFlow. Files appear whole or not at all:
locally by renaming a temporary file, remotely because object stores publish a file when it closes.
"""

import contextlib
import glob
import gzip
import io
import json
import os
import shutil
import tempfile
import zlib

import google_crc32c
import numpy as np

from official_bert.errors import UserError
from official_bert.files import atomic_write, sha256_file
from official_bert.json_files import parse_json


def is_remote(path: str) -> bool:
    return "://" in str(path)


def exists(path: str) -> bool:
    return _gfile().exists(path) if is_remote(path) else os.path.exists(path)


def is_directory(path: str) -> bool:
    return _gfile().isdir(path) if is_remote(path) else os.path.isdir(path)


def size(path: str) -> int:
    if is_remote(path):
        return _gfile().stat(path).length
    try:
        return os.path.getsize(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from error


def modified(path: str) -> int:
    """When a file was last written, in nanoseconds."""
    return _gfile().stat(path).mtime_nsec if is_remote(path) else os.stat(path).st_mtime_ns


def absolute(path: str) -> str:
    """The path as it is found from any folder."""
    return str(path) if is_remote(path) else os.path.abspath(path)


def matches(pattern: str) -> list[str]:
    """Files that a glob pattern names, sorted; `**` stands for folders at any depth."""
    if is_remote(pattern):
        return sorted(_gfile().glob(pattern))
    return sorted(path for path in glob.glob(pattern, recursive=True) if os.path.isfile(path))


def list_folder(path: str) -> list[str]:
    """Names in a folder, sorted; none where the folder does not exist."""
    if not exists(path):
        return []
    names = _gfile().listdir(path) if is_remote(path) else os.listdir(path)
    return sorted(name.rstrip("/") for name in names)


def make_folder(path: str) -> None:
    _gfile().makedirs(path) if is_remote(path) else os.makedirs(path, exist_ok=True)


def remove(path: str) -> None:
    """Removes a file or a whole folder, if it is there."""
    if is_remote(path):
        if exists(path):
            (_gfile().rmtree if _gfile().isdir(path) else _gfile().remove)(path)
    elif os.path.isdir(path):
        shutil.rmtree(path)
    else:
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)


@contextlib.contextmanager
def writing(path: str):
    """A binary file that appears under `path` when the block succeeds."""
    if is_remote(path):
        with _gfile().GFile(path, "wb") as file:
            yield file
    else:
        with atomic_write(path, "wb") as file:
            yield file


def reading(path: str) -> io.BufferedReader:
    """Opens a file for reading bytes.

    Raises:
      UserError: it is missing, is a folder or cannot be opened.
    """
    if is_remote(path):
        if not exists(path):
            raise UserError(f"{path} does not exist")
        return io.BufferedReader(_RemoteFile(_gfile().GFile(path, "rb")), 1 << 20)
    try:
        return open(path, "rb")
    except FileNotFoundError:
        raise UserError(f"{path} does not exist") from None
    except IsADirectoryError:
        raise UserError(f"{path} is a folder, not a file") from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None


def read_bytes(path: str, offset: int = 0, count: int | None = None) -> bytes:
    with reading(path) as file:
        file.seek(offset)
        return file.read() if count is None else file.read(count)


@contextlib.contextmanager
def local_copy(path: str):
    """The path itself, or that of a temporary copy of a remote file."""
    if not is_remote(path):
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, path.rsplit("/", 1)[1])
        with open(copy, "wb") as file:
            file.write(read_bytes(path))
        yield copy


@contextlib.contextmanager
def packing(file):
    """A binary file that writes gzip to an open one; no name and no time, so the same bytes."""
    with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
        yield packed


def load_vocab(path: str, sha256: str = "") -> list[str]:
    """The entries of a vocabulary file.

    Args:
      sha256: the digest that the file has to have; "": any.

    Raises:
      UserError: it is missing, no vocabulary, or not the file that it was.
    """
    from official_bert import tokenization

    with local_copy(path) as local:
        if sha256 and sha256_file(local) != sha256:
            raise damaged(path)
        return tokenization.load_vocab(local)


def write_json(path: str, content: dict) -> None:
    """Writes an object and, as its last field, the checksum of the others."""
    text = json.dumps({**content, "checksum": _checksum(content)}, indent=1)
    with writing(path) as file:
        file.write((text + "\n").encode())


def read_json(path: str) -> dict:
    """The object of a file of `write_json`, its checksum verified where it has one.

    Raises:
      UserError: the file is damaged or holds no object.
    """
    content = parse_json(read_bytes(path), path)
    checksum = content.pop("checksum", None)
    if checksum not in (None, _checksum(content)):
        raise UserError(
            f"{path} is damaged or was changed by hand (its checksum is wrong); put back what it "
            f"was, or make its folder anew"
        )
    return content


def _checksum(content: dict) -> str:
    text = json.dumps(content, sort_keys=True)
    return f"{google_crc32c.value(text.encode()):08x}"


def write_array(path: str, array: np.ndarray) -> int:
    """Writes the array's raw bytes, little-endian; returns their CRC-32."""
    data = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).view(np.uint8).data
    with writing(path) as file:
        file.write(data if not is_remote(path) else bytes(data))
    return zlib.crc32(data)


def read_array(path: str, dtype, checksum: int | None = None) -> np.ndarray:
    """The array of a file of `write_array`: memory-mapped where local, read where remote.

    Raises:
      UserError: the bytes do not have the checksum.
    """
    if size(path) % np.dtype(dtype).itemsize:
        raise damaged(path)
    if is_remote(path):
        array = np.frombuffer(read_bytes(path), dtype)
    elif size(path) == 0:
        array = np.zeros(0, dtype)
    else:
        array = np.memmap(path, dtype, "r")
    if checksum is not None and zlib.crc32(array.view(np.uint8).data) != checksum:
        raise damaged(path)
    return array


def damaged(path: str) -> UserError:
    """What to raise where a file of the pipeline's work does not have its checksum."""
    return UserError(
        f"{path} is damaged (its checksum is wrong); remove the folder {os.path.dirname(path)} "
        f"and run again"
    )


def read_slice(path: str, dtype, start: int, stop: int) -> np.ndarray:
    """Elements start to stop - 1 of a file of `write_array`."""
    size = np.dtype(dtype).itemsize
    content = read_bytes(path, start * size, (stop - start) * size)
    if len(content) != (stop - start) * size:
        raise damaged(path)
    return np.frombuffer(content, dtype)


class _RemoteFile(io.RawIOBase):
    """What io.BufferedReader asks of a raw file, on a tf.io.gfile.GFile."""

    def __init__(self, file):
        self._file = file

    def readable(self):
        return True

    def seekable(self):
        return True

    def seek(self, offset, whence=io.SEEK_SET):
        self._file.seek(offset, whence=whence)
        return self._file.tell()

    def tell(self):
        return self._file.tell()

    def readinto(self, buffer):
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self):
        if not self.closed:
            self._file.close()
        super().close()


def _gfile():
    import tensorflow as tf

    return tf.io.gfile
