"""Checksums of files."""

import hashlib
import json
import os

from official_bert.common.outside_files import open_file


def state(path: str | os.PathLike) -> tuple[int, ...]:
    """Return numbers that change when a file or folder is written to or replaced by another.

    Archives and copies can set the time of the last write (mtime), but nobody can set the time of
    the last change (ctime).

    Raises:
      OSError: there is none.
    """
    found = os.stat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def sha256_file(path: str | os.PathLike) -> str:
    """Return the SHA-256 of the file's bytes, in hexadecimal."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def crc32c_file(path: str | os.PathLike) -> str:
    """Return the CRC-32C of a file's bytes, in hexadecimal, at gigabytes a second."""
    import google_crc32c

    checksum = 0
    with open_file(path) as file:
        while content := file.read(1 << 20):
            checksum = google_crc32c.extend(checksum, content)
    return f"{checksum:08x}"


def crc32c_json(fields: dict) -> str:
    """Return the CRC-32C of fields written as JSON, whatever their order, in hexadecimal."""
    import google_crc32c

    return f"{google_crc32c.value(json.dumps(fields, sort_keys=True).encode()):08x}"


def masked(checksum):
    """Mask a CRC-32C, an int or uint64 array, as TensorFlow does: rotate by 15 bits, add a
    constant."""
    return (((checksum >> 15) | (checksum << 17)) + 0xA282EAD8) & 0xFFFFFFFF
