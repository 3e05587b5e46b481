"""`Trainer`: the compiled functions that train, evaluate and predict on TensorFlow.

One TensorFlow loop for every strategy, for pre-training and fine-tuning. The step itself is in
`train_step`; `TensorFlowStep` adds TensorFlow's gradients and sums.
"""

import functools

import keras
import tensorflow as tf

from experiments.training.step import evaluation, strategies
from experiments.training.step.train_step import TrainStep
from experiments.training.step.trainer_state import TrainerState, padded_to_a_multiple
from official_bert.common.errors import UserError


class Trainer(TrainerState):
    """A `TrainerState` with the compiled functions that train and evaluate its model.

    Raises:
      UserError: jit_compile with a `distribute` other than one_device.
    """

    def __init__(self, build, strategy, options, precision="float32", seed=0):
        if options.jit_compile and not strategies.is_default(strategy):
            raise UserError("jit_compile works with one_device only; TPUs compile without it")
        super().__init__(build, strategy, options, precision, seed)
        if options.jit_compile:
            _leave_cudnn(self.model)
        self._step = TensorFlowStep(self.model, self.optimizer, options, strategy)
        # Without autograph, which would rewrite the source of every layer before the first step.
        self._take_steps = tf.function(self._steps_from_iterator, autograph=False)
        self._functions = {}

    # --- what is done with the model -------------------------------------------------------------

    def train_from(self, iterator, steps, without=()):
        table = self._take_steps(
            iterator, tf.constant(steps, tf.int32), tf.constant(self._run_seed, tf.int32), without
        )
        return self.read([self._of_first_replica(table)])

    def train_on(self, batch):
        batch = strategies.distribute_batch(batch, self.strategy)
        step = self._compiled(self._step_on_batch, batch, tf.TensorSpec([], tf.int32))
        return self._of_first_replica(step(batch, tf.constant(self._run_seed, tf.int32)))

    def _terms_of(self, batch):
        return self._on_replicas(self._terms, batch)

    def _outputs_of(self, batch):
        return self._on_replicas(self._outputs, batch)

    # --- what is compiled -----------------------------------------------------------------------

    def _steps_from_iterator(self, iterator, steps, run_seed, without):
        """Take `steps` steps inside one compiled call; the host is not asked in between."""

        def body(i, table):
            last = tf.equal(i, steps - 1)
            row = self._step(iterator.get_next(), run_seed, last, without)
            return i + 1, table.write(i, row)

        table = tf.TensorArray(tf.float32, size=steps)
        _, table = tf.while_loop(
            lambda i, _: i < steps, body, (tf.constant(0), table), parallel_iterations=1
        )
        return table.stack()

    def _step_on_batch(self, batch, run_seed):
        return self._step(batch, run_seed, tf.constant(True))[None]

    def _terms(self, batch):
        terms = functools.partial(evaluation.terms, self.model)  # TPUs take tensors only
        return strategies.run(self.strategy, terms, batch)

    def _outputs(self, batch):
        def of_replica(batch):
            outputs = self.model(batch, training=False)
            return {name: tf.cast(value, tf.float32) for name, value in outputs.items()}

        return strategies.run(self.strategy, of_replica, batch)

    # --- helpers ----------------------------------------------------------------------------

    def _on_replicas(self, function, batch):
        """Call a function of each replica's rows; return a dict for each replica of this
        process."""
        local = strategies.local_replicas(self.strategy)
        batch = padded_to_a_multiple(batch, local, self.model)
        batch = strategies.distribute_batch(batch, self.strategy, local)
        found = self._compiled(function, batch)(batch)
        parts = map(self.strategy.experimental_local_results, found.values())
        return [dict(zip(found, values, strict=True)) for values in zip(*parts, strict=True)]

    def _of_first_replica(self, value):
        return self.strategy.experimental_local_results(value)[0]

    def _compiled(self, function, batch, *others):
        """Compile `function` for this batch; one compilation serves all lengths where it can.

        On one device, unless XLA wants static shapes, rows and length are left open. Otherwise each
        shape is compiled once, and length buckets keep them few.
        """
        fixed = self.options.fixed_shapes or self.options.jit_compile
        fixed = fixed or not strategies.is_default(self.strategy)
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


