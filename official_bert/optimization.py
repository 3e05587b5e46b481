"""The optimiser of the paper (appendix A.2): Adam without bias correction, decoupled weight decay,
global gradient clipping, linear warm-up and linear decay.

Each step, with gradient g, weight w and learning rate lr:

    g <- g * min(1, clip_norm / |all g|)
    m <- beta_1 m + (1 - beta_1) g
    v <- beta_2 v + (1 - beta_2) g^2
    w <- w - lr (m / (sqrt(v) + epsilon) + weight_decay w)

google-research/bert leaves out Adam's bias correction, so the first step is 3.16 times larger than
corrected Adam's; the warm-up is what keeps that harmless.
"""

import re

import keras
from keras import ops

from official_bert.backend import replicas
from official_bert.extension import find, names

# Weights whose names end in these words are not decayed: biases ("bias", "filter_0_bias") and the
# parameters of layer normalisation.
NOT_DECAYED = ("bias", "gamma", "beta")


@keras.saving.register_keras_serializable("official_bert")
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Learning rate that rises linearly from 0 and falls linearly to 0.

    The decay counts from step 0, as in google-research/bert: where the warm-up ends the rate drops
    a little, to peak * (1 - warmup_steps / total_steps). With `decay_steps` the rate stays at the
    peak between warm-up and decay (warm-up, stable, decay: Hu et al. 2024, section 4).

    Args:
      peak: the learning rate at the end of the warm-up.
      warmup_steps: steps of the warm-up; at step 0 the rate is 0.
      total_steps: steps after which the rate stays 0.
      decay_steps: the last steps, in which the rate falls; None: all.

    Examples:
      >>> rate = WarmupLinearDecay(peak=1e-4, warmup_steps=10, total_steps=100)
      >>> [round(float(rate(step)), 7) for step in (0, 5, 50, 100)]
      [0.0, 5e-05, 5e-05, 0.0]
      >>> rate = WarmupLinearDecay(peak=1e-4, warmup_steps=10, total_steps=100, decay_steps=20)
      >>> [round(float(rate(step)), 7) for step in (5, 50, 90, 100)]
      [5e-05, 0.0001, 5e-05, 0.0]
    """

    def __init__(
        self, peak: float, warmup_steps: int, total_steps: int, decay_steps: int | None = None
    ):
        self.peak, self.warmup_steps, self.total_steps = peak, warmup_steps, total_steps
        self.decay_steps = total_steps if decay_steps is None else decay_steps

    def _numbers(self, step):
        # All but the step may be tensors: the training loop changes them without recompiling.
        numbers = step, self.peak, self.warmup_steps, self.total_steps, self.decay_steps
        return (ops.cast(number, "float32") for number in numbers)

    def __call__(self, step):
        step, peak, warmup_steps, total_steps, decay_steps = self._numbers(step)
        warmup = peak * step / ops.maximum(warmup_steps, 1.0)
        begun = ops.minimum(step, total_steps) - (total_steps - decay_steps)
        decay = peak * (1.0 - ops.maximum(begun, 0.0) / ops.maximum(decay_steps, 1.0))
        return ops.where(step < warmup_steps, warmup, decay)

    def get_config(self):
        names = ("peak", "warmup_steps", "total_steps", "decay_steps")
        return {name: getattr(self, name) for name in names}


@keras.saving.register_keras_serializable("official_bert")
class BertAdamW(keras.optimizers.Optimizer):
    """The optimiser described above; on every backend.

    Under tf.distribute too, the gradient of the whole batch is clipped. A custom loop that has
    already summed the gradients calls `apply_reduced`.

    Args:
      learning_rate: float or schedule.
      weight_decay: applied to all weights but those named in `NOT_DECAYED`.
      beta_1, beta_2, epsilon: of Adam.
      clip_norm: largest global norm of the gradient; None for no clipping.
      bias_correction: divide m by 1 - beta_1^t and v by 1 - beta_2^t, as Adam does (RoBERTa).
      layer_decay: factor from a block's rate to the rate of the block below it: 0.8 where ELECTRA
        is fine-tuned, 1 / 2.6 in ULMFiT. Layers above the blocks have the full rate, the embeddings
        the lowest.
    """

    _options = ("beta_1", "beta_2", "epsilon", "clip_norm", "layer_decay", "bias_correction")

    def __init__(
        self,
        learning_rate=1e-4,
        weight_decay=0.01,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-6,
        clip_norm=1.0,
        layer_decay=1.0,
        bias_correction=False,
        name="bert_adamw",
        **kwargs,
    ):
        super().__init__(
            learning_rate=learning_rate, global_clipnorm=clip_norm, name=name, **kwargs
        )
        # Not Keras' own `weight_decay`, which would be applied outside `update_step`.
        self.weight_decay_rate = weight_decay
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon
        self.clip_norm = clip_norm
        self.layer_decay = layer_decay
        self.bias_correction = bias_correction

    def build(self, variables):
        if self.built:
            return
        super().build(variables)
        self.first_moments = [self._slot(variable, "m") for variable in variables]
        self.second_moments = [self._slot(variable, "v") for variable in variables]
        self.depths = depths([variable.path for variable in variables])
        self.rate_factors = [self.layer_decay**depth for depth in self.depths]
        self.decays = [self.weight_decay_rate if is_decayed(v) else 0.0 for v in variables]

    def apply(self, grads, trainable_variables=None):
        """Take one step of `fit`, with the gradients of one replica."""
        super().apply([dense(gradient) for gradient in grads], trainable_variables)

    def _clip_gradients(self, grads):
        # Keras clips on each replica and sums afterwards. Here the sum is clipped, then divided by
        # the number of replicas, since Keras will sum it again.
        clipped = super()._clip_gradients(replicas.summed(grads))
        parts = replicas.count()
        return clipped if parts == 1 else [g / parts for g in clipped]

    def update_step(self, gradient, variable, learning_rate):
        """Update one variable in place with its (already clipped) gradient."""
        index = self._get_variable_index(variable)
        learning_rate = ops.cast(learning_rate, variable.dtype)
        if self.layer_decay != 1.0:
            learning_rate = learning_rate * self.rate_factors[index]
        if keras.backend.backend() == "tensorflow":
            from official_bert.backend.tensorflow_kernels import adamw

            first, second = (1.0, 1.0) if not self.bias_correction else self._corrections(variable)
            adamw(
                variable,
                self.first_moments[index],
                self.second_moments[index],
                gradient,
                learning_rate,
                self.decays[index],
                self.beta_1,
                self.beta_2,
                self.epsilon,
                first,
                second,
            )
            return
        update = self._update(gradient, variable, self.bias_correction)
        self.assign_sub(variable, learning_rate * update)

    def _update(self, gradient, variable, corrected: bool):
        """Update the moments by the gradient; return what, times the rate, is subtracted."""
        index = self._get_variable_index(variable)
        m, v = self.first_moments[index], self.second_moments[index]
        gradient = ops.cast(gradient, variable.dtype)
        self.assign(m, self.beta_1 * m + (1 - self.beta_1) * gradient)
        self.assign(v, self.beta_2 * v + (1 - self.beta_2) * ops.square(gradient))
        first, second = self._corrections(variable) if corrected else (1.0, 1.0)
        update = (m / first) / (ops.sqrt(v / second) + self.epsilon)
        return update + self.decays[index] * variable

    def _corrections(self, variable):
        """Return the bias corrections of both moments, scalars of the variable's dtype."""
        step = ops.cast(self.iterations + 1, variable.dtype)
        return tuple(1 - ops.power(beta, step) for beta in (self.beta_1, self.beta_2))

    def apply_reduced(self, gradients, variables):
        """Take one step with gradients that are already summed over replicas and micro-batches.

        They are clipped once, by the global norm of the whole, so that any number of replicas takes
        the step that one device would take.

        Returns: the global norm before clipping, a float32 scalar.
        """
        if not self.built:
            self.build(variables)
        # Weights that the loss does not reach (the pooler, without NSP) stay as they are.
        pairs = [(dense(g), v) for g, v in zip(gradients, variables, strict=True) if g is not None]
        norm = _global_norm([gradient for gradient, _ in pairs])
        learning_rate = self.learning_rate
        for gradient, variable in pairs:
            if self.clip_norm:
                gradient = gradient * (self.clip_norm / ops.maximum(norm, self.clip_norm))
            self.update_step(gradient, variable, learning_rate)
        self.iterations.assign_add(1)
        return norm

    def get_config(self):
        config = super().get_config()
        # `clip_norm` stands for it; Keras would refuse the pair.
        del config["global_clipnorm"]
        kept = {name: getattr(self, name) for name in self._options}
        return {**config, "weight_decay": self.weight_decay_rate, **kept}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        # A file may hold false options that this version has not: they say nothing.
        known = cls().get_config()
        config = {n: v for n, v in config.items() if v or n in known}
        marks = [name for name in config if name in names("optimizers")]
        made = find("optimizers", marks[0]) if marks else cls
        return super(BertAdamW, made).from_config(config, custom_objects)

    def _slot(self, variable, name):
        return self.add_variable_from_reference(reference_variable=variable, name=name)


