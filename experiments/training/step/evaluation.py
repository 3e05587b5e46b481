"""A model over many batches: means of its losses and metrics, its outputs, its scores on a task."""

import collections

import numpy as np
from keras import ops

from data_prep.tasks.batches import OutputCollector, eval_batches


def terms(model, batch):
    """Return loss and metric terms of one batch: dict of name -> float32 [2], a sum and its
    weight."""
    outputs = model(batch, training=False)
    found = {**model.loss_terms(batch, outputs), **model.metric_terms(batch, outputs)}
    return {name: ops.stack(term) for name, term in found.items()}


def means(all_terms):
    """Return dict of name -> float from an iterable of what `terms` returned."""
    totals = collections.defaultdict(lambda: np.zeros(2))
    for found in all_terms:
        for name, term in found.items():
            totals[name] += np.asarray(term)
    return {name: float(total / max(weight, 1e-12)) for name, (total, weight) in totals.items()}


def outputs(predict, features, batch_size, buckets=32):
    """Return the outputs that `Task.predictions` reads.

    Args:
      predict: function of a batch -> dict of name -> array [rows, ...].
      features: FeatureSet.
      batch_size, buckets: of `eval_batches`.
    """
    collector = OutputCollector(len(features))
    for rows, batch in eval_batches(features, batch_size, buckets):
        collector.add(rows, predict(batch))
    return collector.outputs()


class TaskEvaluator:
    """Predicts and scores the examples of a split; `evaluate` of `loop.train`.

    Args:
      trainer: Trainer.
      task: of `get_task`.
      split: finetune_data.Split.
      batch_size, buckets: of `eval_batches`.
      metric: the score that decides which evaluation is the best.
    """

    def __init__(self, trainer, task, split, batch_size, buckets, metric):
        self._metric = metric
        self._trainer, self._task, self._split = trainer, task, split
        self._batch_size, self._buckets = batch_size, buckets
        self._last = None

    @property
    def examples(self):
        """Return the examples of the split."""
        return self._split.examples

    def predict(self):
        """Return one prediction an example."""
        split = self._split

        def predict(batch):
            # A model that generates text would read the labels.
            unlabelled = {name: x for name, x in batch.items() if name != "label_ids"}
            return self._trainer.predict(split.complete(unlabelled))

        found = outputs(predict, split.features, self._batch_size, self._buckets)
        return self._task.predictions(split.examples, split.features, found)

    def evaluate(self, step):
        """Return (predictions, scores) with the weights of `step`."""
        if self._last is None or self._last[0] != step:
            predictions = self.predict()
            self._last = step, predictions, self.scores(predictions)
        return self._last[1:]

    def scores(self, predictions):
        """Return dict of metric -> float."""
        found = self._task.score(self._split.examples, predictions)
        return {name: float(value) for name, value in found.items()}

    def __call__(self, step):
        _, scores = self.evaluate(step)
        return scores, scores[self._metric]
