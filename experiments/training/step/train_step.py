"""One training step: gradients of global means, summed over replicas, clipped once, applied.

Of a model it knows only the protocol of `official_bert.losses`: outputs, loss terms, metric terms
as (sum, weight). What Keras 3 gets wrong under tf.distribute (replicas that draw the same dropout
mask, gradients clipped before they are summed, means of means) is done here by hand:

- a seed is a function of (run seed, step, micro-batch, replica), so masks differ between replicas
  and a resumed run draws what the uninterrupted run would have drawn;
- weights of the loss terms are summed over replicas and micro-batches before anything is divided,
  so N replicas, or N micro-batches, take the step that one large batch takes;
- gradients are summed, then clipped once by their global norm, then applied.
"""

import tensorflow as tf

from experiments.training.step import distribution
from official_bert.randomness import make_seed


class TrainStep:
    """The step as a function of a batch, to be compiled by its caller.

    Args:
      model, optimizer, strategy: of a `training.Trainer`.
      options: StepOptions.
    """

    def __init__(self, model, optimizer, strategy, options):
        self.model, self.optimizer = model, optimizer
        self.strategy, self.options = strategy, options
        self.columns = None  # names of what a step returns, known once it is traced
        self._without = ()

    def __call__(self, batch, run_seed, with_metrics, without=()):
        """Takes a step.

        Args:
          batch: of the strategy, [rows, ...] tensors.
          run_seed: int32.
          with_metrics: bool tensor; metrics are zeros where it is false.
          without: names of loss terms that are computed, but not trained on.

        Returns: float32 [columns], equal on all replicas.
        """
        self._without = without
        function = self._replica_step
        if self.options.jit_compile:
            function = tf.function(function, jit_compile=True, autograph=False)
        row = distribution.run(self.strategy, function, batch, run_seed, with_metrics)
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
                tf.stack([self._total(losses), tf.cast(norm, tf.float32)]),
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
            sums = tf.stack(
                [
                    tf.stop_gradient(total) if name in self._without else total
                    for name, (total, _) in terms.items()
                ]
            )
            if weights is None:
                with tape.stop_recording():
                    weights = tf.stack([weight for _, weight in terms.values()])
                    weights = self._sum_over_replicas(weights)
            loss = self._total(self._means(sums, weights))
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

    def _total(self, losses):
        """The loss that is trained on, of the loss terms [terms]."""
        weights = [
            0.0 if name in self._without else self.model.loss_weights.get(name, 1.0)
            for name in self._loss_names
        ]
        if set(weights) == {1.0}:
            # Not times 1: the graph optimiser would move that into other products and round anew.
            return tf.reduce_sum(losses)
        return tf.reduce_sum(losses * tf.constant(weights))

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

    def _replica_id(self):
        if distribution.is_default(self.strategy):
            return 0
        return tf.distribute.get_replica_context().replica_id_in_sync_group

    def _sum_over_replicas(self, values):
        if distribution.is_default(self.strategy):
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
    """[rows, ...] -> [parts, rows / parts, ...]."""
    shape = tf.shape(x)
    rows = x.shape[0] // parts if x.shape[0] else shape[0] // parts
    static = [parts, x.shape[0] // parts if x.shape[0] else None, *x.shape[1:]]
    return tf.ensure_shape(tf.reshape(x, tf.concat([[parts, rows], shape[1:]], 0)), static)
