"""`TrainerState`: a model with its optimiser, and the methods of a trainer, on every backend.

The compiled functions are in `trainer` (TensorFlow) and `jax_trainer`.
"""

import contextlib
import dataclasses
import math
from typing import Any

import keras
import numpy as np
from keras import ops

from experiments.training.folder.checkpointing import check_arrays
from experiments.training.step import evaluation
from official_bert.extension import find
from official_bert.optimization import SCHEDULES, optimizer


@dataclasses.dataclass(frozen=True)
class StepOptions:
    """The settings that are compiled into a training step, apart from the model."""

    weight_decay: float = 0.01
    beta_2: float = 0.999
    epsilon: float = 1e-6
    clip_norm: float = 1.0
    accumulation: int = 1  # micro-batches a step
    steps_of_a_call: int = 16  # of one compiled call on JAX, at most
    jit_compile: bool = False
    fixed_shapes: bool = False  # False: one compiled function for all lengths
    optimizer: str = "adamw"  # of official_bert.optimization.OPTIMIZERS
    bias_correction: bool = False
    layer_decay: float = 1.0  # of the learning rate, see BertAdamW
    optimizer_options: tuple[tuple[str, Any], ...] = ()  # (name, value) pairs of an extension's
    schedule: str = "linear"  # of official_bert.optimization.SCHEDULES, or an extension's
    train_metrics: bool = False  # compute metric terms at the last step of each call


class TrainerState:
    """A model with its optimiser; the base of the trainers.

    A trainer has a `_step` with the `columns` of what it returns, and `_terms_of` and
    `_outputs_of`, functions of a batch -> dicts of name -> array, one a replica of this process.

    Args:
      build: function of a seed that returns the model with fresh weights.
      strategy: of `get_strategy` of the backend's `strategies`.
      options: StepOptions.
      precision: "float32" or "mixed_bfloat16".
      seed: of the weights and of dropout.
    """

    def __init__(self, build, strategy, options, precision="float32", seed=0):
        self.strategy = strategy
        self.options = options
        self._precision = precision
        self._run_seed = seed
        with self._scope():
            self.model = build(seed)
            schedule = find("schedules", options.schedule, SCHEDULES)
            self._schedule = _AdjustableSchedule(schedule)
            self.optimizer = optimizer(
                options.optimizer,
                learning_rate=self._schedule,
                weight_decay=options.weight_decay,
                beta_2=options.beta_2,
                epsilon=options.epsilon,
                clip_norm=options.clip_norm or None,
                layer_decay=options.layer_decay,
                bias_correction=options.bias_correction,
                **dict(options.optimizer_options),
            )
            self.optimizer.build(self.model.trainable_variables)

    def train_from(self, iterator, steps, without=()):
        """Take `steps` steps on the batches of an iterator of the backend's `training_batches`.

        Args:
          without: names of loss terms that are left out of these steps, as a tuple.

        Returns: dict of name -> float32 array [steps]; metrics only hold a value for the last step.
        """
        raise NotImplementedError

    def train_on(self, batch):
        """Take one step on a batch of numpy arrays, that of all devices.

        Returns: an array [1, columns] to be read with `read`; reading waits for the step.
        """
        raise NotImplementedError

    def read(self, tables):
        """Return a dict of name -> array [steps] from what several calls of `train_on` returned."""
        table = np.concatenate([np.asarray(table) for table in tables])
        return {name: table[:, i] for i, name in enumerate(self._step.columns)}

    def evaluate(self, batches):
        """Return mean loss and metric terms over batches of numpy arrays: dict of name -> float."""
        return evaluation.means(part for batch in batches for part in self._terms_of(batch))

    def predict(self, batch):
        """Return the model's outputs for one batch of numpy arrays: dict of name -> array [rows,
        ...]."""
        rows, parts = len(batch["input_ids"]), self._outputs_of(batch)
        joined = {name: np.concatenate([np.asarray(x[name]) for x in parts]) for name in parts[0]}
        return {name: x[:rows] for name, x in joined.items()}

    def reset(self, build, seed):
        """Take fresh weights from `build(seed)` and set the optimiser to step 0; compiled functions
        stay."""
        with self._scope():
            fresh = build(seed)
        for old, new in zip(self.model.variables, fresh.variables, strict=True):
            old.assign(new.numpy())
        for variable in self.optimizer.variables:
            variable.assign(np.zeros(variable.shape, variable.dtype))
        self._run_seed = seed

    def set_schedule(self, peak, warmup_steps, total_steps, decay_steps=None):
        """Set the learning rate's warm-up and decay (see `optimization.SCHEDULES`)."""
        decay_steps = total_steps if decay_steps is None else decay_steps
        self._schedule.values.assign([peak, warmup_steps, total_steps, decay_steps])

    def learning_rate(self, step):
        """Return the learning rate of a step, as a float."""
        return float(self._schedule(step))

    @property
    def step(self):
        """Steps taken so far."""
        return int(self.optimizer.iterations.numpy())

    @property
    def bytes(self):
        """The size of all that training changes, and of a teacher."""
        variables = [*self._variables().values(), *self.model.read_only]
        return sum(math.prod(v.shape) * np.dtype(v.dtype).itemsize for v in variables)

    def arrays(self):
        """Return everything that training changes: dict of `variable.path` -> numpy array."""
        return {name: np.asarray(v.numpy()) for name, v in self._variables().items()}

    def load_arrays(self, arrays):
        """Set what `arrays` returned; UserError where they are of another model."""
        variables = self._variables()
        check_arrays(arrays, variables)
        for name, variable in variables.items():
            variable.assign(arrays[name])

    @contextlib.contextmanager
    def _scope(self):
        before = keras.config.dtype_policy()
        keras.config.set_dtype_policy(self._precision)
        try:
            with self.strategy.scope():
                yield
        finally:
            keras.config.set_dtype_policy(before)

    def _variables(self):
        # Not `model.variables`: these include the seeds of initial weights, which no step reads.
        variables = [*self.model.weights, *self.optimizer.variables]
        named = {variable.path: variable for variable in variables}
        if len(named) < len(variables):
            raise ValueError("two variables have one path; give each layer a name of its own")
        return named


def padded_to_a_multiple(batch, divisor, model):
    """Add rows of weight 0 to a batch of arrays until it divides into equal parts.

    Args:
      model: its `pad` gives the new rows weight 0.
    """
    rows = len(batch["input_ids"])
    missing = -rows % divisor
    if not missing:
        return batch
    batch = {name: np.asarray(x) for name, x in batch.items()}
    batch.setdefault("example_weights", np.ones(rows, np.float32))
    padded = {name: np.concatenate([x, x[-1:].repeat(missing, 0)]) for name, x in batch.items()}
    model.pad(padded, rows)
    return padded


class _AdjustableSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """A schedule of `SCHEDULES` whose numbers can change without compiling the step again."""

    def __init__(self, kind):
        self._kind = kind
        self.values = keras.Variable([0.0, 0.0, 1.0, 1.0], trainable=False, dtype="float32")

    def __call__(self, step):
        values = ops.convert_to_tensor(self.values)
        return self._kind(*ops.unstack(values, num=4))(step)

    def get_config(self):
        return {}
