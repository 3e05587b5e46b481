"""The feature-based approach of section 5.3: a tagger that reads a frozen encoder.

A randomly initialised two-layer BiLSTM, 768 wide, and a classifier on each token take the hidden
states as they are. Nothing below is trained, so the six rows of Table 7 differ only in which hidden
states are read.
"""

import keras
from keras import ops

from official_bert.features import LayerCombination, select_layers
from official_bert.heads import BertTagger
from official_bert.losses import ModelWithLosses
from official_bert.randomness import dropout, fold_in, next_seed

# Parts of the seed that no layer of the encoder uses.
_FEATURE_DROPOUT = 950


class FeatureTagger(ModelWithLosses):
    """A layer combination, BiLSTMs and a classifier on each token; the encoder stays as it is.

    Args:
      encoder: a `BertEncoder`; becomes not trainable.
      num_labels: labels of the task.
      combination: a key of `official_bert.features.COMBINATIONS`.
      width: of the BiLSTM's output, both directions together.
      layers: BiLSTMs on top of each other.
      seed: of the initial weights.
    """

    def __init__(self, encoder, num_labels, combination, width=768, layers=2, seed=None, **kwargs):
        super().__init__(
            dtype=kwargs.pop("dtype", encoder.dtype_policy), **{"name": "feature_tagger", **kwargs}
        )
        config = encoder.config
        encoder.trainable = False
        self.encoder = encoder
        self.num_labels = num_labels
        self.combination = combination
        self.dropout_rate = config.hidden_dropout_prob
        self.seed_generator = keras.random.SeedGenerator(seed)
        states = select_layers(range(config.num_hidden_layers + 1), combination)
        self.join = LayerCombination(combination, len(states))
        inputs = config.hidden_size * (len(states) if self.join.join == "concat" else 1)
        self.lstms = []
        for layer in range(layers):
            lstm = keras.layers.Bidirectional(
                keras.layers.LSTM(width // 2, return_sequences=True, dtype=self.dtype_policy)
            )
            lstm.build((None, None, inputs if layer == 0 else width))
            self.lstms.append(lstm)
        self.head = keras.layers.Dense(num_labels, dtype=self.dtype_policy, name="head")
        self.head.build((None, width))
        self.built = True
        self._declare_means("label_loss", "accuracy")

    def call(self, batch, training=False, seed=None):
        """Encoder inputs, int32 [B, L] each -> {"logits": [B, L, num_labels]}."""
        seed = (next_seed(self.seed_generator) if seed is None else seed) if training else None
        hidden_states = self.encoder(batch, training=False)["hidden_states"]
        sequence = self.join(select_layers(hidden_states, self.combination))
        mask = ops.cast(batch["input_mask"], "bool")
        for index, lstm in enumerate(self.lstms):
            layer_seed = fold_in(seed, _FEATURE_DROPOUT + index)
            sequence = lstm(dropout(sequence, self.dropout_rate, layer_seed), mask=mask)
        return {"logits": self.head(sequence)}

    loss_terms = BertTagger.loss_terms
    metric_terms = BertTagger.metric_terms
    _labels = staticmethod(BertTagger._labels)
