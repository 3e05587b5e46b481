"""Weights of the classes in the loss: `class_weights` of a FinetuneConfig."""

import numpy as np

from official_bert.common.errors import UserError


def of(config, task, features):
    """float32 [classes]; None where every class weighs the same.

    "balanced" gives each class the same sum of weights: examples / (classes * examples of it).

    Raises:
      UserError: the task has no classes, or the field names another label or no number.
    """
    if not config.class_weights:
        return None
    check(config, task)
    labels = list(task.head["labels"])
    if config.class_weights == "balanced":
        counts = np.bincount(features.columns["label_ids"].values, minlength=len(labels))
        return (counts.sum() / (len(labels) * np.maximum(counts, 1))).astype(np.float32)
    return _listed(config.class_weights, labels)


def check(config, task):
    """Raises UserError as `of` does, without the examples."""
    head = task.head
    if head["head"] != "classification" or head["problem"] != "single_label":
        raise UserError(f"--config.class_weights: {task.name} does not choose one class of several")
    if config.class_weights != "balanced":
        _listed(config.class_weights, list(head["labels"]))


def _listed(text, labels):
    weights = np.ones(len(labels), np.float32)
    for part in text.split(","):
        label, _, number = part.rpartition("=")
        try:
            weights[labels.index(label.strip())] = float(number)
        except ValueError:
            raise UserError(
                f"--config.class_weights: {part.strip()!r} is no LABEL=WEIGHT; "
                f"the labels are {', '.join(labels[:20])}; or say balanced"
            ) from None
    return weights
