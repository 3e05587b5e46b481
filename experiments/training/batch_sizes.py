"""The division of a batch."""

from official_bert.common.errors import UserError


def check_batch_size(batch_size, strategy, accumulation, name="train_batch_size"):
    """Raises UserError unless the batch divides into replicas and micro-batches."""
    parts = strategy.num_replicas_in_sync * accumulation
    if batch_size % parts:
        raise UserError(
            f"{name} is {batch_size}, not a multiple of {parts} "
            f"({strategy.num_replicas_in_sync} replicas x {accumulation} micro-batches)"
        )
