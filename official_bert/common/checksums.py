"""Checksums of files."""

import hashlib
import json
import os

from official_bert.common.outside_files import open_file


def state(path: str | os.PathLike) -> tuple[int, ...]:
    """Return numbers that differ as soon as the file or folder of this name is another one, or was
    written to.

    Archives and copies set the time of the last writing; nobody can set that of the last change.

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
    """Return the CRC-32C of the file's bytes, in hexadecimal: finds damage, at gigabytes a
    second."""
    import google_crc32c

    checksum = 0
    with open_file(path) as file:
        while content := file.read(1 << 20):
            checksum = google_crc32c.extend(checksum, content)
    return f"{checksum:08x}"


def crc32c_json(fields: dict) -> str:
    """Return the CRC-32C of what JSON can hold, in hexadecimal; the order of fields does not
    matter."""
    import google_crc32c

    return f"{google_crc32c.value(json.dumps(fields, sort_keys=True).encode()):08x}"


def masked(checksum):
    """Return TensorFlow's masking of a CRC-32C, an int or uint64s: rotated by 15 bits, plus a
    constant."""
    return (((checksum >> 15) | (checksum << 17)) + 0xA282EAD8) & 0xFFFFFFFF
