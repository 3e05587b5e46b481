"""Pre-training examples as training reads them: batches from records, in a fixed order.

The reading order is a pure function of the seed: in every epoch the shards come in a new order, and
the records of a shard in stretches of 4,096, each shuffled anew. (The shards hold a uniform shuffle
of all examples to begin with.) So a place in the data is (epoch, shard, offset), or simply the
number of examples read so far, and reading can start at any place at the cost of opening one shard.
"""

from data_prep.pretraining import record_sets
from data_prep.pretraining.numpy_batches import numpy_batches
from data_prep.pretraining.record_checks import check_batch, explained
from data_prep.pretraining.record_sets import (
    SCHEMA,
    Position,
    Records,
    fold,
    open_records,
    permutation,
    shard_order,
)
from official_bert.errors import UserError

__all__ = [
    "SCHEMA",
    "Position",
    "Records",
    "explained",
    "numpy_batches",
    "open_records",
    "pretraining_dataset",
]


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
      UserError: see `open_records`; or the batch cannot be divided among the pipelines. Reading a
        record with numbers that the model has no place for fails with TensorFlow's error, which
        `explained` turns into a UserError that says where it is.
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
    start, first = records.beginning(start, seed, shuffle, epochs)

    dataset = _serialized(records, seed, shuffle, epochs, start)
    dataset = dataset.rebatch(batch_size, drop_remainder=drop_remainder)
    share = batch_size // num_input_pipelines
    mine = slice(input_pipeline_id * share, (input_pipeline_id + 1) * share)
    parse = _parser(records)
    if records.dynamic_masking:
        from data_prep.pretraining.dynamic_masking import DynamicMasking

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
    read_file = _file_reader(records)
    first_window, first_offset = divmod(start.offset, record_sets.WINDOW)

    def read_epoch(epoch):
        resumed = tf.equal(epoch, start.epoch)
        if shuffle:
            order = shard_order(len(records.files), seed, epoch)
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
        raw = read_file(files[shard])
        windows = raw.skip(skipped * record_sets.WINDOW).batch(record_sets.WINDOW).enumerate()

        def arrange(index, window):
            if shuffle:
                place = fold(seed, epoch, shard, skipped + index)
                window = tf.gather(window, permutation(tf.shape(window)[0], place))
            return window[tf.where(tf.equal(index, 0), offset, 0) :]

        return windows.map(arrange)

    last = epochs if epochs is not None else 2**62
    return tf.data.Dataset.range(start.epoch, last).flat_map(read_epoch)


def _file_reader(records):
    """From a path, a tensor, to a dataset of its serialised examples."""
    import tensorflow as tf

    from data_prep.jobs import storage
    from data_prep.pretraining.record_files import read_records

    def read(path):
        return tf.data.TFRecordDataset(path, records.compression, buffer_size=1 << 20)

    if storage.read_by_tensorflow(records.files[0]):
        if storage.is_remote(records.files[0]):
            return read
        return lambda path: read(tf.ensure_shape(_checked(path, records), []))
    return lambda path: tf.data.Dataset.from_generator(
        lambda name: read_records(name.decode(), records.compression),
        output_signature=tf.TensorSpec([], tf.string),
        args=(path,),
    )


def _checked(path, records):
    """The same path, in a graph, once it is known that the file is the one that was opened and that
    TensorFlow's reader can be let loose."""
    import tensorflow as tf

    from data_prep.pretraining.record_files import check_lengths

    def check(name):
        try:
            records.check_file(name.decode())
            if not records.compression:
                check_lengths(name.decode())
        except UserError as error:
            raise ValueError(str(error)) from None  # as TensorFlow's own of a damaged record
        return name

    return tf.numpy_function(check, [path], tf.string, stateful=False)


def _parser(records):
    import tensorflow as tf

    types = {"int64": tf.int64, "float32": tf.float32}
    features = {
        name: tf.io.FixedLenFeature([records.feature_length(name)], types[kind])
        for name, kind in SCHEMA.items()
        if not (records.dynamic_masking and name.startswith("masked_lm_"))
    }

    def parse(serialized):
        batch = tf.io.parse_example(serialized, features)
        with tf.control_dependencies([check_batch(batch, records)]):
            return {
                name: tf.cast(value, tf.int32) if value.dtype == tf.int64 else tf.identity(value)
                for name, value in batch.items()
            }

    return parse
