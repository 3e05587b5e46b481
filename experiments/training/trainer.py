"""`Trainer`: a model, its optimiser and the compiled functions that train, evaluate and predict.

One TensorFlow loop for every strategy, for pre-training and fine-tuning; the step itself is in
`experiments.training.train_step`.
"""

import collections
import contextlib
import functools
import math

import keras
import numpy as np
import tensorflow as tf

from experiments.training import distribution, evaluation
from experiments.training.checkpointing import check_arrays
from experiments.training.train_step import TrainStep
from official_bert.errors import UserError
from official_bert.optimization import OPTIMIZERS, WarmupLinearDecay

# Trainers are kept for the next run in this process: the last one, and as many of those before it
# as fit. Each holds a model and its optimiser, three times the weights.
_KEPT_BYTES = 2 * 2**30
_trainers = collections.OrderedDict()


class Trainer:
    """A model with its optimiser and the compiled functions that train and evaluate it.

    Args:
      build: function of a seed that returns the model with fresh weights.
      strategy: of `distribution.get_strategy`.
      options: StepOptions.
      precision: "float32" or "mixed_bfloat16".
      seed: of the weights and of dropout.

    Raises:
      UserError: jit_compile with a `distribute` other than one_device.
    """

    def __init__(self, build, strategy, options, precision="float32", seed=0):
        if keras.backend.backend() != "tensorflow":
            raise UserError(
                "the experiments run on Keras' TensorFlow backend only; "
                f"KERAS_BACKEND is {keras.backend.backend()} (compile/fit works on any backend)"
            )
        if options.jit_compile and not distribution.is_default(strategy):
            raise UserError("jit_compile works with one_device only; TPUs compile without it")
        self.strategy = strategy
        self.options = options
        self._precision = precision
        with self._scope():
            self.model = build(seed)
            if options.jit_compile:
                _leave_cudnn(self.model)
            self._schedule = _AdjustableSchedule()
            self.optimizer = OPTIMIZERS[options.optimizer](
                learning_rate=self._schedule,
                weight_decay=options.weight_decay,
                beta_2=options.beta_2,
                epsilon=options.epsilon,
                clip_norm=options.clip_norm or None,
                layer_decay=options.layer_decay,
            )
            self.optimizer.build(self.model.trainable_variables)
        self._train_step = TrainStep(self.model, self.optimizer, strategy, options)
        self._run_seed = seed
        # Without autograph, which would rewrite the source of every layer before the first step.
        self._take_steps = tf.function(self._steps_from_iterator, autograph=False)
        self._functions = {}

    # --- state ---------------------------------------------------------------------------------

    def reset(self, build, seed):
        """Fresh weights from `build(seed)`, an optimiser at step 0; compiled functions stay."""
        with self._scope():
            fresh = build(seed)
        for old, new in zip(self.model.variables, fresh.variables, strict=True):
            old.assign(new.numpy())
        for variable in self.optimizer.variables:
            variable.assign(np.zeros(variable.shape, variable.dtype))
        self._run_seed = seed

    def set_schedule(self, peak, warmup_steps, total_steps):
        """Sets the learning rate's warm-up and decay (see `WarmupLinearDecay`)."""
        self._schedule.values.assign([peak, warmup_steps, total_steps])

    def learning_rate(self, step):
        """The learning rate of a step, as a float."""
        return float(self._schedule(tf.constant(step, tf.float32)))

    @property
    def step(self):
        """Steps taken so far."""
        return int(self.optimizer.iterations.numpy())

    @property
    def bytes(self):
        """The size of all that training changes."""
        variables = self._variables().values()
        return sum(math.prod(v.shape) * tf.as_dtype(v.dtype).size for v in variables)

    def arrays(self):
        """dict of name -> numpy array: everything that training changes."""
        return {name: np.asarray(v.numpy()) for name, v in self._variables().items()}

    def load_arrays(self, arrays):
        """Sets what `arrays` returned; UserError where they are of another model."""
        variables = self._variables()
        check_arrays(arrays, variables)
        for name, variable in variables.items():
            variable.assign(arrays[name])

    def weights(self):
        """The model's weights only: list of numpy arrays."""
        return [variable.numpy() for variable in self.model.variables]

    # --- what is done with the model -------------------------------------------------------------

    def train_from(self, iterator, steps, without=()):
        """Takes `steps` steps on batches of `distribution.distribute_dataset`'s iterator.

        Args:
          without: names of loss terms that are left out of these steps, as a tuple.

        Returns: dict of name -> float32 array [steps]; metrics only hold a value for the last step.
        """
        table = self._take_steps(
            iterator, tf.constant(steps, tf.int32), tf.constant(self._run_seed, tf.int32), without
        )
        return self._named(self._of_first_replica(table).numpy())

    def train_on(self, batch):
        """Takes one step on a global batch of numpy arrays.

        Returns: a tensor [1, columns] to be read with `read`; reading waits for the step.
        """
        batch = distribution.distribute_batch(batch, self.strategy)
        step = self._compiled(self._step_on_batch, batch, tf.TensorSpec([], tf.int32))
        return self._of_first_replica(step(batch, tf.constant(self._run_seed, tf.int32)))

    def read(self, tables):
        """dict of name -> array [steps] from what several calls of `train_on` returned."""
        return self._named(np.concatenate([table.numpy() for table in tables]))

    def evaluate(self, batches):
        """Mean loss and metric terms over batches of numpy arrays or tensors.

        Args:
          batches: iterable of batch dicts.

        Returns: dict of name -> float.
        """
        parts = (part for batch in batches for part in self._on_replicas(self._terms, batch))
        return evaluation.means(parts)

    def predict(self, batch):
        """The model's outputs for one batch of numpy arrays: dict of name -> array [rows, ...]."""
        rows = len(batch["input_ids"])
        parts = self._on_replicas(self._outputs, batch)
        return {
            name: np.concatenate([part[name].numpy() for part in parts])[:rows] for name in parts[0]
        }

    # --- what is compiled -----------------------------------------------------------------------

    def _steps_from_iterator(self, iterator, steps, run_seed, without):
        """`steps` steps inside one compiled call; the host is not asked in between."""

        def body(i, table):
            last = tf.equal(i, steps - 1)
            row = self._train_step(iterator.get_next(), run_seed, last, without)
            return i + 1, table.write(i, row)

        table = tf.TensorArray(tf.float32, size=steps)
        _, table = tf.while_loop(
            lambda i, _: i < steps, body, (tf.constant(0), table), parallel_iterations=1
        )
        return table.stack()

    def _step_on_batch(self, batch, run_seed):
        return self._train_step(batch, run_seed, tf.constant(True))[None]

    def _terms(self, batch):
        terms = functools.partial(evaluation.terms, self.model)  # TPUs take tensors only
        return distribution.run(self.strategy, terms, batch)

    def _outputs(self, batch):
        def of_replica(batch):
            outputs = self.model(batch, training=False)
            return {name: tf.cast(value, tf.float32) for name, value in outputs.items()}

        return distribution.run(self.strategy, of_replica, batch)

    # --- helpers ----------------------------------------------------------------------------

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
        named = {f"model/{i:04d}": v for i, v in enumerate(self.model.variables)}
        named |= {f"optimizer/{i:04d}": v for i, v in enumerate(self.optimizer.variables)}
        return named

    def _on_replicas(self, function, batch):
        """What `function` returns for each replica's rows: a dict a replica of this process."""
        local = distribution.local_replicas(self.strategy)
        batch = self._padded_to_a_multiple(batch, local)
        batch = distribution.distribute_batch(batch, self.strategy, local)
        found = self._compiled(function, batch)(batch)
        parts = map(self.strategy.experimental_local_results, found.values())
        return [dict(zip(found, values, strict=True)) for values in zip(*parts, strict=True)]

    def _of_first_replica(self, value):
        return self.strategy.experimental_local_results(value)[0]

    def _named(self, table):
        return {name: table[:, i] for i, name in enumerate(self._train_step.columns)}

    @staticmethod
    def _padded_to_a_multiple(batch, divisor):
        """Adds rows of weight 0 until the batch divides into equal parts."""
        rows = len(batch["input_ids"])
        missing = -rows % divisor
        if not missing:
            return batch
        batch = {name: np.asarray(x) for name, x in batch.items()}
        batch.setdefault("example_weights", np.ones(rows, np.float32))
        padded = {name: np.concatenate([x, x[-1:].repeat(missing, 0)]) for name, x in batch.items()}
        for name in ("example_weights", "masked_lm_weights"):
            if name in padded:
                padded[name][rows:] = 0
        if "masked_lm_weights" in padded:
            padded["input_mask"][rows:, 1:] = 0  # the next-token objective counts real tokens
        return padded

    def _compiled(self, function, batch, *others):
        """`function` compiled for this batch; one compilation serves all lengths where it can.

        On one device, unless XLA wants static shapes, rows and length are left open. Otherwise each
        shape is compiled once, and length buckets keep them few.
        """
        fixed = self.options.fixed_shapes or self.options.jit_compile
        fixed = fixed or not distribution.is_default(self.strategy)
        specs = None if fixed else {name: _open_spec(name, x, batch) for name, x in batch.items()}
        key = (function.__name__, specs and tuple(sorted((n, str(s)) for n, s in specs.items())))
        if key not in self._functions:
            signature = [specs, *others] if specs else None
            # A function object of its own: TensorFlow counts compilations by object, and would warn
            # of too many where several models are trained in one process.
            self._functions[key] = tf.function(
                lambda *arguments: function(*arguments),
                input_signature=signature,
                autograph=False,
            )
        return self._functions[key]


