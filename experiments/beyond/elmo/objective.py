"""ELMo's language model in both directions, of words that are read by their letters."""

import dataclasses

import keras
from keras import ops

from experiments.beyond.elmo.shape import ElmoConfig
from experiments.beyond.shallow.objective import AdjacentTokens
from official_bert.common.errors import UserError


@dataclasses.dataclass(frozen=True)
class AdjacentWords(AdjacentTokens):
    """Adjacent whole words, with a softmax of its own that both directions share
    (Peters et al. 2018, section 3.1); words of several pieces are [UNK] there."""

    name = "adjacent_words"

    def build(self, model, initializer):
        config = model.encoder.config
        if not isinstance(config, ElmoConfig):
            raise UserError(f"objective {self.name}: it is ELMo's; bert must be an ElmoConfig")
        model.masked_lm = Softmax(
            config, initializer.seed, dtype=model.dtype_policy, name="masked_lm"
        )

    def as_read(self, model, batch):
        return {**batch, **model.encoder.words(batch["input_ids"], batch["input_mask"])}

    def scores(self, model, vectors):
        return model.masked_lm(vectors)


class Softmax(keras.layers.Layer):
    """A row and a bias for each word."""

    def __init__(self, config: ElmoConfig, seed=None, **kwargs):
        super().__init__(**kwargs)
        rows = config.vocab_size
        # bilm-tf's. Where it is smaller, the LSTMs learn to write large numbers, up to their clip.
        initializer = keras.initializers.RandomNormal(stddev=config.projection**-0.5, seed=seed)
        self.table = self.add_weight(
            name="table", shape=(rows, config.projection), initializer=initializer
        )
        self.bias = self.add_weight(name="bias", shape=(rows,), initializer="zeros", autocast=False)
        self.built = True

    def call(self, x):
        """Map [B, P, projection] -> float32 logits [B, P, V]."""
        return ops.cast(ops.matmul(x, ops.transpose(self.table)), "float32") + self.bias
