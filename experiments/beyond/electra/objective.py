"""Replaced token detection (ELECTRA, Clark et al. 2020): which tokens a small generator wrote.

A generator, a masked language model beside the encoder, fills in the masks; the encoder says of
every token whether it stood there before. Generator and encoder are trained together and share the
embedding tables; no gradient goes through the choice of tokens.
"""

import dataclasses

import keras
from keras import ops

from experiments.beyond.common.draws import draw
from experiments.beyond.electra.shape import narrower
from official_bert.layers import (
    TransformerBlock,
    activation,
    attention_bias,
    dense,
    gather_positions,
)
from official_bert.losses import (
    binary_cross_entropy,
    correct,
    cross_entropy,
    row_weights,
    weighted_sum,
)
from official_bert.objectives import refuse_direction
from official_bert.objectives.masked_lm import language_model_head, restore_masked_tokens
from official_bert.objectives.protocol import Loss, Objective
from official_bert.randomness import OF_EXTENSIONS, SECOND_ENCODER, fold_in, make_seed


@dataclasses.dataclass(frozen=True)
class ReplacedToken(Objective):
    """Says of every real token whether it is the original (0) or another one (1).

    Attributes:
      generator: its width beside the encoder's: hidden size, heads and feed-forward layer.
      weight: of this loss beside the generator's, which is far larger: a choice among all pieces
        against one of two answers.
    """

    generator: float = 0.25
    weight: float = 50.0

    name = "replaced_token"
    direction = "bidirectional"
    needs = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
    metrics = ("replaced_token_accuracy", "masked_lm_accuracy")
    perplexities = {"masked_lm_perplexity": "masked_lm_loss"}  # the generator's
    # fmt: off
    names = (
        ("replaced_token/transform/kernel", None, "discriminator_predictions.dense.weight", None),
        ("replaced_token/transform/bias", None, "discriminator_predictions.dense.bias", None),
        ("replaced_token/score/kernel", None, "discriminator_predictions.dense_prediction.weight",
         None),
        ("replaced_token/score/bias", None, "discriminator_predictions.dense_prediction.bias",
         None),
    )
    # fmt: on

    @property
    def losses(self):
        return {
            "replaced_token_loss": Loss(weight=self.weight, epsilon=1e-6),
            "masked_lm_loss": Loss(epsilon=1e-6),
        }

    def build(self, model, initializer):
        config, policy = model.encoder.config, model.dtype_policy
        if config.attention_direction != self.direction:
            refuse_direction(self.name, config)
        model.generator = Generator(
            narrower(config, self.generator), initializer, dtype=policy, name="generator"
        )
        model.replaced_token = ReplacedTokenHead(
            config, initializer, dtype=policy, name="replaced_token"
        )

    def output_bias(self, model):
        return model.generator.head.bias

    def corrupt(self, model, batch, seed):
        """Return the text with the generator's choices in the place of the masks."""
        embeddings, positions = model.encoder.embeddings, batch["masked_lm_positions"]
        seed_of_generator = fold_in(seed, SECOND_ENCODER)
        x = embeddings.of_tables(batch["input_ids"], batch["segment_ids"], seed_of_generator)
        table = embeddings.word_embeddings
        logits = model.generator(x, batch["input_mask"], positions, table, seed_of_generator)
        fixed = make_seed(0, 0) if seed is None else seed
        written = draw(ops.stop_gradient(logits), fold_in(fixed, OF_EXTENSIONS + 1))
        original = restore_masked_tokens(batch)["input_ids"]
        choices = {**batch, "input_ids": original, "masked_lm_ids": written}
        ids = restore_masked_tokens(choices)["input_ids"]
        return {
            **batch,
            "input_ids": ids,
            "masked_lm_logits": logits,
            # A choice that is right counts as the original.
            "replaced_token_labels": ops.cast(ids != original, "int32"),
        }

    def call(self, model, batch, encoded):
        """Return `MaskedLM`'s outputs for the generator, and the encoder's outputs that follow.

        {"replaced_token_logits": float32 [B, L], above 0 for "replaced",
        "replaced_token_labels": int32 [B, L], "replaced_token_weights": float32 [B, L]}
        """
        names = ("masked_lm_logits", "masked_lm_ids", "masked_lm_weights", "replaced_token_labels")
        return {
            **{name: batch[name] for name in names},
            "replaced_token_logits": model.replaced_token(encoded["sequence_output"]),
            "replaced_token_weights": ops.cast(batch["input_mask"], "float32"),
        }

    def loss_terms(self, batch, outputs):
        names = ("replaced_token_logits", "replaced_token_labels")
        losses = binary_cross_entropy(*(outputs[name] for name in names))
        pieces = cross_entropy(outputs["masked_lm_logits"], outputs["masked_lm_ids"])
        return {
            "replaced_token_loss": weighted_sum(losses, self._weights(batch, outputs)),
            "masked_lm_loss": weighted_sum(pieces, outputs["masked_lm_weights"]),
        }

    def metric_terms(self, batch, outputs):
        said = ops.cast(outputs["replaced_token_logits"] > 0, "int32")
        hits = ops.cast(said == outputs["replaced_token_labels"], "float32")
        pieces = correct(outputs["masked_lm_logits"], outputs["masked_lm_ids"])
        return {
            "replaced_token_accuracy": weighted_sum(hits, self._weights(batch, outputs)),
            "masked_lm_accuracy": weighted_sum(pieces, outputs["masked_lm_weights"]),
        }

    def _weights(self, batch, outputs):
        weights = outputs["replaced_token_weights"]
        return weights * row_weights(batch, weights)[:, None]


class Generator(keras.layers.Layer):
    """A masked language model on another encoder's embeddings."""

    def __init__(self, config, initializer, **kwargs):
        super().__init__(**kwargs)
        self.config = config
        policy = self.dtype_policy
        with keras.name_scope(self.name):
            widths = config.embedding_width, config.hidden_size
            self.projection = dense(*widths, initializer, policy, "projection")
            self.blocks = [
                TransformerBlock(config, initializer, dtype=policy, name=f"layer_{i}")
                for i in range(config.num_blocks)
            ]
            self.head = language_model_head(config, initializer, dtype=policy, name="masked_lm")
        self.built = True

    def call(self, embedded, input_mask, positions, word_embeddings, seed=None):
        """Map [B, L, E], int32 [B, L], int32 [B, P], float32 [V, E] -> float32 logits [B, P, V]."""
        x = self.projection(embedded)
        bias = attention_bias(input_mask, "bidirectional", x.dtype)
        for i in range(self.config.num_hidden_layers):
            x = self.blocks[self.config.block_of(i)](x, bias, seed=fold_in(seed, 1 + 3 * i))
        return self.head(gather_positions(x, positions), word_embeddings)


class ReplacedTokenHead(keras.layers.Layer):
    """Dense and activation, then one score a token."""

    def __init__(self, config, initializer, **kwargs):
        super().__init__(**kwargs)
        self.activation = activation(config)
        width, policy = config.hidden_size, self.dtype_policy
        with keras.name_scope(self.name):
            self.transform = dense(width, width, initializer, policy, "transform")
            self.score = dense(width, 1, initializer, "float32", "score")
        self.built = True

    def call(self, x):
        """Map [B, L, H] -> float32 [B, L]."""
        return self.score(ops.cast(self.activation(self.transform(x)), "float32"))[..., 0]