def get_trainer(key, build, strategy, options, precision, seed):
    """A Trainer, the one of an earlier run in this process where everything compiled is the same.

    Args:
      key: hashable; names the model that `build` makes (sizes, head).
      build, strategy, options, precision, seed: of `Trainer`.

    Returns: the Trainer, with fresh weights, at step 0.
    """
    key = (key, options, precision, id(strategy))
    if key in _trainers:
        _trainers.move_to_end(key)
        trainer = _trainers[key]
        trainer.reset(build, seed)
        return trainer
    trainer = Trainer(build, strategy, options, precision, seed)
    _trainers[key] = trainer
    while len(_trainers) > 1 and sum(t.bytes for t in _trainers.values()) > _KEPT_BYTES:
        _trainers.popitem(last=False)
    return trainer


class _AdjustableSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """`WarmupLinearDecay` whose numbers can change without compiling the step again."""

    def __init__(self):
        self.values = tf.Variable([0.0, 0.0, 1.0], trainable=False, dtype=tf.float32)

    def __call__(self, step):
        return WarmupLinearDecay(*tf.unstack(tf.convert_to_tensor(self.values)))(step)

    def get_config(self):
        return {}


def _leave_cudnn(model):
    """Has LSTMs compute without cuDNN, whose kernel XLA cannot compile."""
    for layer in model._flatten_layers():
        if isinstance(layer, keras.layers.LSTM):
            layer.use_cudnn = False


def _open_spec(name, x, batch):
    """The TensorSpec of a batch field with unknown rows and length, all else as it is."""
    shape = [None, *x.shape[1:]]
    # Vectors of tokens are [rows, length, ...]; ids and labels end with the length.
    axis = 1 if len(shape) > 2 and tf.as_dtype(x.dtype).is_floating else -1
    if len(shape) > 1 and shape[axis] == batch["input_ids"].shape[-1]:
        shape[axis] = None
    return tf.TensorSpec(shape, x.dtype, name=name)
