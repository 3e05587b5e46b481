"""Losses and metrics as (sum, weight) pairs, and the base of every model that is trained here.

A mean over a batch does not survive being split: under tf.distribute and gradient accumulation the
mean of the parts' means is not the mean of the whole when parts hold different numbers of masked
tokens. So models return sums and weights; whoever trains them adds both up over replicas and
micro-batches first and divides once.
"""

import keras
from keras import ops

from official_bert import replicas


def cross_entropy(logits, labels):
    """-log softmax(logits)[label]: [..., N] of any float dtype, int32 [...] -> float32 [...].

    The softmax is computed in float32: bfloat16 has 8 bits of precision, too few for it.
    """
    logits = ops.cast(logits, "float32")
    if keras.backend.backend() == "tensorflow":
        from official_bert.tensorflow_kernels import cross_entropy as tensorflow_cross_entropy

        return tensorflow_cross_entropy(logits, ops.cast(labels, "int32"))
    picked = ops.take_along_axis(logits, ops.cast(labels, "int32")[..., None], axis=-1)[..., 0]
    return ops.logsumexp(logits, axis=-1) - picked


def weighted_sum(values, weights):
    """The term (sum of weights * values, sum of weights), float32 scalars."""
    weights = ops.cast(weights, "float32")
    return ops.sum(ops.cast(values, "float32") * weights), ops.sum(weights)


def correct(logits, labels):
    """1.0 where the highest logit is the label's: [..., N], int32 [...] -> float32 [...]."""
    return ops.cast(ops.equal(ops.cast(ops.argmax(logits, axis=-1), "int32"), labels), "float32")


def row_weights(batch, labels):
    """float32 [B]: the batch's `example_weights` (0 marks padding rows), or ones."""
    if "example_weights" in batch:
        return ops.cast(batch["example_weights"], "float32")
    return ops.ones(ops.shape(labels)[:1], dtype="float32")


class ModelWithLosses(keras.Model):
    """A Keras model that knows its losses, so that `compile(optimizer)` and `fit` just work.

    Subclasses define `call(batch, training, seed)`, which returns a dictionary, and

    - `loss_terms(batch, outputs)` -> {name: (sum, weight)}. The loss is the sum over the terms of
      sum / weight.
    - `metric_terms(batch, outputs)` -> {name: (sum, weight)} of what is reported besides.

    Batches are dictionaries that hold labels and inputs together; `fit` takes a dataset of them.
    """

    # Added to the weight of a term where it is divided by: once, after everything is summed.
    loss_epsilons = {}

    def loss_terms(self, batch, outputs) -> dict:
        raise NotImplementedError

    def metric_terms(self, batch, outputs) -> dict:
        return {}

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """The replica's share of the loss: `fit` adds up the gradients of all replicas."""
        terms = self.loss_terms(x, y_pred)
        weights = replicas.summed([ops.stop_gradient(weight) for _, weight in terms.values()])
        losses = []
        for (name, (total, own_weight)), weight in zip(terms.items(), weights, strict=True):
            epsilon = self.loss_epsilons.get(name, 0.0)
            losses.append(total / (weight + epsilon))
            # A batch without a single weighted item must not turn the mean into NaN.
            own = total / ops.maximum(own_weight + epsilon, 1e-9)
            self._mean(name).update_state(own, own_weight)
        return sum(losses)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        for name, (total, weight) in self.metric_terms(x, y_pred).items():
            self._mean(name).update_state(total / ops.maximum(weight, 1e-9), weight)
        return self.get_metrics_result()

    def _mean(self, name) -> keras.metrics.Mean:
        # Keras wants metrics to exist before the step is traced; subclasses list them in the
        # constructor through `_declare_means`.
        return getattr(self, f"{name}_mean")

    def _declare_means(self, *names) -> None:
        for name in names:
            setattr(self, f"{name}_mean", keras.metrics.Mean(name=name))
