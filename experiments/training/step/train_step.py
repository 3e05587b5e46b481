"""The training step: gradients of global means, summed, clipped once, applied.

It knows only the protocol of `official_bert.losses` of a model: outputs, loss terms, metric terms
as (sum, weight). Keras 3 gets three things wrong under tf.distribute: replicas draw the same
dropout mask, gradients are clipped before they are summed, and means are taken of means. Here they
are done by hand:

- a seed is a function of (run seed, step, micro-batch, replica), so masks differ between replicas
  and a resumed run draws what the uninterrupted run would have drawn;
- weights of the loss terms are summed over replicas and micro-batches before anything is divided,
  so N replicas, or N micro-batches, take the step that one large batch takes;
- gradients are summed, then clipped once by their global norm, then applied.
"""

from keras import ops

from official_bert.randomness import make_seed


class TrainStep:
    """The step, to be compiled by a trainer; a backend adds the four methods at the end.

    Args:
      model, optimizer: of a `TrainerState`.
      options: StepOptions.

    Attributes, known once a step is traced:
      columns: names of what a step returns.
      reached: indices of the trainable variables that the loss depends on.
    """

    def __init__(self, model, optimizer, options):
        self.model, self.optimizer, self.options = model, optimizer, options
        self.columns = self.reached = None

    def take(self, micro_batch, run_seed, with_metrics, without=()):
        """Take a step.

        Args:
          micro_batch: function of k -> micro-batch k of this replica, dict of arrays [rows, ...].
          run_seed: int32.
          with_metrics: bool scalar; metrics are zeros where it is false.
          without: names of loss terms that are computed, but not trained on.

        Returns: float32 [columns], equal on all replicas.
        """
        parts = self.options.accumulation
        first_seed = ops.cast(self.optimizer.iterations, "int32") * parts

        def seed_of(k):
            return make_seed(run_seed, first_seed + k, self._replica())

        def gradients_of(k, weights=None):
            return self._gradients(micro_batch(k), seed_of(k), weights, with_metrics, without)

        if parts == 1:
            gradients, sums, weights, metrics = gradients_of(0)
        else:
            # Weights do not depend on the model's outputs, so the compiler prunes its forward pass
            # here.
            weights = self._over_parts(lambda k: self.forward(micro_batch(k), seed_of(k))[2])
            weights = self._over_replicas(weights)
            gradients, sums, _, metrics = self._over_parts(lambda k: gradients_of(k, weights))
        gradients, sums, metrics = self._over_replicas([gradients, sums, metrics])
        # A variable that the loss does not reach (the pooler without next-sentence prediction)
        # is not decayed either.
        variables = [self.model.trainable_variables[i] for i in self.reached]
        norm = self.optimizer.apply_reduced(gradients, variables)
        losses = self.means(sums, weights)
        first = [self.total(losses, without), norm]
        first = ops.stack([ops.cast(x, "float32") for x in first])
        return ops.concatenate(
            [first, ops.stack(losses), ops.divide_no_nan(metrics[0], metrics[1])]
        )

    def forward(self, batch, seed):
        """Return (outputs, sums of the loss terms as a list, their weights [terms])."""
        outputs = self.model(batch, training=True, seed=seed)
        terms = self.model.loss_terms(batch, outputs)
        self._loss_names = list(terms)
        sums, weights = zip(*terms.values(), strict=True)
        return outputs, list(sums), ops.stack(weights)

    def means(self, sums, weights):
        """Return the loss terms from their global sums and weights."""
        epsilons = [self.model.loss_epsilons.get(name, 0.0) for name in self._loss_names]
        return [ops.divide_no_nan(sums[i], weights[i] + e) for i, e in enumerate(epsilons)]

    def total(self, losses, without):
        """Return the loss that is trained on.

        Terms that are left out are not multiplied by 0, so that `reached` lacks their variables. No
        term is multiplied by 1: TensorFlow's graph optimiser would merge that and round anew."""
        factors = self.model.loss_weights
        named = zip(self._loss_names, losses, strict=True)
        used = [(factors.get(name, 1.0), loss) for name, loss in named if name not in without]
        return sum(loss if factor == 1.0 else factor * loss for factor, loss in used)

    def metrics(self, batch, outputs, with_metrics):
        """Return float32 [2, metrics], sums and weights; zeros where they are not asked for."""
        names = []

        def compute():
            terms = self.model.metric_terms(batch, outputs)
            names.extend(terms)
            rows = [ops.stack(row) for row in zip(*terms.values(), strict=True)]
            return ops.cast(ops.stack(rows), "float32") if terms else ops.zeros([2, 0])

        found = ops.zeros([2, 0])
        if self.options.train_metrics:
            # The true branch is traced first and so names the metrics.
            found = ops.cond(with_metrics, compute, lambda: ops.zeros([2, len(names)]))
        self.columns = ["loss", "gradient_norm", *self._loss_names, *names]
        return found

    def _replica(self):
        """Return the number of this replica."""
        return 0

    def _gradients(self, batch, seed, weights, with_metrics, without):
        """Return (gradients of `total` of a micro-batch for the variables that are `reached`, sums
        of its loss terms [terms], their weights [terms], its metrics).

        Args:
          weights: global weights of the loss terms [terms]; None to sum this batch's own.
        """
        raise NotImplementedError

    def _over_parts(self, function):
        """Return the sums of `function(k)` over all micro-batches k."""
        raise NotImplementedError

    def _over_replicas(self, values):
        """Return the sums of tensors over all replicas."""
        return values
