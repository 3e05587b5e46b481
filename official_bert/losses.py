"""Losses and metrics as (sum, weight) pairs, and the base of every model that is trained here.

A mean over a batch does not survive being split: under tf.distribute and gradient accumulation the
mean of the parts' means is not the mean of the whole when parts hold different numbers of masked
tokens. So models return sums and weights; whoever trains them adds both up over replicas and
micro-batches first and divides once.
"""

import keras
from keras import ops

from official_bert.backend import fit_arguments, replicas
from official_bert.common.errors import UserError
from official_bert.randomness import next_seed


def cross_entropy(logits, labels):
    """Return -log softmax(logits)[label]: [..., N] of any float dtype, int32 [...] -> float32
    [...].

    The softmax is computed in float32: bfloat16 has 8 bits of precision, too few for it.
    """
    logits = ops.cast(logits, "float32")
    if keras.backend.backend() == "tensorflow":
        from official_bert.backend import tensorflow_kernels

        return tensorflow_kernels.cross_entropy(logits, ops.cast(labels, "int32"))
    if keras.backend.backend() == "jax":
        from official_bert.backend import jax_kernels

        if jax_kernels.on_nvidia():
            return jax_kernels.cross_entropy(logits, ops.cast(labels, "int32"))
    picked = ops.take_along_axis(logits, ops.cast(labels, "int32")[..., None], axis=-1)[..., 0]
    return ops.logsumexp(logits, axis=-1) - picked


def binary_cross_entropy(logits, labels):
    """Return the sigmoid cross entropy: logits [...], labels 0 or 1 [...] -> float32 [...]."""
    logits, labels = (ops.cast(x, "float32") for x in (logits, labels))
    return ops.softplus(logits) - labels * logits


def weighted_sum(values, weights):
    """Return the term (sum of weights * values, sum of weights), float32 scalars."""
    weights = ops.cast(weights, "float32")
    return ops.sum(ops.cast(values, "float32") * weights), ops.sum(weights)


def correct(logits, labels):
    """Return 1.0 where the highest logit is the label's: [..., N], int32 [...] -> float32 [...]."""
    return ops.cast(ops.equal(ops.cast(ops.argmax(logits, axis=-1), "int32"), labels), "float32")


def row_weights(batch, labels):
    """Return float32 [B]: the batch's `example_weights` (0 marks padding rows), or ones.

    A tagger may be given a weight for each token, [B, L].
    """
    if "example_weights" in batch:
        return ops.cast(batch["example_weights"], "float32")
    return ops.ones(ops.shape(labels)[:1], dtype="float32")


