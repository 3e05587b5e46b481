"""Batches of pre-training records in numpy; all training reads records through this module.

All records of a window are parsed at once, field by field. The records of a set have the same
features in the same order, in lists of the same length; only the bytes of the integers vary. So one
cursor goes through all records in parallel, and the integers of a feature are decoded together:
some ten times as fast as record by record. Records in another form are parsed one by one.
"""

import itertools
from collections.abc import Iterator

import numpy as np

from data_prep.pretraining.reading import philox, record_sets
from data_prep.pretraining.reading.dynamic_masking import MaskingRules, mask
from data_prep.pretraining.reading.record_checks import SCHEMA, check_values, limits
from data_prep.pretraining.reading.record_files import feature_lists, read_records, unpack_varints
from data_prep.pretraining.reading.record_sets import Position, RecordSet
from official_bert.common.errors import UserError
from official_bert.common.protocol_buffers import varint


def numpy_batches(
    records: RecordSet,
    batch_size: int,
    *,
    seed: int = 0,
    shuffle: bool = True,
    epochs: int | None = 1,
    start: Position | int = 0,
    drop_remainder: bool = True,
    masked: bool = True,
) -> Iterator[dict[str, np.ndarray]]:
    """Yield batches in reading order, one after another.

    Args:
      records: the result of `open_records`.
      batch_size: rows of a batch.
      seed: decides the order, and the masks of records with dynamic masking.
      shuffle: False reads the files as they are.
      epochs: the number of passes over the records, counted from epoch 0; None never ends. Batches
        run across the ends of epochs, so no example is left out.
      start: where to continue: a `Position`, or the number of examples that were read. The batches
        are those that an uninterrupted run would have seen.
      drop_remainder: whether to leave out a last batch that is not full.
      masked: False leaves the rows of records with dynamic masking unmasked.

    Yields:
      dictionaries with the names of SCHEMA: int32 [batch, ...], the weights float32.

    Raises:
      UserError: a record is damaged or not what the model can read; names file, record and field.
    """
    start, first = records.beginning(start, seed, shuffle, epochs)
    rules = MaskingRules.of(records) if masked and records.dynamic_masking else None
    for batch in _rebatched(_windows(records, seed, shuffle, epochs, start), batch_size):
        if drop_remainder and len(batch["input_ids"]) < batch_size:
            return
        if rules is not None:
            batch = mask(batch, first, rules, batch_size, seed)
        yield batch
        first += batch_size


