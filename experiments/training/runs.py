"""Runs: `pretrain` and `finetune` begin one, continue one, or return a finished one's results.

They are the light front of `pretrain_run` and `finetune_run`: for wrong options and finished runs
they do not load TensorFlow.
"""

import contextlib

from data_prep.jobs import commands
from data_prep.jobs.locks import exclusive
from data_prep.jobs.outputs import check_outputs, members
from data_prep.tasks import task_names
from experiments.training.folder import run_folder
from experiments.training.folder.run_folder import RunFolder
from experiments.training.folder.run_results import FinetuningResults, PretrainingResults
from experiments.training.settings.config import path_values
from experiments.training.start import finetuning_preflight, preflight
from official_bert.backend import tensorflow_start
from official_bert.common.errors import UserError


def pretrain(config, workdir, progress=True, overwrite: bool = False, began=None, lock=None):
    """Pre-train: begin a run, continue an interrupted one, or return a finished one's results.

    Args:
      config: PretrainConfig.
      workdir: the run's folder.
      progress: show a progress line on stderr.
      overwrite: rename a folder with an earlier run to NAME.~1~, and begin anew.
      began: `time.perf_counter()` of when the command began; the log reports the time from then to
        the first step.
      lock: the folder's `locks.FolderLock`, where the caller holds it.

    Returns: PretrainingResults, which results.json holds.
    Raises:
      UserError: wrong configuration or data, or `workdir` holds a run with other options or data.
      FloatingPointError: the loss is no longer finite.
    """

    def start(source, folder, records):
        tensorflow_start.import_tensorflow()
        from experiments.training.pretraining import pretrain_run

        return pretrain_run.run(source, config, folder, progress, records, began)

    kind, check = PretrainingResults, preflight.pretraining
    return _continue(config, workdir, progress, overwrite, kind, check, start, lock)


def finetune(config, workdir, progress=True, overwrite: bool = False, lock=None):
    """Fine-tune: begin a run, continue an interrupted one, or return a finished one's results.

    Args:
      config: FinetuneConfig.
      workdir: the run's folder.
      progress: show a progress line on stderr.
      overwrite: rename a folder with an earlier run to NAME.~1~, and begin anew.
      lock: the folder's `locks.FolderLock`, where the caller holds it.

    Returns: FinetuningResults, which results.json holds.
    Raises:
      UserError: wrong configuration, data or model, or `workdir` holds another run.
    """
    _check_finetune(config)

    def step_by_step(*arguments):
        tensorflow_start.import_tensorflow()
        from experiments.training.finetuning import finetune_run

        return finetune_run.run(*arguments)

    def start(source, folder, read):
        return source.finetune(step_by_step, config, folder, progress, *read)

    kind, check = FinetuningResults, finetuning_preflight.finetuning
    return _continue(config, workdir, progress, overwrite, kind, check, start, lock)


def _continue(config, workdir, progress, overwrite, kind, check, start, lock):
    check_outputs(_inputs(config), work=[workdir])
    # Check first: an earlier run's folder is not renamed for a run that cannot begin.
    checked = check(config) if overwrite else None
    chief = True
    if config.distribute == "multi_worker":
        from experiments.training.step.backend import strategies

        chief = strategies.is_chief(config.distribute)
    held = lock is not None  # the caller has begun the folder
    with contextlib.nullcontext(lock) if held or not chief else exclusive(workdir) as lock:
        if chief and not held:
            run_folder.begin(workdir, overwrite, lock)
        folder = RunFolder(workdir, config, chief, lock)
        source, found, inputs = checked or check(config)
        folder.begin(inputs)
        finished = folder.finished(kind, source.check_model)
        if finished:
            if progress:
                commands.say(f"{workdir} is finished; --overwrite runs it again")
            return finished
        return start(source, folder, found)


def _inputs(config):
    """Return the files and folders that a configuration names."""
    paths = [
        path
        for part in (config, *getattr(config, "phases", ()))
        for _, path in path_values(part).values()
    ]
    return [inner for path in filter(None, paths) for inner in members(path)]


def _check_finetune(config):
    if not config.task:
        raise UserError(f"configuration: task is empty; choose one of {', '.join(task_names())}")
    if not config.model and not config.vocab:
        raise UserError(
            "configuration: give model (a model folder, an imported checkpoint or a preset), "
            "or vocab for a model with random weights of the size bert"
        )
    if config.keep_best and not config.eval_every:
        raise UserError("configuration: keep_best needs eval_every, the steps between evaluations")
    if config.patience and not config.eval_every:
        raise UserError("configuration: patience needs eval_every, the steps between evaluations")
