"""The masked language model (section 3.1, task #1): which pieces stood at the masked positions."""

import dataclasses

import keras
from keras import ops

from official_bert.extension import load
from official_bert.layers import LayerNorm, activation, dense, gather_positions
from official_bert.objectives import check_direction
from official_bert.objectives.protocol import Choice, Loss
from official_bert.objectives.sentence_pair import add_head


@dataclasses.dataclass(frozen=True)
class MaskedLM(Choice):
    """Predicts `masked_lm_ids` at `masked_lm_positions`.

    Attributes:
      weight: of its loss beside those of other objectives.
    """

    weight: float = 1.0

    name = "masked_lm"
    language_model = True
    needs = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
    metrics = ("masked_lm_accuracy",)
    perplexities = {"masked_lm_perplexity": "masked_lm_loss"}

    @property
    def losses(self):
        # google-research/bert adds it to the number of predictions of a batch before it divides.
        return {"masked_lm_loss": Loss(self.weight, epsilon=1e-5)}

    def build(self, model, initializer):
        config = model.encoder.config
        check_direction([self.name], config)
        model.masked_lm = language_model_head(
            config, initializer, dtype=model.dtype_policy, name="masked_lm"
        )
        # "No NSP" keeps the head of pairs at its initial values, as it keeps the pooler.
        add_head(model, initializer)

    def output_bias(self, model):
        if model.masked_lm.bias is None:
            return super().output_bias(model)
        return model.masked_lm.bias

    def call(self, model, batch, encoded):
        """Return the logits, and the ids and weights that they are to be compared with.

        Returns:
          {"masked_lm_logits": float32 [B, P, V], "masked_lm_ids": int32 [B, P],
          "masked_lm_weights": float32 [B, P]}
        """
        vectors = gather_positions(encoded["sequence_output"], batch["masked_lm_positions"])
        return {
            "masked_lm_logits": self.scores(model, vectors),
            "masked_lm_ids": batch["masked_lm_ids"],
            "masked_lm_weights": batch["masked_lm_weights"],
        }

    def scores(self, model, vectors):
        """Return logits [B, P, V] of vectors [B, P, H]."""
        return model.masked_lm(vectors, model.encoder.embeddings.word_embeddings)

    def compared(self, batch, outputs):
        return tuple(outputs[f"masked_lm_{name}"] for name in ("logits", "ids", "weights"))

    def cloze(self, batch):
        """Return the batch that asks the model for the pieces at `masked_lm_positions`, and their
        places.

        Returns: (the batch to encode, positions of the vectors that predict them, int32 [B, P]).
        """
        return batch, batch["masked_lm_positions"]


def language_model_head(config, initializer, **kwargs) -> "MaskedLMHead":
    """Return the head of a configuration's language model."""
    return load(config.language_model_head)(config, initializer, **kwargs)


class MaskedLMHead(keras.layers.Layer):
    """Transform (dense, activation, normalisation), then the token table again, plus a bias.

    Scores are products with the same table that embeds the tokens ("tied" weights), so the head
    adds only the transform and one bias a vocabulary entry.

    Args:
      config, initializer: of the encoder.
      width: of the token table; None: `hidden_size`.
    """

    def __init__(self, config, initializer, width=None, **kwargs):
        super().__init__(**kwargs)
        self.activation = activation(config)
        width, policy = width or config.hidden_size, self.dtype_policy
        with keras.name_scope(self.name):
            self.transform = dense(config.hidden_size, width, initializer, policy, "transform")
            self.norm = LayerNorm(config, width, dtype=policy, name="norm")
        self.bias = self.add_weight(
            name="bias", shape=(config.vocab_size,), initializer="zeros", autocast=False
        )
        self.built = True

    def transformed(self, x):
        """Map [B, P, H] -> [B, P, E]."""
        return self.norm(self.activation(self.transform(x)))

    def call(self, x, word_embeddings):
        """Map [B, P, H] and the float32 [V, E] token table -> float32 logits [B, P, V].

        The product, the largest of a step, has the compute dtype; the bias is added in float32.
        """
        x = self.transformed(x)
        table = ops.cast(word_embeddings, self.compute_dtype)
        if keras.backend.backend() == "tensorflow":
            from official_bert.backend.tensorflow_kernels import scores_of_table

            rows, predictions, width = ops.shape(x)
            scores = scores_of_table(ops.reshape(x, (-1, width)), table, self.bias)
            return ops.reshape(scores, (rows, predictions, table.shape[0]))
        scores = ops.cast(ops.matmul(x, ops.transpose(table)), "float32")
        return scores if self.bias is None else scores + self.bias


def restore_masked_tokens(batch):
    """Return a batch with the text as it was before masking: `masked_lm_ids` put back in
    `input_ids`."""
    ids, positions = batch["input_ids"], batch["masked_lm_positions"]
    real = ops.cast(ops.cast(batch["masked_lm_weights"], "float32") > 0, "int32")
    change = (batch["masked_lm_ids"] - ops.take_along_axis(ids, positions, axis=1)) * real
    at = ops.one_hot(positions, ops.shape(ids)[1], dtype="int32")  # [B, P, L]
    return {**batch, "input_ids": ids + ops.sum(at * change[..., None], axis=1)}
