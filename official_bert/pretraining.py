"""Pre-training (section 3.1): the masked language model, next sentence prediction, their sum.

`BertPretrainer` also holds the objective that the paper compares with in section 5.1: a
left-to-right language model, chosen by `config.attention_direction`.
"""

import keras
from keras import ops

from official_bert.config import BertConfig
from official_bert.encoder import BertEncoder, gather_positions
from official_bert.layers import Dense, LayerNorm, activation
from official_bert.losses import ModelWithLosses, correct, cross_entropy, row_weights, weighted_sum
from official_bert.randomness import PREDICTED_POSITIONS, fold_in, next_seed, uniform


@keras.saving.register_keras_serializable("official_bert")
class BertPretrainer(ModelWithLosses):
    """An encoder with the masked-LM head and the next-sentence head.

    Example:
      model = BertPretrainer(named_config("tiny"))
      model.compile(optimizer=BertAdamW(WarmupLinearDecay(1e-4, 10_000, 1_000_000)))
      model.fit(pretraining_dataset("records/", batch_size=32))

    Args:
      encoder: a `BertEncoder`, or a `BertConfig` to make one of.
      use_nsp: False drops the next-sentence loss (the ablation "No NSP" of Table 5). The head
        and the pooler stay, with their initial values.
      left_to_right_fraction: for left-to-right models, the share of the positions whose next token
        is predicted in a training step, drawn anew for every step; 1.0 is the language model of the
        paper, less is cheaper where the vocabulary is large beside the model.
      seed: seed of the initial weights, when `encoder` is a configuration.
    """

    # google-research/bert adds it to the number of predictions of a batch before it divides.
    loss_epsilons = {"masked_lm_loss": 1e-5}

    def __init__(
        self,
        encoder: BertEncoder | BertConfig,
        use_nsp: bool = True,
        left_to_right_fraction: float = 1.0,
        seed: int | None = None,
        **kwargs,
    ):
        super().__init__(**{"name": "pretrainer", **kwargs})
        if isinstance(encoder, BertConfig):
            encoder = BertEncoder(encoder, seed=seed, dtype=self.dtype_policy)
        self.encoder = encoder
        self.use_nsp = use_nsp
        self.left_to_right_fraction = left_to_right_fraction
        config = encoder.config
        initializer = keras.initializers.TruncatedNormal(
            stddev=config.initializer_range,
            seed=keras.random.SeedGenerator(None if seed is None else seed + 1),
        )
        with keras.name_scope(self.name):
            self.masked_lm = MaskedLMHead(
                config, initializer, dtype=self.dtype_policy, name="masked_lm"
            )
            self.next_sentence = keras.layers.Dense(
                2, kernel_initializer=initializer, dtype="float32", name="next_sentence"
            )
            self.next_sentence.build((None, config.hidden_size))
        self._declare_means(
            "masked_lm_loss", "masked_lm_accuracy", "next_sentence_loss", "next_sentence_accuracy"
        )
        self.built = True

    def call(self, batch, training=False, seed=None):
        """Predicts hidden tokens and whether sentence B follows sentence A.

        Args:
          batch: the fields of a pre-training record: input_ids, input_mask, segment_ids int32
            [B, L]; masked_lm_positions, masked_lm_ids int32 [B, P]; masked_lm_weights float32
            [B, P]; next_sentence_labels int32 [B, 1].
          training, seed: as for `BertEncoder`.

        Returns:
          {"masked_lm_logits": float32 [B, P, V], "masked_lm_ids": int32 [B, P],
          "masked_lm_weights": float32 [B, P], "next_sentence_logits": float32 [B, 2]}. Ids and
          weights say what the logits are to be compared with: the record's own for a masked LM, the
          next tokens for a left-to-right LM, whose P is then the number of predicted positions.
        """
        if training and seed is None:
            seed = next_seed(self.encoder.seed_generator)
        if self.encoder.config.attention_direction == "left_to_right":
            batch = restore_masked_tokens(batch)
            positions, ids, weights = self._next_tokens(batch, seed if training else None)
        else:
            positions, ids = batch["masked_lm_positions"], batch["masked_lm_ids"]
            weights = batch["masked_lm_weights"]
        encoded = self.encoder(batch, training=training, seed=seed)
        predicted = gather_positions(encoded["sequence_output"], positions)
        return {
            "masked_lm_logits": self.masked_lm(predicted, self.encoder.embeddings.word_embeddings),
            "masked_lm_ids": ids,
            "masked_lm_weights": weights,
            "next_sentence_logits": self.next_sentence(encoded["pooled_output"]),
        }

    def loss_terms(self, batch, outputs):
        """{"masked_lm_loss", "next_sentence_loss" (with `use_nsp`)}: (sum, weight)."""
        losses = cross_entropy(outputs["masked_lm_logits"], outputs["masked_lm_ids"])
        total, weight = weighted_sum(losses, outputs["masked_lm_weights"])
        terms = {"masked_lm_loss": (total, weight)}
        if self.use_nsp:
            labels = batch["next_sentence_labels"][:, 0]
            terms["next_sentence_loss"] = weighted_sum(
                cross_entropy(outputs["next_sentence_logits"], labels), row_weights(batch, labels)
            )
        return terms

    def metric_terms(self, batch, outputs):
        """{"masked_lm_accuracy", "next_sentence_accuracy" (with `use_nsp`)}: (sum, weight)."""
        hits = correct(outputs["masked_lm_logits"], outputs["masked_lm_ids"])
        terms = {"masked_lm_accuracy": weighted_sum(hits, outputs["masked_lm_weights"])}
        if self.use_nsp:
            labels = batch["next_sentence_labels"][:, 0]
            hits = correct(outputs["next_sentence_logits"], labels)
            terms["next_sentence_accuracy"] = weighted_sum(hits, row_weights(batch, labels))
        return terms

    def get_metrics_result(self):
        results = super().get_metrics_result()
        results["masked_lm_perplexity"] = ops.exp(results["masked_lm_loss"])
        if not self.use_nsp:
            results = {k: v for k, v in results.items() if not k.startswith("next_sentence")}
        return results

    def _next_tokens(self, batch, seed):
        """Positions whose next token is predicted, those tokens, and weights, each [B, P]."""
        next_ids = batch["input_ids"][:, 1:]
        weights = ops.cast(batch["input_mask"][:, 1:], "float32")
        rows, count = ops.shape(next_ids)
        positions = ops.broadcast_to(ops.arange(count, dtype="int32"), (rows, count))
        if seed is None or self.left_to_right_fraction >= 1:
            return positions, next_ids, weights
        # The positions with the largest of random numbers; padding's are all below zero.
        draws = uniform((rows, count), fold_in(seed, PREDICTED_POSITIONS)) + weights - 1
        if isinstance(count, int):
            most = max(1, round(self.left_to_right_fraction * count))
        else:  # in a graph of any length
            wanted = self.left_to_right_fraction * ops.cast(count, "float32")
            most = ops.maximum(ops.cast(ops.round(wanted), "int32"), 1)
        _, chosen = ops.top_k(draws, k=most)
        chosen = ops.cast(chosen, "int32")
        ids = ops.take_along_axis(next_ids, chosen, axis=1)
        return chosen, ids, ops.take_along_axis(weights, chosen, axis=1)

    def get_config(self):
        return {
            **super().get_config(),
            "encoder": keras.saving.serialize_keras_object(self.encoder),
            "use_nsp": self.use_nsp,
            "left_to_right_fraction": self.left_to_right_fraction,
        }

    @classmethod
    def from_config(cls, config):
        encoder = keras.saving.deserialize_keras_object(config["encoder"])
        return cls(**{**config, "encoder": encoder})


