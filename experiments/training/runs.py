"""A run from its folder: begins one, continues one, or returns the results of a finished one.

The light front of `pretrain_run` and `finetune_run`: wrong options and finished runs are answered
without loading TensorFlow.
"""

import contextlib
import os
import sys

from data_prep.tasks import TASKS, get_task
from experiments.training.run_folder import RunFolder
from official_bert import commands
from official_bert.errors import UserError
from official_bert.locks import exclusive


def pretrain(config, workdir, progress=True, overwrite=False, began=None):
    """One pre-training run; continues an interrupted one, returns the results of a finished one.

    Args:
      config: PretrainConfig.
      workdir: the run's folder.
      progress: show a progress line on stderr.
      overwrite: discard an earlier run in `workdir`.
      began: `time.perf_counter()` of when the command began; the log says when the first step was
        done, counted from there.

    Returns: what results.json holds: "steps", "examples", "tokens", "seconds", "heldout" {metric:
      value} of the last phase, "model", ...
    Raises:
      UserError: wrong configuration or data, or `workdir` holds a run with other options.
      FloatingPointError: the loss is no longer finite.
    """

    def start(folder):
        from experiments.training import pretrain_run

        return pretrain_run.run(config, folder, progress, began)

    return _continue(config, workdir, progress, overwrite, start)


def finetune(config, workdir, progress=True, overwrite=False):
    """One fine-tuning run; continues an interrupted one, returns the results of a finished one.

    Args:
      config: FinetuneConfig.
      workdir: the run's folder.
      progress: show a progress line on stderr.
      overwrite: discard an earlier run in `workdir`.

    Returns: what results.json holds: "task", "dev" {metric: value}, "main_metric", "baseline",
      "steps", "train_examples", "dev_examples", "seconds", "predictions_file", ...
    Raises:
      UserError: wrong configuration, data or model, or `workdir` holds another run.
    """
    _check_finetune(config)

    def start(folder):
        _check_files(config)
        commands.import_tensorflow()
        from experiments.training import finetune_run

        return finetune_run.run(config, folder, progress)

    return _continue(config, workdir, progress, overwrite, start)


def _continue(config, workdir, progress, overwrite, start):
    chief = True
    if config.distribute == "multi_worker":
        from experiments.training import distribution

        chief = distribution.is_chief(config.distribute)
    with exclusive(workdir) if chief else contextlib.nullcontext() as lock:
        folder = RunFolder(workdir, config, overwrite, chief, lock)
        finished = folder.results()
        if finished:
            if progress:
                print(f"{workdir} is finished; --overwrite runs it again", file=sys.stderr)
            return finished
        return start(folder)


def _check_finetune(config):
    if not config.task:
        raise UserError(f"configuration: task is empty; choose one of {', '.join(TASKS)}")
    if not config.model and not config.vocab:
        raise UserError(
            "configuration: give model (a model folder, an imported checkpoint or a preset), "
            "or vocab for a model with random weights of the size bert"
        )
    if config.keep_best and not config.eval_every:
        raise UserError("configuration: keep_best needs eval_every, the steps between evaluations")
    if config.patience and not config.eval_every:
        raise UserError("configuration: patience needs eval_every, the steps between evaluations")


def _check_files(config):
    """Raises UserError for files and options that can be seen to be wrong without TensorFlow."""
    try:
        task = get_task(config.task, config.data_dir, **config.task_options)
    except UserError as error:
        raise UserError(f"--config.task, --config.task_options: {error}") from None
    if "://" not in config.data_dir and config.data_dir and not os.path.exists(config.data_dir):
        raise UserError(f"--config.data_dir={config.data_dir}: no such file or folder")
    if os.sep in config.model and "://" not in config.model and not _is_there(config.model):
        raise UserError(f"--config.model={config.model}: no such folder or checkpoint")
    task.check_files()


def _is_there(path):
    return os.path.exists(path) or os.path.exists(f"{path.removesuffix('.index')}.index")