@keras.saving.register_keras_serializable("official_bert")
class BertLamb(BertAdamW):
    """LAMB (You et al. 2020, "Large batch optimization for deep learning", Algorithm 2).

    For each variable w, with m and v the moments corrected for their bias as in Adam:

        r <- m / (sqrt(v) + epsilon) + weight_decay w
        w <- w - lr (|w| / |r|) r

    The factor |w| / |r| is 1 where either norm is 0, and for the variables named in `NOT_DECAYED`,
    as in the code that trained ALBERT.
    """

    def update_step(self, gradient, variable, learning_rate):
        rate = ops.cast(learning_rate, variable.dtype)
        rate = rate * self.rate_factors[self._get_variable_index(variable)]
        update = self._update(gradient, variable, corrected=True)
        if is_decayed(variable):
            norms = ops.norm(ops.ravel(variable)), ops.norm(ops.ravel(update))
            both = ops.logical_and(norms[0] > 0, norms[1] > 0)
            safe = ops.where(both, norms[1], ops.ones_like(norms[1]))
            rate = rate * ops.where(both, norms[0] / safe, ops.ones_like(safe))
        self.assign_sub(variable, rate * update)


OPTIMIZERS = {"adamw": BertAdamW, "lamb": BertLamb}
SCHEDULES = {"linear": WarmupLinearDecay}


