"""`data_prep.records` in numpy: the same batches in the same order, without TensorFlow."""

import itertools
from collections.abc import Iterator

import numpy as np

from data_prep.pretraining import philox, record_sets
from data_prep.pretraining.masking_rules import MaskingRules
from data_prep.pretraining.numpy_masking import mask
from data_prep.pretraining.record_checks import SCHEMA, find_fault, limits, within
from data_prep.pretraining.record_files import feature_lists, read_records, unpack_varints
from data_prep.pretraining.record_sets import Position, Records
from data_prep.pretraining.tf_example import varint
from official_bert.errors import UserError


def numpy_batches(
    records: Records,
    batch_size: int,
    *,
    seed: int = 0,
    shuffle: bool = True,
    epochs: int | None = 1,
    start: Position | int = 0,
    drop_remainder: bool = True,
    masked: bool = True,
) -> Iterator[dict[str, np.ndarray]]:
    """The batches of `pretraining_dataset`, one after another, as numpy arrays.

    Args:
      records: of `open_records`.
      masked: False leaves the rows of records with dynamic masking unmasked.
      others: of `pretraining_dataset`.

    Yields:
      dictionaries with the names of SCHEMA: int32 [batch, ...], the weights float32.

    Raises:
      UserError: a record is damaged or not what the model can read; names file, record and field.
    """
    start, first = records.beginning(start, seed, shuffle, epochs)
    rules = MaskingRules.of(records) if masked and records.dynamic_masking else None
    serialized = _serialized(records, seed, shuffle, epochs, start)
    while rows := list(itertools.islice(serialized, batch_size)):
        if drop_remainder and len(rows) < batch_size:
            return
        batch = _parse(rows, records)
        if rules is not None:
            batch = mask(batch, first, rules, batch_size, seed)
        yield batch
        first += batch_size


def reading_order(
    records: Records, seed: int, shuffle: bool, epochs: int | None, start: Position
) -> Iterator[tuple[int, int, int, np.ndarray]]:
    """The windows of records that are shuffled together, in the order in which they are read.

    Yields:
      (epoch, shard, number of the window in its shard, the order of its records int64 [n]); of the
      window where reading starts, only what comes after `start`.
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


def _serialized(records, *where):
    """Serialised examples in reading order; arguments as for `reading_order`."""
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
            yield from (window[i] for i in order)


def _parse(rows: list[bytes], records) -> dict[str, np.ndarray]:
    try:
        return _columns(rows, records)
    except (UserError, KeyError, ValueError) as error:
        raise UserError(find_fault(records) or f"records in {records.folder}: {error}") from None


def _columns(rows, records):
    lists = [feature_lists(row) for row in rows]
    bounds, batch = limits(records), {}
    for name, kind in SCHEMA.items():
        if records.dynamic_masking and name.startswith("masked_lm_"):
            continue
        contents = [_content(*found[name], kind) for found in lists]
        length = records.feature_length(name)
        if kind == "float32":
            values = _floats(contents, length)
        else:
            values = _integers(contents, length)
        if not within(values, bounds.get(name)):
            raise ValueError(f"a number of {name} is out of bounds")
        batch[name] = values.astype(kind.replace("64", "32"))
    return batch


def _content(kind: str, parts: list, wanted: str) -> bytes:
    """The bytes of a feature's list; integers that came one by one are put together."""
    if kind != wanted:
        raise ValueError(f"a feature has type {kind}, not {wanted}")
    return b"".join(varint(part) if isinstance(part, int) else part for part in parts)


def _floats(contents, length):
    """float32 [rows, length]."""
    return np.stack([np.frombuffer(content, "<f4", length) for content in contents])


def _integers(contents, length):
    """uint64 [rows, length] from varints."""
    values, ends = unpack_varints(b"".join(contents))
    row_ends = np.cumsum([len(content) for content in contents])
    last = np.searchsorted(ends, row_ends, side="right")
    if (np.diff(last, prepend=0) != length).any() or (ends[last - 1] != row_ends).any():
        raise ValueError(f"a feature has not {length} values")
    return values.reshape(len(contents), length)
