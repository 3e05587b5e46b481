"""One training step on JAX, a pure function of the numbers that it changes.

What `train_step` is for TensorFlow: loss terms and weights are summed over micro-batches before
anything is divided, gradients are clipped once, a seed is a function of (run seed, step,
micro-batch). A batch is always the whole batch: XLA divides it among devices.
"""

import jax
import jax.numpy as jnp
import keras
from jax import lax
from jax.extend.core import Literal

from official_bert.randomness import make_seed


class JaxStep:
    """The step, to be compiled by its caller.

    A state is ([values of trained variables], [of the model's others], [of the optimiser's]).

    Args:
      model, optimizer: of a trainer.
      schedule: keras.Variable that holds the numbers of the learning rate's schedule.
      options: StepOptions.
    """

    def __init__(self, model, optimizer, schedule, options):
        self.model, self.optimizer, self.options = model, optimizer, options
        self._schedule = schedule
        self.trained = model.trainable_variables
        known = {id(variable) for variable in self.trained}
        others = [*model.variables, *model.read_only]
        self.fixed = [variable for variable in others if id(variable) not in known]
        self.columns = None  # names of what a step returns, known once it is traced

    @property
    def variables(self):
        """The variables whose values a state holds."""
        return self.trained, self.fixed, self.optimizer.variables

    def prepare(self, state, batch, without):
        """Traces the loss once, for what has to be known before a step is: see `reached`."""
        trained, fixed, _ = state
        part = {name: x[0] for name, x in batch.items()}
        seed = make_seed(0, 0)

        def loss(trained):
            return self._loss(trained, fixed, part, seed, None, jnp.array(True), without)[0]

        self._reached = reached(loss, trained)
        self.columns = ["loss", "gradient_norm", *self._loss_names, *self._metric_names]

    def __call__(self, state, schedule, batch, run_seed, with_metrics, without):
        """Takes a step; `prepare` comes first.

        Args:
          state: see above.
          schedule: float32 [3], the numbers of the learning rate's schedule.
          batch: arrays [micro-batches, rows, ...].
          run_seed: int32.
          with_metrics: bool scalar; metrics are zeros where it is false.
          without: names of loss terms that are computed, but not trained on.

        Returns: (state, float32 [columns]).
        """
        trained, fixed, slots = state
        parts = self.options.accumulation
        with keras.StatelessScope(_pairs(self.optimizer.variables, slots)):
            first_seed = jnp.int32(self.optimizer.iterations.value) * parts

        def of_part(k, weights):
            part = {name: x[k] for name, x in batch.items()}
            seed = make_seed(run_seed, first_seed + k)
            return jax.grad(self._loss, has_aux=True)(
                trained, fixed, part, seed, weights, with_metrics, without
            )

        if parts == 1:
            gradients, (sums, weights, metrics) = of_part(0, None)
        else:
            # Weights do not depend on what the model computes, so XLA leaves the model out of this.
            zeros = jnp.zeros(len(self._loss_names))
            weights, _ = lax.scan(
                lambda total, k: (total + of_part(k, None)[1][1], None), zeros, jnp.arange(parts)
            )

            def add(totals, k):
                return jax.tree.map(jnp.add, totals, of_part(k, weights)), None

            (gradients, (sums, _, metrics)), _ = lax.scan(
                add, of_part(0, weights), jnp.arange(1, parts)
            )
        losses = [self._mean(i, sums[i], weights[i]) for i in range(len(self._loss_names))]
        state, norm = self._apply(state, schedule, gradients)
        row = [self._total(losses, without), norm, *losses, *_divided(*metrics)]
        return state, jnp.stack([jnp.float32(x) for x in row])

    def _loss(self, trained, fixed, batch, seed, weights, with_metrics, without):
        """(loss, (sums [terms], weights [terms], metrics [2, metrics])) of one micro-batch.

        Args:
          weights: global weights of the loss terms [terms]; None for this batch's own.
        """
        with keras.StatelessScope(_pairs(self.trained + self.fixed, [*trained, *fixed])):
            outputs = self.model(batch, training=True, seed=seed)
            terms = self.model.loss_terms(batch, outputs)
            metrics = self._metrics(batch, outputs, with_metrics)
        self._loss_names = list(terms)
        sums = [total for total, _ in terms.values()]
        own = [lax.stop_gradient(weight) for _, weight in terms.values()]
        used = own if weights is None else weights
        losses = [self._mean(i, total, used[i]) for i, total in enumerate(sums)]
        return self._total(losses, without), (jnp.stack(sums), jnp.stack(own), metrics)

    def _mean(self, index, total, weight):
        """A loss term from its global sum and weight."""
        return _divided(total, weight + self.model.loss_epsilons.get(self._loss_names[index], 0.0))

    def _total(self, losses, without):
        """The loss that is trained on. What is left out must not be reached: no product with 0."""
        named = zip(losses, self._loss_names, strict=True)
        weights = self.model.loss_weights
        return sum(weights.get(name, 1.0) * loss for loss, name in named if name not in without)

    def _metrics(self, batch, outputs, with_metrics):
        """float32 [2, metrics] of sums and weights; zeros where they are not asked for."""
        self._metric_names = []
        if not self.options.train_metrics:
            return jnp.zeros((2, 0))
        outputs = jax.tree.map(lax.stop_gradient, outputs)

        def compute():
            terms = self.model.metric_terms(batch, outputs)
            self._metric_names = list(terms)
            sums, weights = zip(*terms.values(), strict=True) if terms else ((), ())
            return jnp.array([sums, weights], jnp.float32)

        shape = jax.eval_shape(compute)
        return lax.cond(with_metrics, compute, lambda: jnp.zeros(shape.shape, shape.dtype))

    def _apply(self, state, schedule, gradients):
        """(the state after the optimiser's step, norm of the gradient)."""
        trained, fixed, slots = state
        variables = [*self.trained, *self.optimizer.variables]
        pairs = _pairs([*variables, self._schedule], [*trained, *slots, schedule])
        with keras.StatelessScope(pairs) as scope:
            norm = self.optimizer.apply_reduced(
                [gradients[i] for i in self._reached], [self.trained[i] for i in self._reached]
            )
            values = [scope.get_current_value(variable) for variable in variables]
        return (values[: len(trained)], fixed, values[len(trained) :]), norm


def reached(function, values):
    """The places of those `values` that a scalar function of a list depends on.

    A variable that the loss does not reach (the pooler without next-sentence prediction) has the
    gradient 0 in JAX. It must not be decayed, so it has to be told from one that is reached.
    """
    jaxpr = jax.make_jaxpr(function)(values).jaxpr
    needed = set(jaxpr.outvars)
    for equation in reversed(jaxpr.eqns):
        if needed.intersection(equation.outvars):
            needed.update(v for v in equation.invars if not isinstance(v, Literal))
    return [i for i, variable in enumerate(jaxpr.invars) if variable in needed]


def _divided(total, weight):
    """total / weight, 0 where the weight is 0."""
    return jnp.where(weight == 0, 0.0, total / jnp.where(weight == 0, 1.0, weight))


def _pairs(variables, values):
    return list(zip(variables, values, strict=True))