def optimizer(name: str, **options):
    """Return the optimiser with a name in `OPTIMIZERS`, or an extension's if an option marks it."""
    marks = [option for option in options if option in names("optimizers")]
    cls = find("optimizers", marks[0]) if marks else OPTIMIZERS[name]
    return cls(**options)


def is_decayed(variable) -> bool:
    """Return whether weight decay applies to a variable: not to those in `NOT_DECAYED`."""
    return variable.name.rpartition("_")[2] not in NOT_DECAYED


def depths(paths: list[str]) -> list[int]:
    """Return each variable's depth below the top, from the variables' paths.

    For L blocks: 0 for the pooler and heads, L - i for block i, counted from 0, and L + 1 for the
    embeddings.
    """
    found = [re.search(r"(?:^|/)(?:layer_(\d+)|(embeddings))/", path) for path in paths]
    blocks = 1 + max((int(m[1]) for m in found if m and m[1]), default=-1)

    def depth_below_the_top(match):
        if match is None:
            return 0
        return blocks + 1 if match[2] else blocks - int(match[1])

    return [depth_below_the_top(match) for match in found]


def dense(gradient):
    """Return a gradient as one dense tensor, in which the rows of each piece are summed.

    TensorFlow's gradient of a lookup has a row for each token. Before the sum its norm is another
    one, so clipping would differ.
    """
    if gradient is None or keras.backend.backend() != "tensorflow":
        return gradient
    import tensorflow as tf

    return tf.convert_to_tensor(gradient)


def _global_norm(gradients):
    vectors = [g for g in gradients if len(g.shape) == 1]
    if keras.backend.backend() == "jax" and vectors:
        # Joined, since a GPU would start a kernel for each, and most weights are vectors.
        matrices = [g for g in gradients if len(g.shape) != 1]
        joined = ops.concatenate([ops.cast(g, "float32") for g in vectors])
        gradients = [*matrices, joined]
    return ops.sqrt(sum(map(_sum_of_squares, gradients)))


def _sum_of_squares(gradient):
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return 2 * tf.nn.l2_loss(tf.cast(gradient, "float32"))  # reads it once, keeps nothing
    return ops.sum(ops.square(ops.cast(gradient, "float32")))
