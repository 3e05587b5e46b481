"""Language models in both directions: of a shallow concatenation (section 5.1), and ELMo's of words
that are read by their letters."""

import dataclasses

import keras
from keras import ops

from official_bert.common.errors import UserError
from official_bert.compared.elmo_config import ElmoConfig
from official_bert.objectives.masked_lm import MaskedLM, restore_masked_tokens
from official_bert.objectives.next_token import NextToken
from official_bert.randomness import PREDICTED_POSITIONS


@dataclasses.dataclass(frozen=True)
class AdjacentTokens(NextToken):
    """Predicts the next token from the half that reads left to right, and the one before from the
    half that reads right to left; the loss is the mean of both.

    The halves share the token table and the head (Peters et al. 2018, section 3.1) and nothing
    else: neither loss has a gradient for the blocks of the other.
    """

    name = "adjacent_tokens"

    def build(self, model, initializer):
        super().build(model, initializer)
        others = [one.name for one in model.objectives if "masked_lm_ids" in one.needs]
        if len(others) > 1:
            raise UserError(f"only one of the objectives {', '.join(others)} can predict pieces")

    def corrupt(self, model, batch, seed):
        batch = self.as_read(model, restore_masked_tokens(batch))
        ids = batch["input_ids"]
        after = self._drawn(ids[:, 1:], batch, seed)
        before = self._drawn(ids[:, :-1], batch, seed, PREDICTED_POSITIONS + 1)
        # In `call` the states of the second half stand behind those of the first; a token is
        # predicted from the one behind it.
        before = (before[0] + ops.shape(ids)[1] + 1, *before[1:])
        names = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
        both = (ops.concatenate(two, axis=1) for two in zip(after, before, strict=True))
        return {**batch, **dict(zip(names, both, strict=True))}

    def as_read(self, model, batch):
        """Return the text as the encoder reads it."""
        return batch

    def call(self, model, batch, encoded):
        """Return what `MaskedLM.call` does; the next tokens come first, then those before."""
        halves = ops.split(encoded["sequence_output"], 2, axis=-1)
        states = ops.concatenate(halves, axis=1)  # [B, 2 L, H / 2]
        return MaskedLM.call(self, model, batch, {"sequence_output": states})


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
