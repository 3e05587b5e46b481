"""The training step: one TensorFlow loop for every strategy, for pre-training and fine-tuning.

Of a model it knows only the protocol of `official_bert.losses`: outputs, loss terms, metric terms
as (sum, weight). What Keras 3 gets wrong under tf.distribute (replicas that draw the same dropout
mask, gradients clipped before they are summed, means of means) is done here by hand:

- a seed is a function of (run seed, step, micro-batch, replica), so masks differ between replicas
  and a resumed run draws what the uninterrupted run would have drawn;
- weights of the loss terms are summed over replicas and micro-batches before anything is divided,
  so N replicas, or N micro-batches, take the step that one large batch takes;
- gradients are summed, then clipped once by their global norm, then applied.
"""

import collections
import contextlib
import dataclasses

import keras
import numpy as np
import tensorflow as tf

from experiments import distribution
from experiments.checkpointing import check_arrays
from official_bert.errors import UserError
from official_bert.optimization import BertAdamW, WarmupLinearDecay
from official_bert.randomness import make_seed

# Trainers kept for the next run in this process. Each holds a model and its optimiser.
_KEPT_TRAINERS = 4
_trainers = collections.OrderedDict()


@dataclasses.dataclass(frozen=True)
class StepOptions:
    """What is compiled into a training step, apart from the model."""

    weight_decay: float = 0.01
    beta_2: float = 0.999
    epsilon: float = 1e-6
    clip_norm: float = 1.0
    accumulation: int = 1  # micro-batches a step
    jit_compile: bool = False
    fixed_shapes: bool = False  # False: one compiled function for all lengths
    train_metrics: bool = False  # compute metric terms at the last step of each call


