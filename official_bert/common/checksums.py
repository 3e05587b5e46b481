"""Checksums of files."""

import hashlib
import os

from official_bert.common.bounded import open_file


def sha256_file(path: str | os.PathLike) -> str:
    """The SHA-256 of the file's bytes, in hexadecimal."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def crc32c_file(path: str | os.PathLike) -> str:
    """The CRC-32C of the file's bytes, in hexadecimal: finds damage, at gigabytes a second."""
    import google_crc32c

    checksum = 0
    with open_file(path) as file:
        while content := file.read(1 << 20):
            checksum = google_crc32c.extend(checksum, content)
    return f"{checksum:08x}"
