"""TensorFlow's checkpoints, read without TensorFlow: an index `X.index` and data `X.data-*-of-*`.

The index is a table of LevelDB's kind, sorted blocks of (key, value) with a footer that says where
they are. A value is a protocol buffer (`BundleEntryProto`): the tensor's type and shape, and where
its bytes lie in which data file, with a CRC-32C. No length is believed that exceeds the file.
"""

import math
import os
import struct
from collections.abc import Iterator
from pathlib import Path

import google_crc32c
import numpy as np

from official_bert.common.checksums import masked
from official_bert.common.errors import UserError
from official_bert.common.outside_files import open_file, read_bytes
from official_bert.common.protocol_buffers import fields, varint_at

_MAGIC, _FOOTER, _TRAILER = 0xDB4775248B80FB57, 48, 5
_MOST_INDEX_BYTES, _LONGEST_NAME = 1 << 24, 1 << 12
_MOST_TENSORS, _MOST_TIMES, _FREE = 100_000, 20, 1 << 20  # times the file's size; bytes
_STRING, _BFLOAT16 = 7, 14
# The numbers of tensorflow/core/framework/types.proto.
_TYPES = {
    1: "<f4", 2: "<f8", 3: "<i4", 4: "u1", 5: "<i2", 6: "i1", 9: "<i8", 10: "?", _BFLOAT16: "<u2",
    17: "<u2", 19: "<f2", 22: "<u4", 23: "<u8",
}  # fmt: skip


class TensorBundle:
    """A checkpoint.

    Attributes:
      shapes: {name: shape} of every tensor of numbers.
      numbers: how many numbers the tensors have, at most one for each byte that is stored.
    """

    def __init__(self, prefix: str | os.PathLike):
        """Read the index.

        Raises:
          UserError: it is missing or damaged, or promises more than the data files hold.
        """
        self._prefix = Path(prefix)
        self._index = Path(f"{prefix}.index")
        try:
            entries = dict(_table(read_bytes(self._index, _MOST_INDEX_BYTES)))
            header = dict(fields(entries.pop(b"")))
            self._shards = _number(header, 1)
            if _number(header, 2) != 0:
                raise ValueError("it is of a big-endian machine")
            found = {key.decode(): _entry(value) for key, value in entries.items()}
        except (ValueError, KeyError, IndexError, TypeError, struct.error) as error:
            reason = f"not a readable TensorFlow checkpoint ({self._index.name}: {error})"
            raise UserError(f"{self._prefix}: {reason}") from error
        self._entries = {name: entry for name, entry in found.items() if entry["type"] != _STRING}
        self.shapes = {name: entry["shape"] for name, entry in self._entries.items()}
        stored = self._entries.values()
        self.numbers = sum(min(math.prod(entry["shape"]), entry["size"]) for entry in stored)
        promised = sum(entry["size"] for entry in stored)
        held = sum(
            path.stat().st_size
            for path in self._prefix.parent.glob(f"{self._prefix.name}.data-*")
            if path.is_file()
        )
        if promised > held:
            raise UserError(
                f"{self._prefix}: its index promises {promised:,} bytes of tensors, its data files "
                f"have {held:,}; a file is damaged or missing"
            )

    def read(self, name: str) -> np.ndarray:
        """Return a tensor; bfloat16 as float32.

        Raises:
          UserError: its data file is missing or damaged, or it is of a kind that is not read.
        """
        entry = self._entries[name]
        path = Path(f"{self._prefix}.data-{entry['shard']:05d}-of-{self._shards:05d}")
        fault = f"{self._prefix}: tensor {name} cannot be read"
        if entry["sliced"] or entry["type"] not in _TYPES:
            kind = "in slices" if entry["sliced"] else f"of type {entry['type']}"
            raise UserError(f"{fault}: it is stored {kind}, which is not read here")
        kind = np.dtype(_TYPES[entry["type"]])
        if math.prod(entry["shape"]) * kind.itemsize != entry["size"]:
            raise UserError(f"{fault}: {entry['size']:,} bytes are not its shape {entry['shape']}")
        try:
            with open_file(path) as file:
                file.seek(entry["offset"])
                content = file.read(entry["size"])
        except (UserError, OSError, ValueError, OverflowError) as error:
            raise UserError(f"{fault} ({path.name}: {error})") from error
        if len(content) != entry["size"] or masked(google_crc32c.value(content)) != entry["crc"]:
            raise UserError(f"{fault}: {path.name} is damaged (its checksum is wrong)")
        array = np.frombuffer(content, kind).reshape(entry["shape"])
        if entry["type"] == _BFLOAT16:  # the upper half of a float32
            array = (array.astype("<u4") << 16).view("<f4")
        return array


