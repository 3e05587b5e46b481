"""ULMFiT's learning rate and gradual unfreezing (Howard and Ruder 2018, sections 3.2 and 3.3)."""

import keras
from keras import ops

from official_bert.optimization import BertAdamW, WarmupLinearDecay, dense


@keras.saving.register_keras_serializable("official_bert")
class SlantedTriangular(WarmupLinearDecay):
    """The slanted triangular rate: it rises from a 32nd of the peak to the peak, and falls to that
    32nd at the last step.

    Args:
      peak, warmup_steps, total_steps: as for `WarmupLinearDecay`; the warm-up is a tenth there.

    Examples:
      >>> rate = SlantedTriangular(peak=0.32, warmup_steps=10, total_steps=100)
      >>> [round(float(rate(step)), 4) for step in (0, 5, 10, 55, 100)]
      [0.01, 0.165, 0.32, 0.165, 0.01]
    """

    def __call__(self, step):
        step, peak, warmup_steps, total_steps, _ = self._numbers(step)
        rising = step / ops.maximum(warmup_steps, 1.0)
        falling = (total_steps - step) / ops.maximum(total_steps - warmup_steps, 1.0)
        share = ops.where(step < warmup_steps, rising, ops.maximum(falling, 0.0))
        return peak * (1.0 + 31.0 * share) / 32.0


@keras.saving.register_keras_serializable("official_bert")
class GradualUnfreezing(BertAdamW):
    """BERT's optimiser, which trains first what is above the blocks alone, at last the embeddings
    too.

    Args:
      unfreeze_every: steps after which the next part, from above, begins to be trained; 0: all are
        from the start.
      **options: of `BertAdamW`.
    """

    _options = (*BertAdamW._options, "unfreeze_every")

    def __init__(self, *args, unfreeze_every=0, **options):
        super().__init__(*args, **options)
        self.unfreeze_every = unfreeze_every

    def apply(self, grads, trainable_variables=None):
        if trainable_variables is not None:
            self.build(trainable_variables)
        variables = trainable_variables or self._trainable_variables
        super().apply(self._all_thawed(grads, variables), trainable_variables)

    def update_step(self, gradient, variable, learning_rate):
        learning_rate = ops.cast(learning_rate, variable.dtype)
        super().update_step(gradient, variable, self._thawed(learning_rate, variable))

    def apply_reduced(self, gradients, variables):
        if not self.built:
            self.build(variables)
        return super().apply_reduced(self._all_thawed(gradients, variables), variables)

    def _all_thawed(self, gradients, variables):
        return [self._thawed(dense(g), v) for g, v in zip(gradients, variables, strict=True)]

    def _thawed(self, x, variable):
        """Return a gradient or a rate of a variable, zero as long as the variable is frozen."""
        if x is None or not self.unfreeze_every:
            return x
        first = self.unfreeze_every * self.depths[self._get_variable_index(variable)]
        return x * ops.cast(self.iterations >= first, x.dtype)
