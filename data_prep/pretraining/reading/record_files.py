"""TFRecord files, read without TensorFlow: checked records, and the features of a record."""

import gzip
import struct
import zlib
from collections.abc import Iterator

import google_crc32c
import numpy as np

from data_prep.jobs import storage
from official_bert.common.checksums import masked
from official_bert.common.errors import UserError
from official_bert.common.protocol_buffers import fields

_LARGEST_RECORD = 64_000_000  # bytes; for compressed files
_KINDS = {2: "float32", 3: "int64"}  # fields of a tf.train.Feature
_FRAME = 16  # bytes around a record: length, checksum of the length, checksum of the record


def is_gzip(path: str) -> bool:
    return storage.read_bytes(path, 0, 2) == b"\x1f\x8b"


def count_records(path: str, compression: str = "") -> int:
    """Count the records of a file by their lengths, if possible without reading them.

    Raises:
      UserError: the file ends within a record or is not a TFRecord file.
    """
    if compression:
        return sum(1 for _ in read_records(path, compression))
    size, at, count = storage.size(path), 0, 0
    with storage.reading(path) as file:
        while at < size:
            file.seek(at)
            at += _FRAME + _record_length(file.read(12), path, count)
            count += 1
    if at != size:
        raise _truncated(path, count - 1)
    return count


def read_records(path: str, compression: str = "") -> Iterator[bytes]:
    """Yield the records of a file, after a check of their checksums.

    Raises:
      UserError: the file is truncated or damaged; the message names file and record.
    """
    with storage.reading(path) as raw:
        file = gzip.GzipFile(fileobj=raw) if compression else raw
        number, most = 0, _LARGEST_RECORD if compression else storage.size(path)
        while header := _read(file, 12, path, number):
            length = _record_length(header, path, number)
            if length > most:  # such memory is not asked for before the bytes are known to exist
                raise _truncated(path, number)
            content = _read(file, length + 4, path, number)
            if len(content) != length + 4:
                raise _truncated(path, number)
            record, checksum = content[:length], content[length:]
            if masked(google_crc32c.value(record)) != struct.unpack("<I", checksum)[0]:
                raise UserError(f"{path}: record {number} is damaged (its checksum is wrong)")
            yield record
            number += 1


def first_example(path: str, compression: str = "") -> dict[str, np.ndarray]:
    """Return the features of a file's first record."""
    return parse_example(next(read_records(path, compression)), path)


def parse_example(record: bytes, path: str = "record") -> dict[str, np.ndarray]:
    """Parse one tf.Example: {name: int64 or float32 [values]}.

    Raises:
      UserError: the bytes are not a tf.Example.
    """
    try:
        return {n: _values(*found) for n, found in feature_lists(record).items()}
    except (ValueError, IndexError, TypeError, AttributeError) as error:
        raise UserError(f"{path}: a record is not a tf.Example ({error})") from None


def feature_lists(record: bytes) -> dict[str, tuple[str, list]]:
    """Return the lists of a tf.Example, undecoded: {name: ("int64" or "float32", parts)}.

    A part is bytes of packed values, or a single integer.

    Raises:
      ValueError, IndexError, TypeError, AttributeError: the bytes are not a tf.Example.
    """
    lists = {}
    for _, features in fields(record):
        for _, entry in fields(features):
            name, feature = (content for _, content in fields(entry))
            ((kind, content),) = fields(feature)
            if kind not in _KINDS:
                raise ValueError("a feature is neither integers nor floats")
            lists[name.decode()] = _KINDS[kind], [part for _, part in fields(content)]
    return lists


def _values(kind, parts):
    if kind == "float32":
        return np.frombuffer(b"".join(parts), "<f4")
    numbers = [
        np.array([part], np.uint64) if isinstance(part, int) else unpack_varints(part)[0]
        for part in parts
    ]
    return np.concatenate([np.zeros(0, np.uint64), *numbers]).view(np.int64)  # some are negative


def unpack_varints(content: bytes | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Decode base-128 varints: seven bits a byte, the eighth is set if more follow.

    Returns:
      The numbers, uint64 [N], and the end of each in the bytes, int64 [N].

    Raises:
      ValueError: the bytes are not varints.
    """
    stored = np.frombuffer(content, np.uint8)
    ends = np.flatnonzero(stored < 0x80) + 1
    if len(ends) == len(stored):
        return stored.astype(np.uint64), ends
    if stored[-1] > 0x7F:
        raise ValueError("a number without its end")
    starts = np.concatenate([[0], ends[:-1]])
    sizes = ends - starts
    if (sizes > 10).any():
        raise ValueError("a number of more than 64 bits")
    values = np.zeros(len(ends), np.uint64)
    for byte in range(sizes.max()):
        more = sizes > byte
        bits = (stored[starts[more] + byte] & 0x7F).astype(np.uint64)
        values[more] |= bits << np.uint64(7 * byte)
    return values, ends


def _record_length(header, path, number) -> int:
    if len(header) < 12:
        raise _truncated(path, number)
    length, checksum = struct.unpack("<QI", header)
    if masked(google_crc32c.value(header[:8])) != checksum:
        raise UserError(
            f"{path} is not a TFRecord file, is compressed in another way, or is damaged at record "
            f"{number}"
        )
    return length


def _read(file, size, path, number):
    try:
        return file.read(size)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise _truncated(path, number) from None


def _truncated(path, number):
    return UserError(f"{path} is truncated: it ends within record {number}")
