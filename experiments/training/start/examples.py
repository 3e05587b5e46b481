"""The examples of a split that a configuration asks for."""

from data_prep.tasks import options_of
from data_prep.tasks.batches import sample
from data_prep.tasks.task import MissingFile
from official_bert.common.errors import UserError


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
