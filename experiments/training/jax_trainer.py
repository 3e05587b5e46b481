"""`JaxTrainer`: what `trainer.Trainer` is for TensorFlow, on Keras' JAX backend."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from experiments.training import evaluation
from experiments.training.compiled import jitted
from experiments.training.jax_distribution import stacked
from experiments.training.jax_records import in_parts
from experiments.training.jax_step import JaxStep
from experiments.training.trainer_state import TrainerState, padded_to_a_multiple

# Steps of one compiled call. A call of fewer runs the same program and stops sooner: another one
# might round differently, and a continued run would not have the bits of an uninterrupted one.
_STEPS = 16


class JaxTrainer(TrainerState):
    """A model with its optimiser and the compiled functions that train and evaluate it.

    Args:
      build, options, precision, seed: of `TrainerState`.
      strategy: `jax_distribution.Devices`.
    """

    def __init__(self, build, strategy, options, precision="float32", seed=0):
        super().__init__(build, strategy, options, precision, seed)
        self._step = JaxStep(self.model, self.optimizer, self._schedule.values, options)
        self._take_steps = jax.jit(
            self._steps,
            static_argnames=("make", "without"),
            donate_argnames="state",
            out_shardings=strategy.everywhere,
        )
        self._terms = jitted(self.model, functools.partial(evaluation.terms, self.model))
        self._outputs = jitted(self.model, self._outputs_of)
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
        """Takes `steps` steps on the batches of an iterator.

        Args:
          iterator: of dicts of arrays [rows, ...], all of one shape; or `DeviceBatches`.
          without: names of loss terms that are left out of these steps, as a tuple.

        Returns: dict of name -> float32 array [steps]; metrics only hold a value for the last step.
        """
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
        """Takes one step on a batch of numpy arrays.

        Returns: an array [1, columns] to be read with `read`; reading waits for the step.
        """
        return self._take(stacked(iter([batch]), 1, 1, self.options.accumulation), 1, 0, ())

    def read(self, tables):
        """dict of name -> array [steps] from what several calls of `train_on` returned."""
        table = np.concatenate([np.asarray(table) for table in tables])
        return {name: table[:, i] for i, name in enumerate(self._step.columns)}

    def evaluate(self, batches):
        """Mean loss and metric terms over batches of numpy arrays: dict of name -> float."""
        return evaluation.means(self._terms(self._placed(batch)) for batch in batches)

    def predict(self, batch):
        """The model's outputs for one batch of numpy arrays: dict of name -> array [rows, ...]."""
        rows = len(batch["input_ids"])
        found = self._outputs(self._placed(batch))
        return {name: np.asarray(x)[:rows] for name, x in found.items()}

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

    def _outputs_of(self, batch):
        outputs = self.model(batch, training=False)
        return {name: jnp.asarray(x, "float32") for name, x in outputs.items()}

    # --- helpers ---------------------------------------------------------------------------------

    def _take(self, batches, count, measured, without, source=None):
        state = tuple([v.value for v in variables] for variables in self._step.variables)
        batches = jax.device_put(batches, self.strategy.rows(axis=2))
        state, table = self._take_steps(
            state=state,
            schedule=self._schedule.values.value,
            batches=batches,
            arrays=getattr(source, "arrays", {}),
            count=count,
            measured=measured,
            run_seed=np.int32(self._run_seed),
            make=getattr(source, "make", None),
            without=without,
        )
        for variables, values in zip(self._step.variables, state, strict=True):
            for variable, value in zip(variables, values, strict=True):
                variable.assign(value)
        return table[:count]

    def _place(self):
        """Puts all variables on all devices."""
        for variables in (*self._step.variables, [self._schedule.values]):
            for variable in variables:
                variable.assign(jax.device_put(variable.value, self.strategy.everywhere))

    def _placed(self, batch):
        batch = padded_to_a_multiple(batch, self.strategy.num_replicas_in_sync)
        return jax.device_put(
            {name: np.asarray(x) for name, x in batch.items()}, self.strategy.rows()
        )
