"""The one TFRecord schema of pre-training examples, and the training side's reader.

The reading order is a pure function of the seed: in every epoch the shards come in a new order, and
the records of a shard in stretches of 4,096, each shuffled anew. (The shards hold a uniform shuffle
of all examples to begin with.) So a place in the data is (epoch, shard, offset), or simply the
number of examples read so far, and reading can start at any place at the cost of opening one shard.

Records of the original's create_pretraining_data can be read too; theirs have no manifest, so they
are counted once.
"""

import os
from dataclasses import dataclass, field

from data_prep import storage
from official_bert.errors import UserError

# Feature names and types of the original. Lists have max_seq_length values, those of the masked LM
# max_predictions_per_seq, the label one. Records for dynamic masking have no masked-LM features.
SCHEMA = {
    "input_ids": "int64",
    "input_mask": "int64",
    "segment_ids": "int64",
    "masked_lm_positions": "int64",
    "masked_lm_ids": "int64",
    "masked_lm_weights": "float32",
    "next_sentence_labels": "int64",
}

_WINDOW = 4096  # records that are shuffled together when read


@dataclass(frozen=True)
class Position:
    """A place in the reading order: `offset` examples into the `shard`-th shard of an epoch."""

    epoch: int = 0
    shard: int = 0
    offset: int = 0


@dataclass
class Records:
    """A set of record files, opened and checked.

    Attributes:
      files: paths; counts: examples in each.
      max_seq_length, max_predictions_per_seq: lengths of the lists in a record.
      dynamic_masking: the rows are unmasked.
      compression: "" or "GZIP".
      manifest: of create_pretraining_data; empty for records made elsewhere.
      folder: where the manifest lies.
    """

    files: list[str]
    counts: list[int]
    max_seq_length: int
    max_predictions_per_seq: int
    dynamic_masking: bool = False
    compression: str = ""
    manifest: dict = field(default_factory=dict)
    folder: str = ""

    @property
    def examples(self) -> int:
        return sum(self.counts)

    def shard_order(self, seed: int, epoch: int) -> list[int]:
        """The order in which an epoch reads the shards."""
        import tensorflow as tf

        with tf.device("CPU"):
            return _shard_order(len(self.files), seed, epoch).numpy().tolist()

    def position(self, examples_read: int, seed: int, shuffle: bool = True) -> Position:
        """The place after so many examples from the start of epoch 0."""
        epoch, rest = divmod(examples_read, self.examples)
        order = self.shard_order(seed, epoch) if shuffle else range(len(self.files))
        for shard, index in enumerate(order):
            if rest < self.counts[index]:
                return Position(epoch, shard, rest)
            rest -= self.counts[index]
        raise AssertionError("counts changed while they were summed")

    def examples_before(self, position: Position, seed: int, shuffle: bool = True) -> int:
        """How many examples come before a place: the inverse of `position`."""
        order = self.shard_order(seed, position.epoch) if shuffle else range(len(self.files))
        shards = sum(self.counts[index] for index in list(order)[: position.shard])
        return position.epoch * self.examples + shards + position.offset


def open_records(
    source: str | list[str],
    max_seq_length: int | None = None,
    max_predictions_per_seq: int | None = None,
    vocab_size: int | None = None,
) -> Records:
    """Finds record files, and checks them against a configuration.

    Args:
      source: a folder of create_pretraining_data, a glob pattern, or a list of files.
      max_seq_length, max_predictions_per_seq, vocab_size: what the model is configured for; None
        is not checked.

    Raises:
      UserError: nothing matches, a file is truncated (named), files of different kinds are mixed,
        or the records have other lengths or another vocabulary size than the configuration.
    """
    files = _find(source)
    records = _with_manifest(files) or _without_manifest(files)
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
    return records