def _table(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the (key, value) pairs of a table."""
    if len(data) < _FOOTER or struct.unpack("<Q", data[-8:]) != (_MAGIC,):
        raise ValueError("its end is missing")
    at = len(data) - _FOOTER
    for _ in range(2):  # the place of the metadata, which are empty
        _, at = varint_at(data, at)
    (start, size), _ = _handle(data, at)
    end = count = unpacked = 0
    for _, value in _block(data, start, size):
        (start, size), _ = _handle(value, 0)
        if start < end:
            raise ValueError("a block is there twice")
        for pair in _block(data, start, size):
            count, unpacked = count + 1, unpacked + sum(map(len, pair))
            if count > _MOST_TENSORS or unpacked > _MOST_TIMES * len(data) + _FREE:
                raise ValueError(f"{count:,} names and more, unpacked {unpacked:,} bytes")
            yield pair
        end = start + size


def _block(data: bytes, start: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield the pairs of a block, where a key is stored as its difference from the key before."""
    block, end = data[start : start + size], start + size + _TRAILER
    if end > len(data) or data[start + size] > 1:
        raise ValueError("a block is cut off")
    (crc,) = struct.unpack("<I", data[end - 4 : end])
    if masked(google_crc32c.value(data[start : end - 4])) != crc:
        raise ValueError("a checksum is wrong")
    if data[start + size] == 1:
        block = _unpacked(block)
    (restarts,) = struct.unpack("<I", block[-4:])
    at, stop, key = 0, len(block) - 4 * (restarts + 1), b""
    while at < stop:
        shared, at = varint_at(block, at)
        new, at = varint_at(block, at)
        length, at = varint_at(block, at)
        if shared > len(key) or at + new + length > stop or shared + new > _LONGEST_NAME:
            raise ValueError("an entry is longer than its block, or a name too long")
        key = key[:shared] + block[at : at + new]
        at += new
        yield key, block[at : at + length]
        at += length


def _entry(message: bytes) -> dict:
    found = dict(fields(message))
    dimensions = [value for name, value in fields(found.get(2, b"")) if name == 2]
    return {
        "type": _number(found, 1),
        "shape": tuple(_number(dict(fields(dimension)), 1) for dimension in dimensions),
        "shard": _number(found, 3),
        "offset": _number(found, 4),
        "size": _number(found, 5),
        "crc": int.from_bytes(found.get(6, b""), "little"),
        "sliced": 7 in found,
    }


def _number(fields: dict[int, int | bytes], name: int) -> int:
    value = fields.get(name, 0)
    if not isinstance(value, int):
        raise ValueError(f"field {name} is not a number")
    return value


def _unpacked(packed: bytes) -> bytes:
    """Return a block that TensorFlow 1 compressed with Snappy: literals, and copies from before."""
    size, at = varint_at(packed, 0)
    block = bytearray()
    while at < len(packed) and len(block) < size:
        tag = packed[at]
        kind, length, at = tag & 3, (tag >> 2) + 1, at + 1
        if kind == 0:  # a literal
            if length > 60:  # the next (length - 60) bytes hold its length
                width = length - 60
                length, at = int.from_bytes(packed[at : at + width], "little") + 1, at + width
            block += packed[at : at + length]
            at += length
            continue
        width = (1, 2, 4)[kind - 1]  # a copy; these bytes hold its distance from the end
        place, at = int.from_bytes(packed[at : at + width], "little"), at + width
        if kind == 1:
            length, place = (length - 1 & 7) + 4, place | tag >> 5 << 8
        if not 0 < place <= len(block):
            raise ValueError("a packed block is damaged")
        for _ in range(length):  # a copy may overlap its own output
            block.append(block[-place])
    if len(block) != size or at != len(packed):
        raise ValueError("a packed block is damaged")
    return bytes(block)


def _handle(data: bytes, at: int) -> tuple[tuple[int, int], int]:
    start, at = varint_at(data, at)
    size, at = varint_at(data, at)
    return (start, size), at
