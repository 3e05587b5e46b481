"""Sets of pre-training records: their lengths, their counts, and positions in reading order.

Records of the original's create_pretraining_data can be opened too; they have no manifest, so they
are counted once.
"""

import functools
import hashlib
import io
import json
import os
from dataclasses import dataclass, field

from data_prep.jobs import checked_json, locks, output_folder, storage
from data_prep.pretraining.reading import philox
from data_prep.pretraining.reading.record_checks import CHANGED, SCHEMA, shard_names
from official_bert.common.checksums import crc32c_file, state
from official_bert.common.errors import UserError, os_errors

WINDOW = 4096  # records that are shuffled together when read


@dataclass(frozen=True)
class Position:
    """A place in the reading order: `offset` examples into the `shard`-th shard of an epoch."""

    epoch: int = 0
    shard: int = 0
    offset: int = 0


@dataclass
class RecordSet:
    """A set of record files, opened and checked.

    Local files are locked against overwriting while this object lives.

    Attributes:
      files: paths; counts: examples in each.
      max_seq_length, max_predictions_per_seq: lengths of the lists in a record.
      dynamic_masking: the rows are unmasked.
      compression: "" or "GZIP".
      vocab_size: ids must be below it; 0 where it is not known.
      manifest: written by create_pretraining_data; empty for records made elsewhere.
      folder: the manifest's folder.
      checksums: CRC-32C of each file, "" where it is not known (remote files).
      lock: the lock of the folder.
    """

    files: list[str]
    counts: list[int]
    max_seq_length: int
    max_predictions_per_seq: int
    dynamic_masking: bool = False
    compression: str = ""
    vocab_size: int = 0
    manifest: dict = field(default_factory=dict)
    folder: str = ""
    checksums: list[str] = field(default_factory=list)
    lock: io.FileIO | None = field(default=None, repr=False, compare=False)

    @property
    def examples(self) -> int:
        return sum(self.counts)

    @property
    def has_predictions(self) -> bool:
        """Return whether rows have tokens to predict: always, unless masked_lm_prob was 0."""
        options = self.manifest.get("options")
        return not isinstance(options, dict) or options.get("masked_lm_prob") != 0

    @property
    def fingerprint(self) -> str:
        """Digest of what training reads, without the folder and without options that left no
        trace."""
        files = zip(map(os.path.basename, self.files), self.counts, self.checksums, strict=True)
        masks = self.manifest["options"] if self.dynamic_masking else {}
        vocabulary = self.manifest.get("vocab_sha256", "")
        text = json.dumps([self.max_seq_length, vocabulary, masks, *files], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def check_file(self, path: str) -> None:
        """Check that a file of the set is unchanged since it was opened; call where it is read.

        Raises:
          UserError: it is missing or has another content.
        """
        known = self.checksums[self.files.index(path)]
        if known and _checksum(path) not in (known, ""):
            raise UserError(
                f"{path} {CHANGED} since its set of records was made or opened; make the records "
                "again, or choose a folder that nothing else writes to"
            )

    def feature_length(self, name: str) -> int:
        """Return the number of values that a feature of SCHEMA has in every record."""
        if name == "next_sentence_labels":
            return 1
        if name.startswith("masked_lm_"):
            return self.max_predictions_per_seq
        return self.max_seq_length

    def shard_order(self, seed: int, epoch: int) -> list[int]:
        """Return the order in which an epoch reads the shards."""
        return philox.permutation(len(self.files), philox.fold(seed, epoch)).tolist()

    def beginning(
        self, start: Position | int, seed: int, shuffle: bool, epochs: int | None
    ) -> tuple[Position, int]:
        """Return where reading begins: the position, and the number of examples before it.

        Raises:
          UserError: the position is behind the last epoch.
        """
        if isinstance(start, int):
            start = self.position(start, seed, shuffle)
        first = self.examples_before(start, seed, shuffle)
        if epochs is not None and first >= epochs * self.examples:
            raise UserError(f"{start} lies behind the last of {epochs} epochs")
        return start, first

    def position(self, examples_read: int, seed: int, shuffle: bool = True) -> Position:
        """Return the position after so many examples from the start of epoch 0."""
        epoch, rest = divmod(examples_read, self.examples)
        order = self.shard_order(seed, epoch) if shuffle else range(len(self.files))
        for shard, index in enumerate(order):
            if rest < self.counts[index]:
                return Position(epoch, shard, rest)
            rest -= self.counts[index]
        raise AssertionError("counts changed while they were summed")

    def examples_before(self, position: Position, seed: int, shuffle: bool = True) -> int:
        """Return the number of examples before a position: the inverse of `position`."""
        order = self.shard_order(seed, position.epoch) if shuffle else range(len(self.files))
        shards = sum(self.counts[index] for index in list(order)[: position.shard])
        return position.epoch * self.examples + shards + position.offset


def open_records(
    source: str | list[str],
    max_seq_length: int | None = None,
    max_predictions_per_seq: int | None = None,
    vocab_size: int | None = None,
) -> RecordSet:
    """Find record files, and compare them with a configuration.

    Args:
      source: a folder of create_pretraining_data, a glob pattern, or a list of files.
      max_seq_length, max_predictions_per_seq, vocab_size: those of the model's configuration; None:
        not checked.

    Raises:
      UserError: nothing matches, a file is truncated (named), files of different kinds are mixed,
        the records have other lengths or another vocabulary size than the configuration, or another
        process is writing them.
    """
    lock = _hold(source)
    files = _find(source)
    records = _with_manifest(files) or _without_manifest(files)
    records.lock = lock
    if not records.examples:
        raise UserError(f"{source}: the record files hold no examples")
    manifest_vocab = records.manifest.get("vocab_size")
    for name, wanted, found in (
        ("max_seq_length", max_seq_length, records.max_seq_length),
        ("max_predictions_per_seq", max_predictions_per_seq, records.max_predictions_per_seq),
        ("vocab_size", vocab_size, manifest_vocab),
    ):
        if wanted is not None and found is not None and wanted != found:
            raise UserError(
                f"{records.files[0]}: the records have {name} {found}, the configuration "
                f"{wanted}; make records with that {name} or change the configuration"
            )
    records.vocab_size = vocab_size or manifest_vocab or 0
    return records


def _hold(source) -> io.FileIO | None:
    """Lock the folder that create_pretraining_data made, against its writing to it."""
    if isinstance(source, list):
        source = source[0] if source else ""
    source = os.fspath(source)
    if storage.is_remote(source):
        return None
    folder = source if os.path.isdir(source) else os.path.dirname(source)
    for place in (folder, os.path.dirname(os.path.abspath(folder))):  # "heldout" lies inside one
        if os.path.exists(os.path.join(place, output_folder.OPTIONS)):
            return locks.shared(place)
    return None


def _checksum(path: str) -> str:
    """Return the CRC-32C of a local file; "" for a remote one, which would be read twice."""
    if storage.is_remote(path):
        return ""
    with os_errors(path):
        return _checksum_of(path, *state(path))


@functools.lru_cache(maxsize=100_000)
def _checksum_of(path: str, *_state: int) -> str:
    return crc32c_file(path)


def _find(source) -> list[str]:
    if not isinstance(source, str):
        files = [os.fspath(path) for path in source] if isinstance(source, list) else None
        if files is None:
            return _find(os.fspath(source))
    elif storage.exists(os.path.join(source, "manifest.json")):
        path = os.path.join(source, "manifest.json")
        names = shard_names(checked_json.read(path), path)
        return [os.path.join(source, name) for name in names]
    elif storage.is_directory(source):
        files = storage.matches(os.path.join(source, "*.tfrecord*"))
        if not files:
            raise UserError(
                f"{source} holds no records (no manifest.json, no *.tfrecord); was "
                f"create_pretraining_data interrupted? Run it again to continue"
            )
    else:
        files = storage.matches(source)
    if not files:
        raise UserError(f"no record file matches {source!r} (current folder: {os.getcwd()})")
    for path in files:
        if not storage.exists(path):
            raise UserError(f"record file {path} does not exist")
    return files


def _with_manifest(files) -> RecordSet | None:
    """Return the records that the manifest beside them describes; None where there is none."""
    folder = os.path.dirname(files[0])
    path = os.path.join(folder, "manifest.json")
    if not storage.exists(path):
        return None
    manifest = checked_json.read(path)
    shard_names(manifest, path)
    shards = {os.path.join(folder, shard["file"]): shard for shard in manifest["shards"]}
    if any(file not in shards for file in files):
        return None
    for file in files:
        if not storage.exists(file):
            raise UserError(f"record file {file} of the manifest does not exist")
        size = storage.size(file)
        if size != shards[file]["bytes"]:
            raise UserError(
                f"record file {file} is truncated or changed: {size} bytes, its manifest says "
                f"{shards[file]['bytes']}; make the records again with --overwrite"
            )
    return RecordSet(
        files,
        [shards[file]["examples"] for file in files],
        manifest["max_seq_length"],
        manifest["max_predictions_per_seq"],
        manifest["dynamic_masking"],
        manifest["compression"],
        manifest=manifest,
        folder=folder,
        checksums=[shards[file].get("crc32c", "") for file in files],
    )


def _without_manifest(files) -> RecordSet:
    """Return the records of other programs, counted, with the lengths of each file's first
    record."""
    from data_prep.pretraining.reading.record_files import count_records, first_example, is_gzip

    compression = "GZIP" if is_gzip(files[0]) else ""
    counts = [count_records(file, compression) for file in files]
    found = {}
    for file, count in zip(files, counts, strict=True):
        if count:
            lengths = {
                name: len(values) for name, values in first_example(file, compression).items()
            }
            found[file] = tuple(lengths.get(name) for name in SCHEMA)
    if len(set(found.values())) > 1:
        one = next(iter(found))
        other = next(file for file in found if found[file] != found[one])
        raise UserError(f"{one} and {other} have records of different lengths; read them apart")
    lengths = dict(zip(SCHEMA, next(iter(found.values())), strict=True)) if found else {}
    missing = [name for name in SCHEMA if found and lengths[name] is None]
    if missing:
        raise UserError(
            f"{files[0]}: the records have no feature {missing[0]!r}; are they BERT pre-training "
            f"records? (Records for dynamic masking need the manifest beside them)"
        )
    return RecordSet(
        files,
        counts,
        lengths.get("input_ids", 0),
        lengths.get("masked_lm_positions", 0),
        compression=compression,
        checksums=[_checksum(file) for file in files],
    )
