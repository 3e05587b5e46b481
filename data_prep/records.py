"""Batches of pre-training records for training, in a fixed order.

The reading order is a pure function of the seed: in every epoch the shards come in a new order, and
the records of a shard in stretches of 4,096, each shuffled anew. (The shards hold a uniform shuffle
of all examples to begin with.) So a place in the data is (epoch, shard, offset), or the number of
examples read so far. Reading can start at any place at the cost of opening one shard.
"""

from data_prep.pretraining.reading.dynamic_masking import MaskingRules
from data_prep.pretraining.reading.numpy_batches import numpy_batches
from data_prep.pretraining.reading.record_checks import explained
from data_prep.pretraining.reading.record_sets import SCHEMA, Position, RecordSet, open_records
from official_bert.common.errors import UserError

__all__ = [
    "SCHEMA",
    "Position",
    "RecordSet",
    "explained",
    "numpy_batches",
    "open_records",
    "pretraining_dataset",
]


def pretraining_dataset(
    source: "str | list[str] | RecordSet",
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
    """Return batches for pre-training.

    Args:
      source: as for `open_records`, or its result.
      batch_size: examples of a batch over all input pipelines together.
      seed, shuffle, epochs, start, drop_remainder: as for `numpy_batches`.
      num_input_pipelines, input_pipeline_id: under tf.distribute, from the InputContext. Each
        pipeline gets its stretch of every batch, so the batches of all together do not depend on
        their number.
      max_seq_length, max_predictions_per_seq, vocab_size: as for `open_records`.

    Returns:
      A tf.data.Dataset of dictionaries with the names of SCHEMA: int32 [batch, max_seq_length],
      [batch, max_predictions_per_seq] and [batch, 1], and the weights float32. A thread makes the
      next batches while one is used.

    Raises:
      UserError: see `open_records`; or the batch cannot be divided among the pipelines. A record
        that is damaged, or holds numbers that the model has no place for, fails with TensorFlow's
        error, which `explained` turns into a UserError that says where it is.
    """
    import tensorflow as tf

    if isinstance(source, RecordSet):
        records = source
    else:
        records = open_records(source, max_seq_length, max_predictions_per_seq, vocab_size)
    if batch_size % num_input_pipelines:
        raise UserError(
            f"batch size {batch_size} cannot be divided among {num_input_pipelines} input pipelines"
        )
    records.beginning(start, seed, shuffle, epochs)  # what is wrong is said at once
    if records.dynamic_masking:
        MaskingRules.of(records)
    share = batch_size // num_input_pipelines
    mine = slice(input_pipeline_id * share, (input_pipeline_id + 1) * share)

    def batches():
        made = numpy_batches(
            records,
            batch_size,
            seed=seed,
            shuffle=shuffle,
            epochs=epochs,
            start=start,
            drop_remainder=drop_remainder,
        )
        for batch in made:
            yield {name: rows[mine] for name, rows in batch.items()}

    rows = share if drop_remainder else None
    signature = {
        name: tf.TensorSpec(
            [rows, records.feature_length(name)], "float32" if kind == "float32" else "int32"
        )
        for name, kind in SCHEMA.items()
    }
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    dataset = tf.data.Dataset.from_generator(batches, output_signature=signature)
    return dataset.prefetch(tf.data.AUTOTUNE).with_options(options)
