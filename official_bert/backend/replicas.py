"""The replica that code runs on under tf.distribute; the one replica everywhere else."""

import keras


def count() -> int:
    """Return the number of replicas that take this step together."""
    context = _context()
    return context.num_replicas_in_sync if context else 1


def number():
    """Return the number of this replica, from 0 on: int, or int32 scalar tensor."""
    context = _context()
    return context.replica_id_in_sync_group if context else 0


def summed(values):
    """Return the sums over all replicas of a list of tensors."""
    if count() == 1:
        return values
    import tensorflow as tf

    return _context().all_reduce(tf.distribute.ReduceOp.SUM, values)


def _context():
    if keras.backend.backend() != "tensorflow":
        return None
    import tensorflow as tf

    return tf.distribute.get_replica_context()