def reading_order(
    records: RecordSet, seed: int, shuffle: bool, epochs: int | None, start: Position
) -> Iterator[tuple[int, int, int, np.ndarray]]:
    """Yield the windows of records that are shuffled together, in reading order.

    Yields:
      (epoch, shard, number of the window in its shard, order of its records int64 [n]). The window
      where reading starts has only the records from `start` on.
    """
    for epoch in itertools.count(start.epoch) if epochs is None else range(start.epoch, epochs):
        order = records.shard_order(seed, epoch) if shuffle else range(len(records.files))
        resumed = epoch == start.epoch
        for place in range(start.shard if resumed else 0, len(records.files)):
            shard = int(order[place])
            offset = start.offset if resumed and place == start.shard else 0
            first, skipped = divmod(offset, record_sets.WINDOW)
            for index in range(first, -(-records.counts[shard] // record_sets.WINDOW)):
                size = min(record_sets.WINDOW, records.counts[shard] - index * record_sets.WINDOW)
                found = np.arange(size)
                if shuffle:
                    found = philox.permutation(size, philox.fold(seed, epoch, shard, index))
                yield epoch, shard, index, found[skipped:]
                skipped = 0


def _windows(records, *where):
    """Yield the rows of each window in reading order; arguments as for `reading_order`."""
    windows = reading_order(records, *where)
    for (_, shard), of_shard in itertools.groupby(windows, lambda window: window[:2]):
        records.check_file(records.files[shard])
        raw, begun = read_records(records.files[shard], records.compression), False
        for _, _, index, order in of_shard:
            if not begun and index:  # reading goes on inside a shard
                raw = itertools.islice(raw, index * record_sets.WINDOW, None)
            window, begun = list(itertools.islice(raw, record_sets.WINDOW)), True
            if len(window) <= order.max(initial=-1):
                raise UserError(
                    f"{records.files[shard]} holds fewer than the {records.counts[shard]} records "
                    "that its manifest counts; make the records again with --overwrite"
                )
            if len(order):
                yield {name: rows[order] for name, rows in _parse(window, records).items()}


def _parse(window: list[bytes], records) -> dict[str, np.ndarray]:
    try:
        return columns(window, records)
    except ValueError as error:
        raise UserError(find_fault(records) or f"records in {records.folder}: {error}") from None


def find_fault(records: RecordSet) -> str | None:
    """Describe the first record that cannot be trained on; None where all can.

    The files are read once more, slowly.
    """
    for file, examples in zip(records.files, records.counts, strict=True):
        number = -1
        try:
            for number, record in enumerate(read_records(file, records.compression)):
                try:
                    columns([record], records)
                except ValueError as error:
                    return f"{file} record {number}: {error}"
            records.check_file(file)
        except UserError as error:
            return str(error)
        if number + 1 != examples:
            return f"{file} holds {number + 1} records, not {examples} as before"
    return None


def _rebatched(windows, size: int):
    """Yield batches of `size` rows from windows of any size; the last may have fewer rows."""
    kept: list[dict] = []
    count = 0
    for window in windows:
        kept.append(window)
        count += len(window["input_ids"])
        if count < size:
            continue
        rows = _joined(kept)
        for begin in range(0, count - size + 1, size):
            yield {name: x[begin : begin + size] for name, x in rows.items()}
        rest = count % size
        kept = [{name: x[count - rest :] for name, x in rows.items()}]
        count = rest
    if count:
        yield _joined(kept)


def _joined(parts: list[dict]) -> dict[str, np.ndarray]:
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


# Tags of the fields that enclose a list of values (see `tf_example`).
_KEY, _VALUE, _FLOATS, _INTEGERS = 0x0A, 0x12, 0x12, 0x1A
_TYPES = {_FLOATS: "float32", _INTEGERS: "int64"}


def columns(rows: list[bytes], records) -> dict[str, np.ndarray]:
    """Return the features of serialised examples.

    Args:
      rows: records of a file.
      records: their `RecordSet`.

    Returns: {name of SCHEMA: int32 or float32 [rows, values]}.

    Raises:
      ValueError: a row is not an example of these records.
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
        if name not in found:
            raise ValueError(f"{name} is missing")
        written, lengths, content = found[name]
        if written != kind:
            raise ValueError(f"{name} has type {written}, not {kind}")
        values, counts = (_floats if kind == "float32" else _integers)(lengths, content)
        wanted = records.feature_length(name)
        if (wrong := counts != wanted).any():
            raise ValueError(f"{name} has {counts[wrong.argmax()]} values, not {wanted}")
        values = values.reshape(len(rows), wanted)
        check_values(name, values, bounds.get(name))
        batch[name] = values.astype(kind.replace("64", "32"))
    return batch


class _Irregular(Exception):
    """The records have different forms."""


class _Cursor:
    """A place in each of the records, all at the same field."""

    def __init__(self, content: bytes, ends: np.ndarray):
        # A wrong length would lead behind the last record.
        self.bytes = np.frombuffer(content + bytes(16), np.uint8)
        self.ends = ends
        self.at = np.concatenate([[0], ends[:-1]])

    def tag(self, *allowed: int) -> int:
        """Return the tag at all places, and move behind it."""
        tags = self.bytes[self.at]
        if (tags != tags[0]).any() or tags[0] not in allowed:
            raise _Irregular
        self.at = self.at + 1
        return int(tags[0])

    def length(self) -> np.ndarray:
        """Return the lengths at all places, int64 [rows], and move behind them."""
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
        """Return the bytes at all places, which must be equal, and move behind them."""
        found = self.bytes[self.at[:, None] + np.arange(length)]
        if (found != found[0]).any():
            raise _Irregular
        self.at = self.at + length
        return found[0].tobytes()

    def content(self, lengths: np.ndarray) -> np.ndarray:
        """Return the bytes at all places, of these lengths, one after another, uint8; move behind
        them."""
        if (lengths == lengths[0]).all():
            found = self.bytes[self.at[:, None] + np.arange(lengths[0])].ravel()
        else:
            starts = np.cumsum(lengths) - lengths
            found = self.bytes[np.repeat(self.at - starts, lengths) + np.arange(lengths.sum())]
        self.at = self.at + lengths
        return found


def _side_by_side(joined: bytes, ends: np.ndarray):
    """Return {feature: (kind, bytes of each row's list int64 [rows], all of these bytes uint8)}.

    Raises:
      _Irregular: the records have different forms, or another form than `tf_example` writes.
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
    """Decode records of any form, one by one; return the features that all have."""
    try:
        lists = [feature_lists(row) for row in rows]
    except (ValueError, IndexError, TypeError, AttributeError) as error:
        raise ValueError(f"a record is not a tf.Example ({error})") from None
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


def _floats(lengths, content):
    """Return float32 [values], and the number of values of each row."""
    if (lengths % 4).any():
        raise ValueError("a float without its end")
    return content.view("<f4"), lengths // 4


def _integers(lengths, content):
    """Decode varints to uint64 [values]; return them and the number of values of each row."""
    values, ends = unpack_varints(content)
    row_ends = np.cumsum(lengths)
    last = np.searchsorted(ends, row_ends, side="right")
    if (np.append(0, ends)[last] != row_ends).any():
        raise ValueError("a number without its end")
    return values, np.diff(last, prepend=0)
