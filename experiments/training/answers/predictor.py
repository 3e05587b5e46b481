"""A fine-tuned model with its task, which answers examples of any file."""

import functools
import os

from official_bert.backend import tensorflow_start
from official_bert.common.errors import UserError


def read_task(model):
    """Return (the settings of a model folder, the name of its task, the task's options).

    It needs neither Keras nor TensorFlow, so that a wrong folder is an error within a second.

    Raises:
      UserError: it is not a model folder, or no fine-tuning wrote it.
    """
    from official_bert.checkpoints import model_settings

    settings = model_settings.read_settings(model)
    name, options = described_task(settings)
    if not name or not settings.get("max_seq_length"):
        raise UserError(
            f"{model} is not fine-tuned: its model.json names no task; experiments.evaluate "
            "--records= is for pre-trained models"
        )
    return settings, name, options


def described_task(settings):
    """Return (name, options) of the task that a model was fine-tuned for; ("", {}) without one.

    Raises:
      UserError: an option names files; a model from a stranger must not choose what is read.
    """
    task = settings.get("task")
    task = task if isinstance(task, dict) else {}
    options = task.get("options", {})
    files = [name for name in options if name == "name" or name.endswith(("_dir", "_file"))]
    if files:
        raise UserError(f"model.json: task: the option {files[0]} is none that a model may have")
    return task.get("name", ""), options


def task_of(model, task_options=None, **where):
    """Return (the settings of a model folder, its task).

    Args:
      model: a model folder that fine-tuning wrote.
      task_options: {name: value} of options that say how files are read; others are the model's.
      where: `data_dir` and names of files, as of `get_task`.

    Raises:
      UserError: see `read_task`; or an option does not say how files are read.
    """
    from data_prep.tasks import get_task

    settings, name, options = read_task(model)
    task_options = task_options or {}
    task = get_task(name, **where, **options | task_options)
    if fixed := sorted(set(task_options) - set(task.reading_options)):
        known = ", ".join(task.reading_options) or "none"
        raise UserError(
            f"--task_options.{fixed[0]} belongs to the model, which was trained with it; here may "
            f"be set what says how files are read: {known}"
        )
    return settings, task


def task_on(model, data, split="dev", task_options=None):
    """Return the task of a fine-tuned model, on a file or folder of the user's.

    Args:
      model: a model folder that fine-tuning wrote.
      data: a folder with the task's files, or one file, which is then the split's.
      split: a split that the task knows.
      task_options: as of `task_of`.

    Raises:
      UserError: there is no such file, or the task does not know the split.
    """
    read_task(model)
    if not os.path.exists(data):
        raise UserError(f"{data}: no such file or folder")
    if not os.path.isfile(data):
        return task_of(model, task_options, data_dir=data)[1]
    if split not in ("dev", "test"):
        raise UserError(f"{data} is one file, read as dev or test; --split={split} needs a folder")
    folder, file = os.path.split(data)
    return task_of(model, task_options, data_dir=folder or os.curdir, **{f"{split}_file": file})[1]


class Predictor:
    """A fine-tuned model with its task.

    The first `predict` loads the network, so that errors in a file come before TensorFlow starts.

    Args:
      model: a model folder that fine-tuning wrote.
      batch_size: rows of a batch.
      task_options: as of `task_of`.
    """

    def __init__(self, model, batch_size=32, task_options=None):
        settings, self.task = task_of(model, task_options)
        self.labels = list(settings.get("labels") or [])
        self._model, self._length = model, settings["max_seq_length"]
        self._batch_size = batch_size
        from official_bert.checkpoints import model_folder

        self._reads_texts = bool(model_folder.own_loader(settings))

    @functools.cached_property
    def _loaded(self):
        """(tokenizer, function from a batch to the network's outputs)."""
        tensorflow_start.import_tensorflow()
        from official_bert.backend.compiled import compiled
        from official_bert.checkpoints import model_folder

        loaded = model_folder.load(self._model)
        network, head = self.task.network(loaded), self.task.head
        anew = {name: head[name] for name in network.call_options if name in head}
        return loaded.tokenizer, compiled(network, lambda batch: network(batch, **anew))

    @functools.cached_property
    def _scorer(self):
        from official_bert.checkpoints import model_folder

        return model_folder.load(self._model).model

    def _of_texts(self, examples):
        columns = [list(texts) for texts in zip(*map(self.task.texts, examples), strict=True)]
        return self.task.predictions(examples, [], {"logits": self._scorer(columns)})

    def predict(self, examples, show=False):
        """Return (one dict an example, number of examples that were cut to the model's window).

        Args:
          show: a progress line on stderr.
        """
        if self._reads_texts:
            return self._of_texts(examples), 0
        tokenizer, call = self._loaded
        from data_prep.jobs.progress import progress_bar
        from data_prep.tasks.featurize import featurize
        from experiments.training.step import evaluation

        features = featurize(self.task, examples, tokenizer, self._length, num_processes=1)

        def outputs(batch):
            found = call({n: batch[n] for n in ("input_ids", "input_mask", "segment_ids")})
            bar.update(min(self._batch_size, len(features) - bar.n) if show else 0)
            return found

        with progress_bar(show, total=len(features), unit=" rows", mininterval=1) as bar:
            found = evaluation.outputs(outputs, features, self._batch_size)
        predictions = self.task.predictions(examples, features, found)
        return predictions, features.notes["truncated_examples"]
