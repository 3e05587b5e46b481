"""The examples of a task's split that a configuration asks for."""

from data_prep.tasks import options_of
from data_prep.tasks.batches import sample
from data_prep.tasks.task import MissingFile
from official_bert.common.errors import UserError


def read_examples(task, split, config):
    """The examples of a split, no more than the configuration asks for.

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


def splits_to_predict(task, config):
    """The splits beside train and dev whose predictions a run leaves; files may lack some."""
    others = [name for name in task.splits if name not in ("train", "dev")]
    return [name for name in others if config.predict_test or name.startswith("dev")]


def _limit(split, config):
    """How many examples of a split are used; 0: all."""
    if split == "train":
        return config.max_train_examples
    return config.max_dev_examples if split.startswith("dev") else 0