class ModelWithLosses(keras.Model):
    """A Keras model that knows its losses, so that `compile(optimizer)` and `fit` just work.

    Subclasses define `call(batch, training, seed)`, which returns a dictionary, and

    - `loss_terms(batch, outputs)` -> {name: (sum, weight)}. The loss is the sum over the terms of
      sum / weight, each times its entry in `loss_weights`.
    - `metric_terms(batch, outputs)` -> {name: (sum, weight)} of further metrics.

    Batches are dictionaries that hold labels and inputs together; `fit` takes a dataset of them, or
    inputs and labels as arrays: `fit(tokenizer(texts), labels)`. `sample_weight` and `class_weight`
    weigh rows against each other: losses are divided by the sum of the weights.
    """

    # The fields of a batch that `y` of `fit` stands for.
    label_names: tuple[str, ...] = ()
    # Added to the weight of a term once, after everything is summed and before the division.
    loss_epsilons: dict[str, float] = {}
    # Factor of a term's mean in the loss; 1 where it is not named.
    loss_weights: dict[str, float] = {}
    # Options that a call may be given anew.
    call_options: tuple[str, ...] = ()
    # True where a model folder can hold it.
    has_folder = True

    @property
    def read_only(self) -> list:
        """Variables of other models that it reads; they are neither trained nor saved with it."""
        return []

    def input_specs(self) -> dict[str, keras.InputSpec]:
        """Return {field of a batch: type and shape} of the fields it reads; a size may be None."""
        raise NotImplementedError

    def export(self, filepath, *args, input_signature=None, **kwargs):
        """Export as any Keras model does; by default the export takes `input_specs`."""
        signature = input_signature or [self.input_specs()]
        return super().export(filepath, *args, input_signature=signature, **kwargs)

    def kept(self):
        """Return the model to save: itself, or itself without what only its training needs."""
        return self

    def pad(self, batch: dict, rows: int) -> None:
        """Set the weights of padding in a batch of numpy arrays to 0, in place.

        Args:
          batch: with "example_weights"; no other batch shares its arrays.
          rows: number of rows that are not padding; they come first.
        """
        batch["example_weights"][rows:] = 0

    def loss_terms(self, batch, outputs) -> dict:
        raise NotImplementedError

    def metric_terms(self, batch, outputs) -> dict:
        return {}

    def step_seed(self, training, seed):
        """Return the seed of a call: None outside training, the next of the model's own if none."""
        if training and seed is None:
            return next_seed(self.seed_generator)
        return seed if training else None

    def check_labels(self, name, labels) -> None:
        """Raise UserError where the numpy array `labels` cannot be the batch's field `name`."""

    def fit(self, x=None, y=None, *args, **kwargs):
        fit_arguments.check(self, x, y)
        return super().fit(x, y, *args, **kwargs)

    def make_train_function(self, force=False):
        if keras.backend.backend() == "tensorflow" and not self.optimizer.built:
            # The step would be traced twice where its first trace makes variables.
            with self.distribute_strategy.scope():
                self.optimizer.build(self.trainable_variables)
        return super().make_train_function(force)

    def evaluate(self, x=None, y=None, *args, **kwargs):
        fit_arguments.check(self, x, y)
        return super().evaluate(x, y, *args, **kwargs)

    def predict(self, x, *args, **kwargs):
        fit_arguments.check_inputs(x)
        return super().predict(x, *args, **kwargs)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """Return the replica's share of the loss: `fit` adds up the gradients of all replicas."""
        terms = self.loss_terms(self._batch(x, y, sample_weight), y_pred)
        weights = replicas.summed([ops.stop_gradient(weight) for _, weight in terms.values()])
        losses = []
        for (name, (total, own_weight)), weight in zip(terms.items(), weights, strict=True):
            epsilon = self.loss_epsilons.get(name, 0.0)
            losses.append(self.loss_weights.get(name, 1.0) * total / (weight + epsilon))
            # A batch without a single weighted item must not turn the mean into NaN.
            own = total / ops.maximum(own_weight + epsilon, 1e-9)
            self._mean(name).update_state(own, own_weight)
        return sum(losses)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        batch = self._batch(x, y, sample_weight)
        for name, (total, weight) in self.metric_terms(batch, y_pred).items():
            self._mean(name).update_state(total / ops.maximum(weight, 1e-9), weight)
        return self.get_metrics_result()

    def _batch(self, x, y, sample_weight) -> dict:
        """Return the arguments of `fit` as one batch."""
        batch = dict(x) if isinstance(x, dict) else {"input_ids": x}
        if isinstance(y, dict):
            batch |= y
        elif isinstance(y, tuple | list) and len(y) == len(self.label_names):
            batch |= dict(zip(self.label_names, y, strict=True))
        elif y is not None and len(self.label_names) == 1:
            batch[self.label_names[0]] = y
        elif y is not None:
            names = " and ".join(self.label_names) or "fields of x, as pre-training records have"
            raise UserError(
                f"{type(self).__name__} takes as y a dictionary; its labels are {names}"
            )
        if missing := [name for name in self.label_names if name not in batch]:
            raise UserError(f"no labels: give y, or {' and '.join(missing)} among the inputs")
        if sample_weight is not None:
            batch["example_weights"] = sample_weight
        return batch

    @classmethod
    def from_config(cls, config):
        encoder = keras.saving.deserialize_keras_object(config["encoder"])
        return cls(**{**config, "encoder": encoder})

    def _mean(self, name) -> keras.metrics.Mean:
        # Keras wants metrics to exist before the step is traced; subclasses list them in the
        # constructor through `_declare_means`.
        return getattr(self, f"{name}_mean")

    def _declare_means(self, *names) -> None:
        for name in names:
            setattr(self, f"{name}_mean", keras.metrics.Mean(name=name))