def pretraining_dataset(
    source: "str | list[str] | Records",
    batch_size: int,
    *,
    seed: int = 0,
    shuffle: bool = True,
    epochs: int | None = 1,
    start: "Position | int" = 0,
    drop_remainder: bool = True,
    num_input_pipelines: int = 1,
    input_pipeline_id: int = 0,
    max_seq_length: int | None = None,
    max_predictions_per_seq: int | None = None,
    vocab_size: int | None = None,
):
    """Batches for pre-training.

    Args:
      source: as for `open_records`, or its result.
      batch_size: examples of a batch over all input pipelines together.
      seed: of the order, and of the masks of records with dynamic masking.
      shuffle: False reads the files as they are.
      epochs: the number of passes over the records, counted from epoch 0; None never ends. Batches
        run across the ends of epochs, so no example is left out.
      start: a `Position`, or the number of examples read before: where to go on. The batches are
        those that an uninterrupted run would have seen.
      drop_remainder: leaves out a last batch that is not full, so that shapes are static.
      num_input_pipelines, input_pipeline_id: under tf.distribute, from the InputContext. Each
        pipeline gets its stretch of every batch, so the batches of all together do not depend on
        their number.
      max_seq_length, max_predictions_per_seq, vocab_size: as for `open_records`.

    Returns:
      A tf.data.Dataset of dictionaries with the names of SCHEMA: int32 [batch, max_seq_length],
      [batch, max_predictions_per_seq] and [batch, 1], and the weights float32.

    Raises:
      UserError: see `open_records`; or the batch cannot be divided among the pipelines.
    """
    import tensorflow as tf

    if isinstance(source, Records):
        records = source
    else:
        records = open_records(source, max_seq_length, max_predictions_per_seq, vocab_size)
    if batch_size % num_input_pipelines:
        raise UserError(
            f"batch size {batch_size} cannot be divided among {num_input_pipelines} input pipelines"
        )
    if isinstance(start, int):
        start = records.position(start, seed, shuffle)
    first = records.examples_before(start, seed, shuffle)
    if epochs is not None and first >= epochs * records.examples:
        raise UserError(f"{start} lies behind the last of {epochs} epochs")

    dataset = _serialized(records, seed, shuffle, epochs, start)
    dataset = dataset.rebatch(batch_size, drop_remainder=drop_remainder)
    share = batch_size // num_input_pipelines
    mine = slice(input_pipeline_id * share, (input_pipeline_id + 1) * share)
    parse = _parser(records)
    if records.dynamic_masking:
        from data_prep.dynamic_masking import DynamicMasking

        mask = DynamicMasking(records, batch_size, seed)

        def examples(index, serialized):
            # Numbers for the whole batch, so that the pipelines' stretches differ.
            return mask(parse(serialized[mine]), first + index * batch_size, mine)
    else:

        def examples(index, serialized):
            return parse(serialized[mine])

    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return (
        dataset.enumerate()
        .map(examples, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
        .prefetch(tf.data.AUTOTUNE)
        .with_options(options)
    )


def _serialized(records, seed, shuffle, epochs, start):
    """Windows of serialised examples in reading order, from `start` on."""
    import tensorflow as tf

    files = tf.constant(records.files)
    first_window, first_offset = divmod(start.offset, _WINDOW)

    def read_epoch(epoch):
        resumed = tf.equal(epoch, start.epoch)
        if shuffle:
            order = _shard_order(len(records.files), seed, epoch)
        else:
            order = tf.range(len(records.files), dtype=tf.int32)
        order = order[tf.where(resumed, start.shard, 0) :]
        places = tf.range(tf.shape(order)[0])
        return tf.data.Dataset.from_tensor_slices((order, places)).flat_map(
            lambda shard, place: read_shard(epoch, shard, resumed & tf.equal(place, 0))
        )

    def read_shard(epoch, shard, resumed):
        skipped = tf.where(resumed, tf.constant(first_window, tf.int64), 0)
        offset = tf.where(resumed, first_offset, 0)
        raw = tf.data.TFRecordDataset(
            files[shard], compression_type=records.compression, buffer_size=1 << 20
        )
        windows = raw.skip(skipped * _WINDOW).batch(_WINDOW).enumerate()

        def arrange(index, window):
            if shuffle:
                place = _fold(seed, epoch, shard, skipped + index)
                window = tf.gather(window, _permutation(tf.shape(window)[0], place))
            return window[tf.where(tf.equal(index, 0), offset, 0) :]

        return windows.map(arrange)

    last = epochs if epochs is not None else 2**62
    return tf.data.Dataset.range(start.epoch, last).flat_map(read_epoch)


def _shard_order(shards, seed, epoch):
    return _permutation(shards, _fold(seed, epoch))


def _permutation(size, seed):
    """int32 [size]: a permutation that depends on the seed alone, also between versions."""
    import tensorflow as tf

    keys = tf.random.stateless_uniform(
        [size], seed, minval=None, maxval=None, dtype=tf.int64, alg="philox"
    )
    return tf.argsort(keys, stable=True)


def _fold(seed, *numbers):
    import tensorflow as tf

    folded = tf.constant([seed % 2**62, 0], tf.int64)
    for number in numbers:
        folded = tf.random.experimental.stateless_fold_in(
            folded, tf.cast(number, tf.int64), alg="philox"
        )
    return folded


def _parser(records):
    import tensorflow as tf

    types = {"int64": tf.int64, "float32": tf.float32}
    features = {
        name: tf.io.FixedLenFeature([_feature_length(records, name)], types[kind])
        for name, kind in SCHEMA.items()
        if not (records.dynamic_masking and name.startswith("masked_lm_"))
    }

    def parse(serialized):
        batch = tf.io.parse_example(serialized, features)
        return {
            name: tf.cast(value, tf.int32) if value.dtype == tf.int64 else value
            for name, value in batch.items()
        }

    return parse


def _feature_length(records, name):
    if name == "next_sentence_labels":
        return 1
    if name.startswith("masked_lm_"):
        return records.max_predictions_per_seq
    return records.max_seq_length


def _find(source) -> list[str]:
    if not isinstance(source, str):
        files = [os.fspath(path) for path in source] if isinstance(source, list) else None
        if files is None:
            return _find(os.fspath(source))
    elif storage.exists(os.path.join(source, "manifest.json")):
        manifest = storage.read_json(os.path.join(source, "manifest.json"))
        return [os.path.join(source, shard["file"]) for shard in manifest["shards"]]
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


def _with_manifest(files) -> Records | None:
    """Records described by the manifest beside them, or None where there is none."""
    folder = os.path.dirname(files[0])
    path = os.path.join(folder, "manifest.json")
    if not storage.exists(path):
        return None
    manifest = storage.read_json(path)
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
    return Records(
        files,
        [shards[file]["examples"] for file in files],
        manifest["max_seq_length"],
        manifest["max_predictions_per_seq"],
        manifest["dynamic_masking"],
        manifest["compression"],
        manifest,
        folder,
    )


def _without_manifest(files) -> Records:
    """Records of other programs: counted, and their lengths taken from the first one of each."""
    from data_prep.record_files import count_records, first_example, is_gzip

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
    return Records(
        files,
        counts,
        lengths.get("input_ids", 0),
        lengths.get("masked_lm_positions", 0),
        compression=compression,
    )
