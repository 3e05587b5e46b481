"""`JaxTrainer`: what `trainer.Trainer` is for TensorFlow, on Keras' JAX backend.

Its step is a pure function of the numbers that it changes (`JaxStep`): loss terms and weights are
summed over micro-batches before anything is divided, gradients are clipped once, a seed is a
function of (run seed, step, micro-batch). A batch is always the whole batch: XLA divides it among
devices.
"""

import functools

import jax
import jax.numpy as jnp
import keras
import numpy as np
from jax import lax
from jax.extend.core import Literal

from experiments.training.step import evaluation
from experiments.training.step.compiled import jitted
from experiments.training.step.jax_distribution import in_parts, stacked
from experiments.training.step.trainer_state import TrainerState, padded_to_a_multiple
from official_bert.randomness import make_seed

# Steps of one compiled call. A call of fewer runs the same program and stops sooner: another one
# might round differently, and a continued run would not have the bits of an uninterrupted one.
_STEPS = 16


class JaxTrainer(TrainerState):
    """A `TrainerState` with the compiled functions that train and evaluate its model.

    Raises:
      UserError: see `Devices.check`.
    """

    def __init__(self, build, strategy, options, precision="float32", seed=0):
        super().__init__(build, strategy, options, precision, seed)
        strategy.check(self.model.trainable_variables)
        self._step = JaxStep(
            self.model, self.optimizer, self._schedule.values, options, strategy.gathered
        )
        state = tuple(list(map(strategy.at_rest, each)) for each in self._step.variables)
        self._take_steps = jax.jit(
            self._steps,
            static_argnames=("make", "without"),
            donate_argnames="state",
            out_shardings=(state, strategy.everywhere),
        )
        self._terms = jitted(self.model, functools.partial(evaluation.terms, self.model))
        self._outputs = jitted(self.model, self._in_float32)
        self._place()

    def reset(self, build, seed):
        """See `TrainerState`."""
        super().reset(build, seed)
        self._place()

    def load_arrays(self, arrays):
        """See `TrainerState`."""
        super().load_arrays(arrays)
        self._place()

    # --- what is done with the model -------------------------------------------------------------

    def train_from(self, iterator, steps, without=()):
        """See `TrainerState`; the batches are dicts of arrays [rows, ...], all of one shape."""
        tables = []
        while steps > 0:
            count = min(steps, _STEPS)
            batches = stacked(iterator, count, _STEPS, self.options.accumulation)
            steps -= count
            # While the device works on these, the next ones are read.
            last = count - 1 if steps == 0 else -1
            tables.append(self._take(batches, count, last, without, iterator))
        return self.read(tables)

    def train_on(self, batch):
        return self._take(stacked(iter([batch]), 1, 1, self.options.accumulation), 1, 0, ())

    def _terms_of(self, batch):
        return [self._terms(self._placed(batch))]

    def _outputs_of(self, batch):
        return [self._outputs(self._placed(batch))]

    def lowered(self, batches):
        """The program of the steps on batches [steps, micro-batches, rows, ...], to be read or
        compiled: `jax.stages.Lowered`."""
        return self._take_steps.lower(**self._arguments(batches, 1, 0))

    # --- what is compiled ------------------------------------------------------------------------

    def _steps(self, state, schedule, batches, arrays, count, measured, run_seed, make, without):
        """(state, table [capacity, columns]) after the first `count` steps of `batches`."""

        def batch_of(i):
            drawn = {name: x[i] for name, x in batches.items()}
            return in_parts(make, arrays, drawn) if make else drawn

        self._step.prepare(state, batch_of(0), without)

        def body(i, carried):
            state, table = carried
            batch = batch_of(i)
            state, row = self._step(state, schedule, batch, run_seed, i == measured, without)
            return state, table.at[i].set(row)

        capacity = len(next(iter(batches.values())))
        table = jnp.zeros((capacity, len(self._step.columns)))
        return lax.fori_loop(0, count, body, (state, table))

    def _in_float32(self, batch):
        outputs = self.model(batch, training=False)
        return {name: jnp.asarray(x, "float32") for name, x in outputs.items()}

    # --- helpers ---------------------------------------------------------------------------------

    def _arguments(self, batches, count, measured, without=(), source=None):
        """What `_steps` is called with; `lowered` asks for its program."""
        return {
            "state": tuple([v.value for v in variables] for variables in self._step.variables),
            "schedule": self._schedule.values.value,
            "batches": jax.device_put(batches, self.strategy.rows(axis=2)),
            "arrays": getattr(source, "arrays", {}),
            "count": count,
            "measured": measured,
            "run_seed": np.int32(self._run_seed),
            "make": getattr(source, "make", None),
            "without": without,
        }

    def _take(self, *arguments):
        state, table = self._take_steps(**self._arguments(*arguments))
        for variables, values in zip(self._step.variables, state, strict=True):
            for variable, value in zip(variables, values, strict=True):
                variable.assign(value)
        return table[: arguments[1]]

    def _place(self):
        """Puts all variables where they are between steps."""
        for variables in (*self._step.variables, [self._schedule.values]):
            for variable in variables:
                variable.assign(jax.device_put(variable.value, self.strategy.at_rest(variable)))

    def _placed(self, batch):
        batch = padded_to_a_multiple(batch, self.strategy.num_replicas_in_sync)
        return jax.device_put(
            {name: np.asarray(x) for name, x in batch.items()}, self.strategy.rows()
        )


class JaxStep:
    """The step, to be compiled by its caller.

    A state is ([values of trained variables], [of the model's others], [of the optimiser's]).

    Args:
      model, optimizer: of a trainer.
      schedule: keras.Variable that holds the numbers of the learning rate's schedule.
      options: StepOptions.
      gathered: of `Devices`.
    """

    def __init__(self, model, optimizer, schedule, options, gathered):
        self.model, self.optimizer, self.options = model, optimizer, options
        self._schedule, self._gathered = schedule, gathered
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

            # From zeros: a part before the loop would have memory of its own.
            shapes = jax.eval_shape(of_part, 0, weights)
            zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
            (gradients, (sums, _, metrics)), _ = lax.scan(add, zeros, jnp.arange(parts))
        losses = [self._mean(i, sums[i], weights[i]) for i in range(len(self._loss_names))]
        state, norm = self._apply(state, schedule, gradients)
        row = [self._total(losses, without), norm, *losses, *_divided(*metrics)]
        return state, jnp.stack([jnp.float32(x) for x in row])

    def _loss(self, trained, fixed, batch, seed, weights, with_metrics, without):
        """(loss, (sums [terms], weights [terms], metrics [2, metrics])) of one micro-batch.

        Args:
          weights: global weights of the loss terms [terms]; None for this batch's own.
        """
        trained = self._gathered(trained)
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
