"""Batches of pre-training records, in numpy: the one way in which training reads them."""

import itertools
from collections.abc import Iterator

import numpy as np

from data_prep.pretraining import philox, record_sets
from data_prep.pretraining.dynamic_masking import mask
from data_prep.pretraining.masking_rules import MaskingRules
from data_prep.pretraining.record_checks import find_fault
from data_prep.pretraining.record_files import read_records
from data_prep.pretraining.record_parsing import columns
from data_prep.pretraining.record_sets import Position, Records
from official_bert.common.errors import UserError


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
    """Batches in reading order, one after another.

    Args:
      records: of `open_records`.
      batch_size: rows of a batch.
      seed: of the order, and of the masks of records with dynamic masking.
      shuffle: False reads the files as they are.
      epochs: the number of passes over the records, counted from epoch 0; None never ends. Batches
        run across the ends of epochs, so no example is left out.
      start: a `Position`, or the number of examples read before: where to go on. The batches are
        those that an uninterrupted run would have seen.
      drop_remainder: leaves out a last batch that is not full.
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


def _windows(records, *where):
    """The rows of each window in reading order; arguments as for `reading_order`."""
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
    except (UserError, KeyError, ValueError) as error:
        raise UserError(find_fault(records) or f"records in {records.folder}: {error}") from None


def _rebatched(windows, size: int):
    """Batches of `size` rows from windows of any number of them; the last may have fewer."""
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
