"""The tagger of section 5.3: BiLSTMs and a classifier on the states of a frozen encoder."""

import keras
from keras import ops

from official_bert.bilstm import BidirectionalLSTM
from official_bert.features import LayerCombination, select_layers
from official_bert.heads import BertTagger
from official_bert.losses import ModelWithLosses
from official_bert.randomness import FEATURE_DROPOUT, dropout, fold_in


class FeatureTagger(ModelWithLosses):
    """A layer combination, BiLSTMs and a classifier on each word.

    Args:
      bert: BertConfig of the encoder that made the vectors.
      num_labels: labels of the task.
      combination: a key of `official_bert.features.COMBINATIONS`.
      width: of the BiLSTM's output, both directions together.
      layers: BiLSTMs on top of each other.
      seed: of the initial weights.
    """

    has_folder = False

    def __init__(self, bert, num_labels, combination, width=768, layers=2, seed=None, **kwargs):
        super().__init__(**{"name": "feature_tagger", **kwargs})
        self.num_labels = num_labels
        self.combination = combination
        self.dropout_rate = bert.hidden_dropout_prob
        self.seed_generator = keras.random.SeedGenerator(seed)
        states = select_layers(range(bert.num_hidden_layers + 1), combination)
        self.join = LayerCombination(combination, len(states), dtype=self.dtype_policy, name="join")
        inputs = bert.hidden_size * (len(states) if self.join.join == "concat" else 1)
        self.lstms = []
        for layer in range(layers):
            layer_seed = None if seed is None else seed + 10 * layer
            lstm = BidirectionalLSTM(width, layer_seed, self.dtype_policy)
            with keras.name_scope(f"lstm_{layer}"):
                lstm.build((None, None, inputs if layer == 0 else width))
            self.lstms.append(lstm)
        self.head = keras.layers.Dense(
            num_labels,
            kernel_initializer=keras.initializers.GlorotUniform(seed),
            dtype=self.dtype_policy,
            name="head",
        )
        self.head.build((None, width))
        self.built = True
        self._declare_means("label_loss", "accuracy")

    def call(self, batch, training=False, seed=None):
        """`features` [B, L, layers, H] and `input_mask` int32 [B, L] -> {"logits": [B, L, N]}."""
        seed = self.step_seed(training, seed)
        states = ops.cast(batch["features"], self.compute_dtype)
        sequence = self.join([states[:, :, i] for i in range(self.join.num_layers)])
        mask = ops.cast(batch["input_mask"], "bool")
        for index, lstm in enumerate(self.lstms):
            layer_seed = fold_in(seed, FEATURE_DROPOUT + index)
            sequence = lstm(dropout(sequence, self.dropout_rate, layer_seed), mask=mask)
        return {"logits": self.head(sequence)}

    loss_terms = BertTagger.loss_terms
    metric_terms = BertTagger.metric_terms
    label_weights = BertTagger.label_weights
