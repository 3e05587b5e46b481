"""Damage to a file as a disk or a broken transfer does it, and what else may lie in its place."""

import random

DAMAGES = {
    "half": lambda content: content[: max(1, len(content) // 2 - 3)],  # within a record
    "all but the last byte": lambda content: content[:-1],
    "a changed bit": lambda content: flipped(content, len(content) // 2, 5),
    "a hole": lambda content: content[: len(content) // 2] + bytes(len(content) // 2),
    "zeros": lambda content: bytes(len(content)),
    "noise": lambda content: random.Random(1).randbytes(len(content) + 9),
}
# Damage to the format's first bytes, so that no checksum within is looked for.
MISTAKES = {
    "empty": lambda content: b"",
    "one byte": lambda content: content[:1],
    "all but the first byte": lambda content: content[1:],
    "twice": lambda content: content * 2,
    "nested": lambda content: b"[" * 50_000,
    "a web page": lambda content: b"<!DOCTYPE html>\n<html><p>404</p></html>\n",
    "a pointer of Git LFS": lambda content: b"version https://git-lfs.github.com/spec/v1\noid x\n",
    "gzip": lambda content: b"\x1f\x8b\x08\0\0\0\0\0\0\3" + content[:99],
    "zip": lambda content: b"PK\x03\x04" + content[:99],
    "HDF5": lambda content: b"\x89HDF\r\n\x1a\n" + content[:99],
    "Parquet": lambda content: b"PAR1" + content[:99],
    "UTF-16": lambda content: b"\xff\xfe" + content[:99],
}


def flipped(content: bytes, place: int, bit: int = 0) -> bytes:
    """Return `content` with one bit of the byte at `place` changed; nothing of an empty one."""
    changed = bytearray(content)
    if changed:
        changed[place] ^= 1 << bit
    return bytes(changed)


def flip(path, place: int) -> None:
    path.write_bytes(flipped(path.read_bytes(), place))
