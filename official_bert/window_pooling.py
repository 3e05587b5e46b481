"""Pooling: one vector of a text from those of its tokens, or from those of its windows."""

from official_bert.extension import names

POOLINGS = ("mean", "max", "first_last")


def token_pooling_fields() -> list[str]:
    """Return the fields of `model.json` with which a classifier reads all tokens' vectors."""
    return ["mean_pooling", *names("heads")]


def pool(vectors, real, pooling: str):
    """Return the vectors of the windows of each text, pooled.

    Args:
      vectors: [B, W, H].
      real: bool [B, W], True for the first windows of a row; none of a row that fills the batch.
      pooling: "mean", "max", or "first_last", the mean of the first and the last one.

    Returns: [B, H].
    """
    from keras import ops

    real = ops.expand_dims(real, -1)  # LiteRT has no slices with an ellipsis
    weights = ops.cast(real, vectors.dtype)
    count = ops.maximum(ops.sum(weights, axis=1), 1)  # [B, 1]
    if pooling == "mean":
        return ops.sum(vectors * weights, axis=1) / count
    if pooling == "max":
        return ops.max(ops.where(real, vectors, -1e4), axis=1)
    last = ops.cast(count, "int32")[..., None] - 1  # [B, 1, 1]
    ends = vectors[:, :1] + ops.take_along_axis(vectors, last, axis=1)
    return ends[:, 0] / 2
