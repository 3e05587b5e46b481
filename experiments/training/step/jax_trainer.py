"""`JaxTrainer`: the `Trainer` of Keras' JAX backend.

The step is that of `train_step`; `JaxStep` makes it a pure function of the numbers that it changes.
A batch is always the whole batch: XLA divides it among devices, and there is one replica.
"""

import jax
import jax.numpy as jnp
import keras
import numpy as np
from jax import lax
from jax.extend.core import Literal

from experiments.training.step import evaluation
from experiments.training.step.jax_strategies import in_parts, stacked
from experiments.training.step.train_step import TrainStep
from experiments.training.step.trainer_state import TrainerState, padded_to_a_multiple
from official_bert.backend.compiled import jitted
from official_bert.randomness import make_seed


class JaxTrainer(TrainerState):
    """A `TrainerState` with the compiled functions that train and evaluate its model.

    Raises:
      UserError: see `Devices.check`.
    """

    def __init__(self, build, strategy, options, precision="float32", seed=0):
        super().__init__(build, strategy, options, precision, seed)
        strategy.check(self.model.trainable_variables)
        self._step = JaxStep(
            self.model, self.optimizer, options, self._schedule.values, strategy.gathered
        )
        state = tuple(list(map(strategy.at_rest, each)) for each in self._step.variables)
        self._take_steps = jax.jit(
            self._steps,
            static_argnames=("make", "without"),
            donate_argnames="state",
            out_shardings=(state, strategy.everywhere),
        )
        read = [*self.model.variables, *self.model.read_only]
        self._terms = jitted(read, self._evaluated)
        self._outputs = jitted(read, self._in_float32)
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
        # A call of fewer steps runs the same program and stops sooner. Another program might round
        # differently, and a continued run would not have the bits of an uninterrupted one.
        most = self.options.steps_of_a_call
        while steps > 0:
            count = min(steps, most)
            batches = stacked(iterator, count, most, self.options.accumulation)
            steps -= count
            # While the device works on these, the host reads the next ones.
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
        """Return the `jax.stages.Lowered` program of steps on batches [steps, micro-batches, rows,
        ...]."""
        return self._take_steps.lower(**self._arguments(batches, 1, 0))

    # --- what is compiled ------------------------------------------------------------------------

    def _steps(self, state, schedule, batches, arrays, count, measured, run_seed, make, without):
        """Return (state, table [capacity, columns]) after the first `count` steps of `batches`."""

        def batch_of(i):
            drawn = {name: x[i] for name, x in batches.items()}
            return in_parts(make, arrays, drawn) if make else drawn

        with self.strategy.computing():
            self._step.prepare(state, batch_of(0), without)

        def body(i, carried):
            state, table = carried
            batch = batch_of(i)
            with self.strategy.computing():
                state, row = self._step(state, schedule, batch, run_seed, i == measured, without)
            return state, table.at[i].set(row)

        capacity = len(next(iter(batches.values())))
        table = jnp.zeros((capacity, len(self._step.columns)))
        return lax.fori_loop(0, count, body, (state, table))

    def _evaluated(self, batch):
        with self.strategy.computing():
            return evaluation.terms(self.model, batch)

    def _in_float32(self, batch):
        with self.strategy.computing():
            outputs = self.model(batch, training=False)
        return {name: jnp.asarray(x, "float32") for name, x in outputs.items()}

    # --- helpers ---------------------------------------------------------------------------------

    def _arguments(self, batches, count, measured, without=(), source=None):
        """Return the arguments of `_steps`, for a call and for `lowered`."""
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
        """Put all variables on the devices as they lie between steps."""
        for variables in (*self._step.variables, [self._schedule.values]):
            for variable in variables:
                variable.assign(jax.device_put(variable.value, self.strategy.at_rest(variable)))

    def _placed(self, batch):
        batch = padded_to_a_multiple(batch, self.strategy.num_replicas_in_sync, self.model)
        return jax.device_put(
            {name: np.asarray(x) for name, x in batch.items()}, self.strategy.rows()
        )