class MaskedLMHead(keras.layers.Layer):
    """Transform (dense, activation, normalisation), then the token table again, plus a bias.

    Scores are products with the same table that embeds the tokens ("tied" weights), so the head
    adds only the transform and one bias a vocabulary entry.
    """

    def __init__(self, config: BertConfig, initializer, **kwargs):
        super().__init__(**kwargs)
        self.activation = activation(config)
        with keras.name_scope(self.name):
            self.transform = Dense(
                config.hidden_size,
                kernel_initializer=initializer,
                dtype=self.dtype_policy,
                name="transform",
            )
            self.transform.build((None, None, config.hidden_size))
            self.norm = LayerNorm(config, dtype=self.dtype_policy, name="norm")
        self.bias = self.add_weight(
            name="bias", shape=(config.vocab_size,), initializer="zeros", autocast=False
        )
        self.built = True

    def call(self, x, word_embeddings):
        """[B, P, H] and the float32 [V, H] token table -> float32 logits [B, P, V].

        The product, the largest of a step, has the compute dtype; the bias is added in float32.
        """
        x = self.norm(self.activation(self.transform(x)))
        table = ops.cast(word_embeddings, self.compute_dtype)
        if keras.backend.backend() == "tensorflow":
            from official_bert.tensorflow_kernels import scores_of_table

            rows, predictions, width = ops.shape(x)
            scores = scores_of_table(ops.reshape(x, (-1, width)), table, self.bias)
            return ops.reshape(scores, (rows, predictions, table.shape[0]))
        return ops.cast(ops.matmul(x, ops.transpose(table)), "float32") + self.bias


def restore_masked_tokens(batch):
    """A batch with the text as it was before masking: `masked_lm_ids` put back in `input_ids`."""
    ids, positions = batch["input_ids"], batch["masked_lm_positions"]
    real = ops.cast(ops.cast(batch["masked_lm_weights"], "float32") > 0, "int32")
    change = (batch["masked_lm_ids"] - ops.take_along_axis(ids, positions, axis=1)) * real
    at = ops.one_hot(positions, ops.shape(ids)[1], dtype="int32")  # [B, P, L]
    return {**batch, "input_ids": ids + ops.sum(at * change[..., None], axis=1)}