class Trainer:
    """A model with its optimiser and the compiled functions that train and evaluate it.

    Args:
      build: function of a seed that returns the model with fresh weights.
      strategy: of `distribution.get_strategy`.
      options: StepOptions.
      precision: "float32" or "mixed_bfloat16".
      seed: of the weights and of dropout.

    Raises:
      UserError: jit_compile with more than one replica.
    """

    def __init__(self, build, strategy, options, precision="float32", seed=0):
        if keras.backend.backend() != "tensorflow":
            raise UserError(
                "the experiments run on Keras' TensorFlow backend only; "
                f"KERAS_BACKEND is {keras.backend.backend()} (compile/fit works on any backend)"
            )
        if options.jit_compile and strategy.num_replicas_in_sync > 1:
            raise UserError("jit_compile works on one device only; TPUs compile without it")
        self.strategy = strategy
        self.options = options
        self._precision = precision
        with self._scope():
            self.model = build(seed)
            self._schedule = _AdjustableSchedule()
            self.optimizer = BertAdamW(
                learning_rate=self._schedule,
                weight_decay=options.weight_decay,
                beta_2=options.beta_2,
                epsilon=options.epsilon,
                clip_norm=options.clip_norm or None,
            )
            self.optimizer.build(self.model.trainable_variables)
        self.columns = None  # names of what `train` returns, known once the step is traced
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

    def set_weights(self, weights):
        for variable, value in zip(self.model.variables, weights, strict=True):
            variable.assign(value)

    # --- what is done with the model -------------------------------------------------------------

    def train_from(self, iterator, steps):
        """Takes `steps` steps on batches of `distribution.distribute_dataset`'s iterator.

        Returns: dict of name -> float32 array [steps]; metrics only hold a value for the last step.
        """
        table = self._take_steps(
            iterator, tf.constant(steps, tf.int32), tf.constant(self._run_seed, tf.int32)
        )
        return self._named(self._first(table).numpy())

    def train_on(self, batch):
        """Takes one step on a global batch of numpy arrays.

        Returns: a tensor [1, columns] to be read with `read`; reading waits for the step.
        """
        batch = distribution.distribute_batch(batch, self.strategy)
        step = self._compiled(self._step_on_batch, batch, tf.TensorSpec([], tf.int32))
        return self._first(step(batch, tf.constant(self._run_seed, tf.int32)))

    def read(self, tables):
        """dict of name -> array [steps] from what several calls of `train_on` returned."""
        return self._named(np.concatenate([table.numpy() for table in tables]))

    def evaluate(self, batches):
        """Mean loss and metric terms over batches of numpy arrays or tensors.

        Args:
          batches: iterable of batch dicts.

        Returns: dict of name -> float.
        """
        totals = collections.defaultdict(lambda: np.zeros(2))
        for batch in batches:
            batch = self._padded_to_replicas(batch)
            batch = distribution.distribute_locally(batch, self.strategy)
            terms = self._compiled(self._evaluation_step, batch)(batch)
            for name, term in terms.items():
                for part in self.strategy.experimental_local_results(term):
                    totals[name] += part.numpy()
        return {name: float(total / max(weight, 1e-12)) for name, (total, weight) in totals.items()}

    def predict(self, batch):
        """The model's outputs for one batch of numpy arrays: dict of name -> array [rows, ...]."""
        rows = len(batch["input_ids"])
        batch = self._padded_to_replicas(batch)
        batch = distribution.distribute_locally(batch, self.strategy)
        outputs = self._compiled(self._prediction_step, batch)(batch)
        return {
            name: np.concatenate(
                [part.numpy() for part in self.strategy.experimental_local_results(value)]
            )[:rows]
            for name, value in outputs.items()
        }

    # --- the step ---------------------------------------------------------------------------------

    def _steps_from_iterator(self, iterator, steps, run_seed):
        """`steps` steps inside one compiled call; the host is not asked in between."""

        def body(i, table):
            row = self._step(iterator.get_next(), run_seed, tf.equal(i, steps - 1))
            return i + 1, table.write(i, row)

        table = tf.TensorArray(tf.float32, size=steps)
        _, table = tf.while_loop(
            lambda i, _: i < steps, body, (tf.constant(0), table), parallel_iterations=1
        )
        return table.stack()

    def _step_on_batch(self, batch, run_seed):
        return self._step(batch, run_seed, tf.constant(True))[None]

    def _step(self, batch, run_seed, with_metrics):
        """One step on a global batch; returns float32 [columns], equal on all replicas."""
        function = self._replica_step
        if self.options.jit_compile:
            function = tf.function(function, jit_compile=True, autograph=False)
        if self.strategy.num_replicas_in_sync == 1:
            return function(batch, run_seed, with_metrics)
        row = self.strategy.run(function, args=(batch, run_seed, with_metrics))
        return self.strategy.experimental_local_results(row)[0]

    def _replica_step(self, batch, run_seed, with_metrics):
        step = tf.cast(self.optimizer.iterations.value, tf.int32)
        micro_batches = self.options.accumulation
        first_seed = step * micro_batches
        replica = self._replica_id()
        variables = self.model.trainable_variables

        if micro_batches == 1:
            seed = make_seed(run_seed, first_seed, replica)
            gradients, sums, weights, metrics = self._gradients(
                batch, seed, None, with_metrics, variables
            )
        else:
            parts = {name: _split(x, micro_batches) for name, x in batch.items()}

            def seed_of(k):
                return make_seed(run_seed, first_seed + k, replica)

            weights = self._sum_over_replicas(self._loss_weights(parts, seed_of))
            gradients, sums, metrics = self._accumulate(
                parts, seed_of, weights, with_metrics, variables
            )
        gradients, sums, metrics = self._sum_over_replicas([gradients, sums, metrics])
        losses = self._means(sums, weights)
        # A variable that the loss does not reach (the pooler without next-sentence prediction)
        # has no gradient and is not decayed either.
        reached = [variables[i] for i in self._reached]
        norm = self.optimizer.apply_reduced(gradients, reached)
        metric_sums, metric_weights = tf.unstack(metrics)
        self.columns = ["loss", "gradient_norm", *self._loss_names, *self._metric_names]
        return tf.concat(
            [
                tf.stack([tf.reduce_sum(losses), tf.cast(norm, tf.float32)]),
                losses,
                tf.math.divide_no_nan(metric_sums, metric_weights),
            ],
            axis=0,
        )

    def _gradients(self, batch, seed, weights, with_metrics, variables):
        """Gradients of sum(term / global weight) over one micro-batch.

        Args:
          weights: global weights of the loss terms [terms]; None to sum this batch's own.

        Returns: (dense gradients of the variables in `self._reached`, sums [terms], weights
          [terms], metrics [2, metrics]).
        """
        with tf.GradientTape() as tape:
            outputs = self.model(batch, training=True, seed=seed)
            terms = self.model.loss_terms(batch, outputs)
            self._loss_names = list(terms)
            sums = tf.stack([total for total, _ in terms.values()])
            if weights is None:
                with tape.stop_recording():
                    weights = tf.stack([weight for _, weight in terms.values()])
                    weights = self._sum_over_replicas(weights)
            loss = tf.reduce_sum(self._means(sums, weights))
        gradients = tape.gradient(loss, variables)
        self._reached = [i for i, gradient in enumerate(gradients) if gradient is not None]
        # A lookup's gradient lists rows, some of them twice: its norm is not that of their sum.
        gradients = [tf.convert_to_tensor(gradients[i]) for i in self._reached]
        return gradients, sums, weights, self._metrics(batch, outputs, with_metrics)

    def _accumulate(self, parts, seed_of, weights, with_metrics, variables):
        """Sums gradients, loss sums and metrics over the micro-batches."""

        def of_part(k):
            batch = {name: x[k] for name, x in parts.items()}
            gradients, sums, _, metrics = self._gradients(
                batch, seed_of(k), weights, with_metrics, variables
            )
            return [*gradients, sums, metrics]

        # The first one outside the loop: it says how many sums there are, and their shapes.
        totals = of_part(0)
        _, totals = tf.while_loop(
            lambda k, _: k < self.options.accumulation,
            lambda k, totals: (k + 1, [a + b for a, b in zip(totals, of_part(k), strict=True)]),
            (tf.constant(1), totals),
            maximum_iterations=self.options.accumulation - 1,
        )
        *gradients, sums, metrics = totals
        return gradients, sums, metrics

    def _loss_weights(self, parts, seed_of):
        """The weights of the loss terms [terms], summed over all micro-batches.

        Weights do not depend on what the model computes, so TensorFlow prunes the model's forward
        pass from this graph and only labels (and what draws positions to predict) are computed.
        """
        total = 0.0
        for k in range(self.options.accumulation):
            batch = {name: x[k] for name, x in parts.items()}
            outputs = self.model(batch, training=True, seed=seed_of(k))
            terms = self.model.loss_terms(batch, outputs)
            total += tf.stack([weight for _, weight in terms.values()])
        return total

    def _means(self, sums, weights):
        """The loss terms [terms] from their global sums and weights."""
        epsilons = [self.model.loss_epsilons.get(name, 0.0) for name in self._loss_names]
        return tf.math.divide_no_nan(sums, weights + tf.constant(epsilons))

    def _metrics(self, batch, outputs, with_metrics):
        """float32 [2, metrics] of sums and weights; zeros where they are not asked for."""
        self._metric_names = []
        if not self.options.train_metrics:
            return tf.zeros([2, 0])

        def compute():
            terms = self.model.metric_terms(batch, outputs)
            self._metric_names = list(terms)
            if not terms:
                return tf.zeros([2, 0])
            return tf.stack(
                [tf.stack([a for a, _ in terms.values()]), tf.stack([b for _, b in terms.values()])]
            )

        # The true branch is traced first and so names the metrics.
        return tf.cond(with_metrics, compute, lambda: tf.zeros([2, len(self._metric_names)]))

    def _evaluation_step(self, batch):
        def of_replica(batch):
            outputs = self.model(batch, training=False)
            terms = {
                **self.model.loss_terms(batch, outputs),
                **self.model.metric_terms(batch, outputs),
            }
            return {name: tf.stack([total, weight]) for name, (total, weight) in terms.items()}

        return self._run(of_replica, batch)

    def _prediction_step(self, batch):
        def of_replica(batch):
            outputs = self.model(batch, training=False)
            return {name: tf.cast(value, tf.float32) for name, value in outputs.items()}

        return self._run(of_replica, batch)

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

    def _replica_id(self):
        if self.strategy.num_replicas_in_sync == 1:
            return 0
        return tf.distribute.get_replica_context().replica_id_in_sync_group

    def _sum_over_replicas(self, values):
        if self.strategy.num_replicas_in_sync == 1:
            return values
        flat = tf.nest.flatten(values)
        context = tf.distribute.get_replica_context()
        # Tensors without elements (no metrics) are not sent.
        sent = [i for i, x in enumerate(flat) if x.shape.num_elements() != 0]
        summed = context.all_reduce(tf.distribute.ReduceOp.SUM, [flat[i] for i in sent])
        for i, x in zip(sent, summed, strict=True):
            flat[i] = x
        return tf.nest.pack_sequence_as(values, flat)

    def _run(self, function, batch):
        if self.strategy.num_replicas_in_sync == 1:
            return function(batch)
        return self.strategy.run(function, args=(batch,))

    def _first(self, value):
        return self.strategy.experimental_local_results(value)[0]

    def _named(self, table):
        return {name: table[:, i] for i, name in enumerate(self.columns)}

    def _padded_to_replicas(self, batch):
        """Adds rows of weight 0 until the batch divides among the replicas of this process."""
        local = distribution.local_replicas(self.strategy)
        rows = len(batch["input_ids"])
        missing = -rows % local
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
        fixed = fixed or self.strategy.num_replicas_in_sync > 1
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
    while len(_trainers) > _KEPT_TRAINERS:
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


def _open_spec(name, x, batch):
    """The TensorSpec of a batch field with unknown rows and length, all else as it is."""
    shape = [None, *x.shape[1:]]
    # Vectors of tokens are [rows, length, ...]; ids and labels end with the length.
    axis = 1 if len(shape) > 2 and np.asarray(x).dtype.kind == "f" else -1
    if len(shape) > 1 and shape[axis] == batch["input_ids"].shape[-1]:
        shape[axis] = None
    return tf.TensorSpec(shape, x.dtype, name=name)


def _split(x, parts):
    """[rows, ...] -> [parts, rows / parts, ...]."""
    shape = tf.shape(x)
    rows = x.shape[0] // parts if x.shape[0] else shape[0] // parts
    static = [parts, x.shape[0] // parts if x.shape[0] else None, *x.shape[1:]]
    return tf.ensure_shape(tf.reshape(x, tf.concat([[parts, rows], shape[1:]], 0)), static)
