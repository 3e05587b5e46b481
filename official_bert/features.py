"""The feature-based approach (section 5.3, Table 7): fixed vectors out of a frozen encoder.

Each name in `COMBINATIONS` but "elmo" is a row of Table 7. Sums have weights to learn.
"""

import keras
from keras import ops

from official_bert.common.errors import UserError, check_choice

# Table 7's row -> which hidden states it reads (0 is the embedding output, -1 the last layer) and
# how it joins them.
COMBINATIONS = {
    "embeddings": (slice(0, 1), "single"),
    "second_to_last": (slice(-2, -1), "single"),
    "last": (slice(-1, None), "single"),
    "weighted_sum_last_four": (slice(-4, None), "weighted_sum"),
    "concat_last_four": (slice(-4, None), "concat"),
    "weighted_sum_all": (slice(1, None), "weighted_sum"),
    "elmo": (slice(0, None), "weighted_sum"),  # ELMo reads its words too
}


def select_layers(hidden_states, combination: str) -> list:
    """Return the hidden states [B, L, H] that a combination reads, of `BertEncoder`'s
    "hidden_states".

    Raises:
      UserError: the name is unknown, or the encoder has fewer layers than the row reads.
    """
    check_choice("combination", combination, COMBINATIONS)
    layers, join = COMBINATIONS[combination]
    if combination.endswith("last_four") and len(hidden_states) < 5:
        raise UserError(
            f"{combination} reads four layers; the encoder has {len(hidden_states) - 1}"
        )
    return list(hidden_states)[layers]


@keras.saving.register_keras_serializable("official_bert")
class LayerCombination(keras.layers.Layer):
    """Joins selected hidden states into one feature vector a token.

    A weighted sum has a learned softmax weight a layer and a learned scale, as ELMo's; it starts as
    the plain mean.

    Args:
      combination: a key of `COMBINATIONS`.
      num_layers: how many hidden states `select_layers` returns for it.
    """

    def __init__(self, combination: str, num_layers: int, **kwargs):
        super().__init__(**kwargs)
        self.combination = combination
        self.num_layers = num_layers
        self.join = COMBINATIONS[combination][1]
        if self.join == "weighted_sum":
            self.layer_weights = self.add_weight(
                name="layer_weights", shape=(num_layers,), initializer="zeros"
            )
            self.scale = self.add_weight(name="scale", shape=(), initializer="ones")
        self.built = True

    def call(self, states):
        """Join a list of num_layers tensors [B, L, H] to [B, L, H], or to [B, L, num_layers *
        H]."""
        if self.join == "single":
            return states[0]
        if self.join == "concat":
            return ops.concatenate(states, axis=-1)
        weights = ops.softmax(self.layer_weights) * self.scale
        return sum(weights[i] * state for i, state in enumerate(states))

    def get_config(self):
        return {
            **super().get_config(),
            "combination": self.combination,
            "num_layers": self.num_layers,
        }
