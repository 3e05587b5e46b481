"""One vector of a long text from the vectors of its windows."""

POOLINGS = ("mean", "max", "first_last")


def pool(vectors, real, pooling: str):
    """The vectors of the windows of each text, pooled.

    Args:
      vectors: [B, W, H].
      real: bool [B, W], True for the first windows of a row, at least one.
      pooling: "mean", "max", or "first_last", the mean of the first and the last one.

    Returns: [B, H].
    """
    from keras import ops

    weights = ops.cast(real, vectors.dtype)[..., None]
    count = ops.sum(weights, axis=1)  # [B, 1]
    if pooling == "mean":
        return ops.sum(vectors * weights, axis=1) / count
    if pooling == "max":
        return ops.max(ops.where(real[..., None], vectors, -1e4), axis=1)
    last = ops.cast(count, "int32")[..., None] - 1  # [B, 1, 1]
    ends = vectors[:, :1] + ops.take_along_axis(vectors, last, axis=1)
    return ends[:, 0] / 2
