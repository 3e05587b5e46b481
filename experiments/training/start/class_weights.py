"""Weights of a task's classes in the loss, as the field `class_weights` gives them."""

import contextlib
import math

import numpy as np

from official_bert.common.errors import UserError, first_of


def class_weights_of(config, task, features):
    """Return float32 [classes]; None where every class weighs the same.

    "balanced" gives each class the same sum of weights: examples / (classes * examples of it).

    Raises:
      UserError: the task has no classes, or the field has an unknown label or a wrong number.
    """
    if not config.class_weights:
        return None
    check_class_weights(config, task)
    labels = list(task.head["labels"])
    if config.class_weights == "balanced":
        counts = np.bincount(features.columns["label_ids"].values, minlength=len(labels))
        return (counts.sum() / (len(labels) * np.maximum(counts, 1))).astype(np.float32)
    return _listed(config.class_weights, labels)


def check_class_weights(config, task):
    """Raise UserError as `class_weights_of` does, without the examples."""
    head = task.head
    if head["head"] != "classification" or head["problem"] != "single_label":
        kind = head.get("problem") or head["head"]
        raise UserError(
            f"--config.class_weights={config.class_weights}: weights are for tasks that choose one "
            f"class for each text; {task.name} is {kind} here. Leave class_weights out; rows that "
            "stand in the training file twice count double"
        )
    if config.class_weights != "balanced":
        _listed(config.class_weights, list(head["labels"]))


def _listed(text, labels):
    weights = {}
    for part in text.split(","):
        label, _, number = map(str.strip, part.rpartition("="))
        with contextlib.suppress(ValueError):
            if label in labels and label not in weights and 0 <= float(number) < math.inf:
                weights[label] = float(number)
                continue
        raise UserError(
            f"--config.class_weights: {part.strip()!r} is not a LABEL=WEIGHT with a weight from 0 "
            f"on, each label once; the labels are {first_of(labels, 20)}; or say balanced"
        )
    return np.array([weights.get(label, 1) for label in labels], np.float32)