class JaxStep(TrainStep):
    """A step as a pure function of a state: ([values of trained variables], [of the model's
    others], [of the optimiser's]).

    Args:
      model, optimizer, options: of `TrainStep`.
      schedule: keras.Variable that holds the numbers of the learning rate's schedule.
      gathered: of `Devices`.
    """

    def __init__(self, model, optimizer, options, schedule, gathered):
        super().__init__(model, optimizer, options)
        self._schedule, self._gathered = schedule, gathered
        trained = model.trainable_variables
        known = {id(variable) for variable in trained}
        others = [*model.variables, *model.read_only]
        fixed = [variable for variable in others if id(variable) not in known]
        self.variables = trained, fixed, optimizer.variables

    def prepare(self, state, batch, without):
        """Trace the loss once, which sets `reached` and `columns` before a step is traced."""
        part, with_metrics = {name: x[0] for name, x in batch.items()}, jnp.array(True)
        with self._scope(state, self._schedule.value):
            loss, values = self._loss(part, make_seed(0, 0), None, with_metrics, without)
            self.reached = reached(lambda values: loss(values)[0], values)

    def __call__(self, state, schedule, batch, run_seed, with_metrics, without):
        """Take a step; `prepare` comes first.

        Args:
          state: see above.
          schedule: float32 [4], the numbers of the learning rate's schedule.
          batch: arrays [micro-batches, rows, ...].
          run_seed, with_metrics, without: of `take`.

        Returns: (state, float32 [columns]).
        """

        def micro_batch(k):
            return {name: x[k] for name, x in batch.items()}

        with self._scope(state, schedule) as scope:
            row = self.take(micro_batch, run_seed, with_metrics, without)
            after = tuple([scope.get_current_value(v) for v in each] for each in self.variables)
        return after, row

    def _scope(self, state, schedule):
        """Return the scope in which variables have the values of a state."""
        pairs = zip((*self.variables, [self._schedule]), (*state, [schedule]), strict=True)
        return keras.StatelessScope([pair for each in pairs for pair in zip(*each, strict=True)])

    def _loss(self, batch, seed, weights, with_metrics, without):
        """Return (function of the trained values -> (loss, (sums, weights, metrics)), the values).

        It is called in the scope of a step, whose values of other variables it reads.
        """
        trained, fixed, _ = self.variables
        others = [(variable, variable.value) for variable in fixed]

        def loss(values):
            values = self._gathered(values)
            with keras.StatelessScope([*zip(trained, values, strict=True), *others]):
                outputs, sums, own = self.forward(batch, seed)
                outputs = jax.tree.map(lax.stop_gradient, outputs)
                metrics = self.metrics(batch, outputs, with_metrics)
            own = lax.stop_gradient(own)
            losses = self.means(sums, own if weights is None else weights)
            return self.total(losses, without), (jnp.stack(sums), own, metrics)

        return loss, [variable.value for variable in trained]

    def _gradients(self, batch, seed, weights, with_metrics, without):
        loss, values = self._loss(batch, seed, weights, with_metrics, without)
        gradients, terms = jax.grad(loss, has_aux=True)(values)
        return [gradients[i] for i in self.reached], *terms

    def _over_parts(self, function):
        def add(totals, k):
            return jax.tree.map(jnp.add, totals, function(k)), None

        # Start from zeros: a micro-batch before the loop would need memory of its own.
        zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(function, 0))
        return lax.scan(add, zeros, jnp.arange(self.options.accumulation))[0]


def reached(function, values):
    """Return the places of those `values` that a scalar function of a list depends on.

    A variable that the loss does not reach (the pooler without next-sentence prediction) has the
    gradient 0 in JAX. It must not be decayed, so it has to be known from those that are reached.
    """
    jaxpr = jax.make_jaxpr(function)(values).jaxpr
    needed = set(jaxpr.outvars)
    for equation in reversed(jaxpr.eqns):
        if needed.intersection(equation.outvars):
            needed.update(v for v in equation.invars if not isinstance(v, Literal))
    return [i for i, variable in enumerate(jaxpr.invars) if variable in needed]
