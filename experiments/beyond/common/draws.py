"""Draws of classes by their probabilities."""

from keras import ops

from official_bert.randomness import uniform


def draw(logits, seed):
    """Return one class of each row of logits, drawn by its probability: [..., N] -> int32 [...].

    The largest of logits with Gumbel noise is such a draw.
    """
    noise = uniform(ops.shape(logits), seed)
    gumbel = -ops.log(-ops.log(ops.clip(noise, 1e-9, 1 - 1e-7)))
    return ops.cast(ops.argmax(ops.cast(logits, "float32") + gumbel, axis=-1), "int32")