class TensorFlowStep(TrainStep):
    """A step under a strategy, with gradients of a tape.

    Args:
      model, optimizer, options: of `TrainStep`.
      strategy: of the trainer.
    """

    def __init__(self, model, optimizer, options, strategy):
        super().__init__(model, optimizer, options)
        self.strategy = strategy

    def __call__(self, batch, run_seed, with_metrics, without=()):
        """Take a step on a batch of the strategy; the other arguments are those of `take`."""
        function = functools.partial(self.on_replica, without=without)
        if self.options.jit_compile:
            function = tf.function(function, jit_compile=True, autograph=False)
        row = strategies.run(self.strategy, function, batch, run_seed, with_metrics)
        return self.strategy.experimental_local_results(row)[0]

    def on_replica(self, batch, run_seed, with_metrics, without=()):
        """Take this replica's part of a step, on its rows of the batch."""
        count = self.options.accumulation
        parts = batch if count == 1 else {name: _split(x, count) for name, x in batch.items()}

        def micro_batch(k):
            return parts if count == 1 else {name: x[k] for name, x in parts.items()}

        return self.take(micro_batch, run_seed, with_metrics, without)

    def _replica(self):
        if strategies.is_default(self.strategy):
            return 0
        return tf.distribute.get_replica_context().replica_id_in_sync_group

    def _gradients(self, batch, seed, weights, with_metrics, without):
        with tf.GradientTape() as tape:
            outputs, sums, own = self.forward(batch, seed)
            if weights is None:
                with tape.stop_recording():
                    weights = self._over_replicas(own)
            loss = self.total(self.means(sums, weights), without)
        found = tape.gradient(loss, self.model.trainable_variables)
        self.reached = [i for i, gradient in enumerate(found) if gradient is not None]
        # A lookup's gradient lists rows, some of them twice: its norm is not that of their sum.
        found = [tf.convert_to_tensor(found[i]) for i in self.reached]
        return found, tf.stack(sums), weights, self.metrics(batch, outputs, with_metrics)

    def _over_parts(self, function):
        # The first micro-batch is outside the loop: it gives the number of sums and their shapes.
        _, totals = tf.while_loop(
            lambda k, _: k < self.options.accumulation,
            lambda k, totals: (k + 1, tf.nest.map_structure(tf.add, totals, function(k))),
            (tf.constant(1), function(0)),
            maximum_iterations=self.options.accumulation - 1,
        )
        return totals

    def _over_replicas(self, values):
        if strategies.is_default(self.strategy):
            return values
        flat = tf.nest.flatten(values)
        context = tf.distribute.get_replica_context()
        # Tensors without elements (no metrics) are not sent.
        sent = [i for i, x in enumerate(flat) if x.shape.num_elements() != 0]
        summed = context.all_reduce(tf.distribute.ReduceOp.SUM, [flat[i] for i in sent])
        for i, x in zip(sent, summed, strict=True):
            flat[i] = x
        return tf.nest.pack_sequence_as(values, flat)


def _split(x, parts):
    """Reshape [rows, ...] to [parts, rows / parts, ...]."""
    shape = tf.shape(x)
    rows = x.shape[0] // parts if x.shape[0] else shape[0] // parts
    static = [parts, x.shape[0] // parts if x.shape[0] else None, *x.shape[1:]]
    return tf.ensure_shape(tf.reshape(x, tf.concat([[parts, rows], shape[1:]], 0)), static)


def _leave_cudnn(model):
    """Make Keras' LSTMs and GRUs compute without cuDNN, which XLA cannot compile."""
    for layer in model._flatten_layers():
        if isinstance(layer, keras.layers.LSTM | keras.layers.GRU):
            layer.use_cudnn = False


def _open_spec(name, x, batch):
    """Return the TensorSpec of a batch field with unknown rows and length, all else as it is."""
    shape = [None, *x.shape[1:]]
    # Vectors of tokens are [rows, length, ...]; ids and labels end with the length.
    axis = 1 if len(shape) > 2 and tf.as_dtype(x.dtype).is_floating else -1
    if len(shape) > 1 and shape[axis] == batch["input_ids"].shape[-1]:
        shape[axis] = None
    return tf.TensorSpec(shape, x.dtype, name=name)
