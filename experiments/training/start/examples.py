"""The examples of a split that a configuration asks for, and the weights of their classes."""

import numpy as np

from data_prep.tasks import options_of
from data_prep.tasks.batches import sample
from data_prep.tasks.task import MissingFile
from official_bert.common.errors import UserError, first_of


def read_examples(task, split, config):
    """Return the examples of a split, no more than the configuration asks for.

    Raises:
      UserError: there are none.
    """
    try:
        examples = sample(task.examples(split), _limit(split, config))
    except MissingFile as error:
        named = f"{split}_file"
        other = f", --config.task_options.{named}=" if named in options_of(config.task) else ""
        raise MissingFile(f"{error} (--config.data_dir={config.data_dir}{other})") from None
    if not examples:
        raise UserError(f"task {task.name} has no {split} examples in {config.data_dir}")
    return examples


def read_others(task, config, known):
    """Return the splits beside train and dev that a run predicts, as far as they are there.

    They are MNLI's mismatched dev split, and test splits where the configuration asks for them.

    A file that `test_file` names asks for the test split as `predict_test` does.

    Args:
      known: {split: examples} of what is read already.

    Returns: ({split: examples}, {split: why it is not there}).
    """
    names = [name for name in task.splits if name not in ("train", "dev")]
    names = [name for name in names if config.predict_test or name.startswith("dev")]
    if config.task_options.get("test_file"):  # which has to be there
        known = known if "test" in known else {**known, "test": read_examples(task, "test", config)}
        names = [*names, "test"]
    return read_present(task, config, known, names)


def read_present(task, config, known, names):
    """Return ({split: examples}, {split: why it is not there}) of `names`; `known`: see
    `read_others`."""
    found, missing = {}, {}
    for name in names:
        try:
            found[name] = known.get(name) or read_examples(task, name, config)
        except MissingFile as error:
            missing[name] = str(error)
    return found, missing


def _limit(split, config):
    """Return how many examples of a split are used; 0: all."""
    if split == "train":
        return config.max_train_examples
    return config.max_dev_examples if split.startswith("dev") else 0


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
    weights = np.ones(len(labels), np.float32)
    for part in text.split(","):
        label, _, number = part.rpartition("=")
        try:
            weights[labels.index(label.strip())] = float(number)
        except ValueError:
            raise UserError(
                f"--config.class_weights: {part.strip()!r} is not a LABEL=WEIGHT; "
                f"the labels are {first_of(labels, 20)}; or say balanced"
            ) from None
    return weights
