"""Checks of a fine-tuning, as `preflight` has those of a pre-training."""

import importlib.util
import os
import re

from data_prep.tasks import get_task
from experiments.training.folder import inputs
from experiments.training.settings.options import changes
from experiments.training.start import initialization, preflight
from experiments.training.start.class_weights import check_class_weights
from experiments.training.start.examples import read_examples, read_others
from official_bert.common.errors import UserError, check_choice
from official_bert.config import parts_named


def finetuning(config):
    """Return the task of a FinetuneConfig and its examples.

    Returns: (ModelSource, (Task, {split: examples} of all splits that are read; empty where they
      come from TFDS), Inputs).
    Raises:
      UserError: an option, a file, a column, a row or the model is wrong.
    """
    task = _task(config)
    source = initialization.of(config)
    check_kind(config, source)
    bert, tokenizer = source.check_finetuning(config, task)
    for one in config.model_options:
        one.check_finetuning(config, task, tokenizer)
    if task.reads_tfds:
        _check_tfds(config)
        return source, (task, {}), inputs.finetuning_inputs(config, {})
    if not os.path.exists(config.data_dir or "."):
        raise UserError(f"--config.data_dir={config.data_dir}: no such file or folder")
    examples = {split: read_examples(task, split, config) for split in ("train", "dev")}
    check_model(config, task, bert)
    examples |= read_others(task, config, {})[0]
    return source, (task, examples), inputs.finetuning_inputs(config, examples)


def check_kind(config, source):
    """Raise UserError where a FinetuneConfig sets what its ModelSource does not support."""
    others = [one for one in config.model_options if not source.accepts(one)]
    preflight.refuse(config, sorted(source.lacks), others, f"--config.model={config.model}")


def check_model(config, task, bert):
    """Raise UserError where a FinetuneConfig does not fit its task or model.

    Args:
      bert: the model's BertConfig; None where it is not known yet."""
    if bert and config.max_seq_length > bert.max_position_embeddings:
        raise UserError(
            f"--config.max_seq_length={config.max_seq_length}: the model has positions for "
            f"{bert.max_position_embeddings} tokens; set "
            f"--config.max_seq_length={bert.max_position_embeddings}, or less"
        )
    if config.features and task.head["head"] != "tagging":
        raise UserError(
            f"--config.features={config.features}: the feature-based approach is for tagging "
            f"tasks; {config.task} is {task.head['head']}"
        )
    if config.features and bert and len(set(bert.widths)) > 1:
        raise UserError(
            f"--config.features={config.features}: the layers of this encoder are not equally wide"
        )
    if config.features and config.bilstm:
        raise UserError("--config.bilstm is for fine-tuning; with features there are BiLSTMs")
    if config.mean_pooling and task.head["head"] != "classification":
        raise UserError(
            f"--config.mean_pooling is for classification; {config.task} is {task.head['head']}"
        )
    if config.best_metric:
        rising = [name for name in task.metrics if name != "mean_squared_error"]
        check_choice("--config.best_metric", config.best_metric, rising)
    task.check_training(config, bert)
    for one in config.model_options:
        one.check_model(config, task, bert)
    losses = [next(iter(changes(one))) for one in config.model_options if one.adds_loss]
    if len(losses) > 1:
        raise UserError(f"--config.{losses[0]}: not together with {losses[1]}; leave one out")
    if config.class_weights:
        check_class_weights(config, task)
    if config.freeze and bert:
        try:
            parts_named(config.freeze, bert.num_blocks)
        except UserError as error:
            raise UserError(f"--config.freeze={config.freeze}: {error}") from None


def _task(config):
    try:
        return get_task(config.task, config.data_dir, **config.task_options)
    except UserError as error:
        # Name the option that the error is about, as on the command line.
        named = (name for name in config.task_options if re.search(rf"\b{name}\b", str(error)))
        option = next(named, None)
        flag = f"task_options.{option}" if option else "task"
        value = config.task_options[option] if option else config.task
        raise UserError(f"--config.{flag}={value}: {error}") from None


def _check_tfds(config):
    if importlib.util.find_spec("tensorflow_datasets") is None:
        raise UserError(
            f"--config.data_dir is empty, and TFDS, which would give {config.task}, is not "
            "installed (pip install tensorflow-datasets); give the folder of the official files"
        )
