"""The model that trains sentence vectors (Sentence-BERT, Reimers and Gurevych 2019).

It has no weights of its own: an encoder reads each text of an example by itself, its tokens'
vectors are pooled, and a loss compares the pooled vectors by their cosines. It leaves the encoder,
with a note of how its vectors are made.
"""

import keras
from keras import ops

from official_bert.backend import replicas
from official_bert.checkpoints.sentence_vectors import NORMALIZE, SentenceVectors, normalized
from official_bert.common.errors import UserError, check_choice
from official_bert.encoder import complete_inputs, input_specs
from official_bert.losses import ModelWithLosses, correct, cross_entropy, row_weights, weighted_sum

OBJECTIVES = ("in_batch", "cosine")
_NO_CANDIDATE = -1e9  # in place of its score


@keras.saving.register_keras_serializable("official_bert")
class SentenceEncoder(ModelWithLosses):
    """An encoder whose pooled vectors are trained.

    Args:
      encoder: BertEncoder.
      objective: "in_batch": among the second and further texts of all examples of a batch, a
        softmax over cosines finds an example's second text (InfoNCE, van den Oord et al. 2018; the
        MultipleNegativesRankingLoss of sentence-transformers). Third texts and those behind are
        hard negatives. "cosine": the cosine of two texts is near to the label, in squared error
        (CosineSimilarityLoss).
      temperature: what cosines are divided by before the softmax.
      poolings, normalize: of the vectors, see `SentenceVectors`; cosines do not depend on the last.
      seed: of dropout where a call gives none.
    """

    options = ("objective", "temperature", "poolings", "normalize")

    def __init__(
        self,
        encoder,
        objective="in_batch",
        temperature=0.05,
        poolings=("mean",),
        normalize=False,
        seed=None,
        **kwargs,
    ):
        check_choice("objective", objective, OBJECTIVES)
        dtype = kwargs.pop("dtype", None) or encoder.dtype_policy
        super().__init__(dtype=dtype, **{"name": "sentence_encoder", **kwargs})
        self.encoder, self.config = encoder, encoder.config
        self.objective, self.temperature = objective, temperature
        self.poolings, self.normalize, self.seed = tuple(poolings), normalize, seed
        self.vectors = SentenceVectors(self.poolings, (NORMALIZE,) * normalize)
        self.label_names = ("label_ids",) if objective == "cosine" else ()
        self.seed_generator = keras.random.SeedGenerator(seed)
        means = ("in_batch_loss", "accuracy") if objective == "in_batch" else ("cosine_loss",)
        self._declare_means(*means)
        self.built = True

    def input_specs(self):
        return input_specs(3)

    def described(self) -> tuple[str, dict]:
        """Return what `model.json` says of it: an encoder, and how vectors are made."""
        return "none", {"embedding": self.vectors.settings()}

    def begin_as(self, arrays: dict) -> None:
        """Begin with nothing more: it has no weights beside the encoder's."""

    def call(self, batch, training=False, seed=None):
        """Map encoder inputs, int32 [B, T, L] of T texts an example, to {"vectors": float32 [B, T,
        D]}.

        A text whose mask is zero is absent: it is no candidate of "in_batch".
        """
        seed = self.step_seed(training, seed)
        rows = complete_inputs(batch, self.config)
        if len(rows["input_ids"].shape) != 3:
            raise UserError("sentence vectors are trained on [examples, texts, tokens]")
        examples, texts, length = ops.shape(rows["input_ids"])
        names = ("input_ids", "input_mask", "segment_ids")
        rows = {name: ops.reshape(rows[name], (-1, length)) for name in names}
        # An absent text has one token, so that its vector has a length and a gradient.
        absent = ops.logical_not(ops.any(rows["input_mask"] > 0, axis=-1, keepdims=True))
        first = ops.logical_and(absent, ops.arange(length) == 0)
        rows["input_mask"] = ops.where(first, 1, rows["input_mask"])
        states = self.encoder(rows, training=training, seed=seed)["sequence_output"]
        vectors = self.vectors.pooled(ops.cast(states, "float32"), rows["input_mask"])
        return {"vectors": ops.reshape(vectors, (examples, texts, vectors.shape[-1]))}

    def scores(self, batch, outputs):
        """Return the scores [B, (T - 1) B] of all candidates for each first text: the second texts,
        in the order of the examples, then the third ones, and so on."""
        if replicas.count() > 1:
            raise UserError(
                "in-batch negatives are of the whole batch, which TensorFlow's replicas divide: "
                "set --config.distribute=one_device, or compute with JAX (KERAS_BACKEND=jax)"
            )
        vectors = normalized(outputs["vectors"])
        real = ops.any(ops.convert_to_tensor(batch["input_mask"]) > 0, axis=-1)
        real = ops.logical_and(real, row_weights(batch, real)[:, None] > 0)  # [B, T]
        others = ops.transpose(vectors[:, 1:], (1, 0, 2))
        others = ops.reshape(others, (-1, vectors.shape[-1]))
        candidates = ops.reshape(ops.transpose(real[:, 1:]), (1, -1))
        scores = ops.matmul(vectors[:, 0], ops.transpose(others)) / self.temperature
        return ops.where(candidates, scores, _NO_CANDIDATE)

    def loss_terms(self, batch, outputs):
        """Return {"in_batch_loss"} or {"cosine_loss"}: (sum, weight); labels of the latter are
        `label_ids`, float32 [B]."""
        weights = row_weights(batch, outputs["vectors"])
        if self.objective == "in_batch":
            losses = cross_entropy(self.scores(batch, outputs), _places(outputs))
            return {"in_batch_loss": weighted_sum(losses, weights)}
        one, other = ops.unstack(normalized(outputs["vectors"][:, :2]), num=2, axis=1)
        labels = ops.cast(batch["label_ids"], "float32")
        losses = ops.square(ops.sum(one * other, axis=-1) - labels)
        return {"cosine_loss": weighted_sum(losses, weights)}

    def metric_terms(self, batch, outputs):
        if self.objective != "in_batch":
            return {}
        hits = correct(self.scores(batch, outputs), _places(outputs))
        return {"accuracy": weighted_sum(hits, row_weights(batch, outputs["vectors"]))}

    def get_config(self):
        return {
            **super().get_config(),
            "encoder": keras.saving.serialize_keras_object(self.encoder),
            "seed": self.seed,
            **{name: getattr(self, name) for name in self.options},
        }


def _places(outputs):
    """Return the places of the right candidates, int32 [B]."""
    return ops.arange(ops.shape(outputs["vectors"])[0], dtype="int32")


class SentenceHead:
    """The description of a model to train: it has no head that a file would name."""

    def class_of(self, description):
        """Return the class of a description."""
        return SentenceEncoder


HEAD = SentenceHead()
