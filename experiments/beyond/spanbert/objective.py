"""The span boundary objective (SpanBERT, Joshi et al. 2020, section 3.2).

Every token of a masked run is predicted once more, from the two tokens just outside the run and
from its place in it. Runs of consecutive `masked_lm_positions` are the spans, so records made with
`spans` need no further field.
"""

import dataclasses

import keras
from keras import ops

from official_bert.layers import LayerNorm, activation, dense, gather_positions
from official_bert.objectives.masked_lm import language_model_head
from official_bert.objectives.protocol import Choice, Loss


@dataclasses.dataclass(frozen=True)
class SpanBoundary(Choice):
    """Predicts `masked_lm_ids` from the boundaries of their spans; stands beside "masked_lm".

    Attributes:
      position_size: width of the embedding of the place in the span.
      most: places that have an embedding of their own; those beyond share the last one's.
    """

    position_size: int = 200
    most: int = 20

    name = "span_boundary"
    needs = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
    metrics = ("span_boundary_accuracy",)
    losses = {"span_boundary_loss": Loss(epsilon=1e-5)}

    def build(self, model, initializer):
        model.span_boundary = SpanBoundaryHead(
            model.encoder.config,
            initializer,
            self.position_size,
            self.most,
            dtype=model.dtype_policy,
            name="span_boundary",
        )

    def call(self, model, batch, encoded):
        """Return {"span_boundary_logits": float32 [B, P, V]}."""
        sequence, positions = encoded["sequence_output"], batch["masked_lm_positions"]
        first, last = span_ends(positions)
        # Places without a prediction point at 0, which has no neighbour on the left.
        left = gather_positions(sequence, ops.maximum(first - 1, 0))
        right = gather_positions(sequence, ops.minimum(last + 1, ops.shape(sequence)[1] - 1))
        table = model.encoder.embeddings.word_embeddings
        logits = model.span_boundary(left, right, positions - first, table)
        return {"span_boundary_logits": logits}

    def compared(self, batch, outputs):
        logits = outputs["span_boundary_logits"]
        return logits, batch["masked_lm_ids"], batch["masked_lm_weights"]


def span_ends(positions):
    """Return the first and the last position of the run that each position belongs to.

    Args:
      positions: int32 [B, P], ascending but for zeros at the end.

    Returns: two int32 [B, P].
    """
    follows = positions[:, 1:] == positions[:, :-1] + 1
    begins = ops.pad(1 - ops.cast(follows, "int32"), [[0, 0], [1, 0]], constant_values=1)
    run = ops.cumsum(begins, axis=1)
    same = run[:, :, None] == run[:, None, :]
    others = ops.broadcast_to(positions[:, None, :], ops.shape(same))
    own = positions[:, :, None]
    first = ops.min(ops.where(same, others, own), axis=2)
    return first, ops.max(ops.where(same, others, own), axis=2)


class SpanBoundaryHead(keras.layers.Layer):
    """Two dense layers, each with activation and normalisation, then the token table."""

    def __init__(self, config, initializer, position_size, most, **kwargs):
        super().__init__(**kwargs)
        self.activation, self.most = activation(config), most
        width, policy = config.hidden_size, self.dtype_policy
        with keras.name_scope(self.name):
            self.dense = dense(2 * width + position_size, width, initializer, policy, "dense")
            self.norm = LayerNorm(config, dtype=policy, name="norm")
            # The second layer and the scores are those of the masked-LM head.
            self.scores = language_model_head(config, initializer, dtype=policy, name="scores")
        self.position_embeddings = self.add_weight(
            name="position_embeddings",
            shape=(most, position_size),
            initializer=initializer,
            autocast=False,
        )
        self.built = True

    def call(self, left, right, place, word_embeddings):
        """Map [B, P, H] twice, int32 [B, P], float32 [V, E] -> float32 logits [B, P, V]."""
        place = ops.minimum(place, self.most - 1)
        where = ops.cast(ops.take(self.position_embeddings, place, axis=0), self.compute_dtype)
        x = ops.concatenate([left, right, where], axis=-1)
        return self.scores(self.norm(self.activation(self.dense(x))), word_embeddings)
