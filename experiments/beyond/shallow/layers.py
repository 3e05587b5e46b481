"""The shallow concatenation that section 5.1 argues against, as in ELMo: one half of every vector
reads from left to right, the other from right to left, and they never meet."""

import keras
from keras import ops

from experiments.beyond.common.layers import Successor
from experiments.beyond.shallow.shape import ShallowConfig
from official_bert.extension import load
from official_bert.layers import TransformerBlock, bias_of
from official_bert.randomness import SECOND_ENCODER, fold_in


class Shallow(Successor):
    """Two encoders on the same embeddings, side by side."""

    def embeddings(self, initializer, **kwargs):
        half = self.config.one_direction
        return load(half.transformer)(half).embeddings(initializer, **kwargs)

    def block(self, number, initializer, **kwargs):
        return ShallowBlock(self.config, initializer, **kwargs)

    def widened(self, x):
        return ops.concatenate([x, x], axis=-1)

    def attention_bias(self, input_mask, dtype):
        """Return [B, 2, L, L]: left to right first."""
        position = ops.arange(ops.shape(input_mask)[1])
        before = position[None, None, None, :] <= position[:, None]
        before = ops.concatenate([before, ops.transpose(before, (0, 1, 3, 2))], axis=1)
        real = ops.cast(input_mask[:, None, None, :], "bool")
        return bias_of(ops.logical_and(real, before), dtype)

    def summary(self, sequence, input_mask):
        """Summarise a text: each half takes the token at which it has read everything."""
        half = sequence.shape[-1] // 2
        last = super().summary(sequence, input_mask)
        return ops.concatenate([last[:, :half], sequence[:, 0, half:]], axis=-1)


class ShallowBlock(keras.layers.Layer):
    """A block for each direction of a shallow concatenation (section 5.1): the halves of a vector
    never meet."""

    def __init__(self, config: ShallowConfig, initializer, **kwargs):
        super().__init__(**kwargs)
        half, policy = config.one_direction, self.dtype_policy
        with keras.name_scope(self.name):
            self.directions = [
                TransformerBlock(half, initializer, dtype=policy, name=name)
                for name in ("left_to_right", "right_to_left")
            ]
        self.built = True

    def call(self, x, attention_bias, seed=None, return_attention=False):
        """Compute a `TransformerBlock` in each direction; bias [B, 2, L, L], left to right
        first."""
        forward, backward = ops.split(x, 2, axis=-1)
        to_right, to_left = self.directions
        forward, seen = to_right(forward, attention_bias[:, :1], seed, return_attention=True)
        seed = fold_in(seed, SECOND_ENCODER)
        backward, too = to_left(backward, attention_bias[:, 1:], seed, return_attention=True)
        x = ops.concatenate([forward, backward], axis=-1)
        return (x, ops.concatenate([seen, too], axis=1)) if return_attention else x
