"""Rows of records as arrays: all records of a window parsed at once, field by field.

The records of a set have the same features in the same order, in lists of the same length; only
the bytes of the integers vary. So the fields of all records are walked through side by side, and
the integers of a feature are decoded together: some ten times as fast as record by record. Records
that are written in another way are parsed one by one.
"""

import numpy as np

from data_prep.pretraining.record_checks import SCHEMA, limits, within
from data_prep.pretraining.record_files import feature_lists, unpack_varints
from data_prep.pretraining.tf_example import varint

# Tags of the fields on the way to a list of values (see `tf_example`).
_KEY, _VALUE, _FLOATS, _INTEGERS = 0x0A, 0x12, 0x12, 0x1A
_TYPES = {_FLOATS: "float32", _INTEGERS: "int64"}


def columns(rows: list[bytes], records) -> dict[str, np.ndarray]:
    """The features of serialised examples.

    Args:
      rows: records of a file.
      records: the `Records` that they are of.

    Returns: name of SCHEMA -> int32 or float32 [rows, values].

    Raises:
      UserError, KeyError, ValueError: a row is no example of these records.
    """
    joined = b"".join(rows)
    try:
        found = _side_by_side(joined, np.cumsum([len(row) for row in rows]))
    except _Irregular:
        found = _one_by_one(rows)
    bounds, batch = limits(records), {}
    for name, kind in SCHEMA.items():
        if records.dynamic_masking and name.startswith("masked_lm_"):
            continue
        written, lengths, content = found[name]
        if written != kind:
            raise ValueError(f"a feature has type {written}, not {kind}")
        decode = _floats if kind == "float32" else _integers
        values = decode(lengths, content, records.feature_length(name))
        if not within(values, bounds.get(name)):
            raise ValueError(f"a number of {name} is out of bounds")
        batch[name] = values.astype(kind.replace("64", "32"))
    return batch


class _Irregular(Exception):
    """The records are not written alike."""


class _Cursor:
    """A place in each of the records, all at the same field."""

    def __init__(self, content: bytes, ends: np.ndarray):
        # A length that lies would lead behind the last record.
        self.bytes = np.frombuffer(content + bytes(16), np.uint8)
        self.ends = ends
        self.at = np.concatenate([[0], ends[:-1]])

    def tag(self, *allowed: int) -> int:
        """The tag that stands at all places; the places move behind it."""
        tags = self.bytes[self.at]
        if (tags != tags[0]).any() or tags[0] not in allowed:
            raise _Irregular
        self.at = self.at + 1
        return int(tags[0])

    def length(self) -> np.ndarray:
        """The lengths that stand at all places, int64 [rows]; the places move behind them."""
        value = np.zeros(len(self.at), np.int64)
        more = np.ones(len(self.at), bool)
        for shift in (0, 7, 14, 21):
            byte = self.bytes[self.at]
            value |= np.where(more, byte & 0x7F, 0).astype(np.int64) << shift
            self.at = self.at + more
            more &= byte > 0x7F
            if not more.any():
                break
        if more.any() or (self.at + value > self.ends).any():
            raise _Irregular
        return value

    def text(self, length: int) -> bytes:
        """The bytes that stand at all places; the places move behind them."""
        found = self.bytes[self.at[:, None] + np.arange(length)]
        if (found != found[0]).any():
            raise _Irregular
        self.at = self.at + length
        return found[0].tobytes()

    def content(self, lengths: np.ndarray) -> np.ndarray:
        """uint8: the bytes of all places, of these lengths, one after another."""
        if (lengths == lengths[0]).all():
            found = self.bytes[self.at[:, None] + np.arange(lengths[0])].ravel()
        else:
            starts = np.cumsum(lengths) - lengths
            found = self.bytes[np.repeat(self.at - starts, lengths) + np.arange(lengths.sum())]
        self.at = self.at + lengths
        return found


def _side_by_side(joined: bytes, ends: np.ndarray):
    """Feature -> (kind, bytes of each row's list int64 [rows], all of them uint8).

    Raises:
      _Irregular: the records are not written alike, or not as `tf_example` writes them.
    """
    cursor, found = _Cursor(joined, ends), {}
    cursor.tag(_KEY)
    if (cursor.length() + cursor.at != ends).any():
        raise _Irregular
    while (cursor.at != ends).any():
        cursor.tag(_KEY)
        size = cursor.length()
        entry_ends = cursor.at + size
        cursor.tag(_KEY)
        size = cursor.length()
        if (size != size[0]).any():
            raise _Irregular
        name = cursor.text(int(size[0]))
        cursor.tag(_VALUE)
        cursor.length()
        kind = cursor.tag(*_TYPES)
        cursor.length()
        cursor.tag(_KEY)
        lengths = cursor.length()
        if (cursor.at + lengths != entry_ends).any():
            raise _Irregular
        found[name.decode(errors="replace")] = _TYPES[kind], lengths, cursor.content(lengths)
    return found


def _one_by_one(rows: list[bytes]):
    """As `_side_by_side`, of records written in any way; what they all have."""
    lists = [feature_lists(row) for row in rows]
    found = {}
    for name in set.intersection(*map(set, lists)):
        kinds = {kinds for kinds, _ in (one[name] for one in lists)}
        contents = [
            b"".join(varint(part) if isinstance(part, int) else part for part in one[name][1])
            for one in lists
        ]
        lengths = np.array([len(content) for content in contents])
        kind = kinds.pop() if len(kinds) == 1 else "mixed"
        found[name] = kind, lengths, np.frombuffer(b"".join(contents), np.uint8)
    return found


def _floats(lengths, content, length):
    """float32 [rows, length]."""
    if (lengths != 4 * length).any():
        raise ValueError(f"a feature has not {length} values")
    return content.view("<f4").reshape(len(lengths), length)


def _integers(lengths, content, length):
    """uint64 [rows, length] from varints."""
    values, ends = unpack_varints(content)
    row_ends = np.cumsum(lengths)
    last = np.searchsorted(ends, row_ends, side="right")
    if (np.diff(last, prepend=0) != length).any() or (ends[last - 1] != row_ends).any():
        raise ValueError(f"a feature has not {length} values")
    return values.reshape(len(lengths), length)
