"""The common part of pre-training and fine-tuning: make a trainer, train to the last step.

A session is the part of a run that one process does. It begins at the run's newest checkpoint.
"""

import collections

from experiments.training.folder import shared_prefix
from experiments.training.folder.checkpointing import Checkpoints
from experiments.training.folder.progress import Progress
from experiments.training.step import loop
from experiments.training.step.backend import Trainer, strategies
from experiments.training.step.trainer_state import StepOptions
from official_bert.common.errors import UserError

_KEPT_BYTES = 2 * 2**30
_trainers = collections.OrderedDict()


def make_trainer(config, key, build, strategy, **more):
    """Return the Trainer that a configuration asks for.

    Args:
      config: PretrainConfig or FinetuneConfig.
      key, build, strategy: of `get_trainer`.
      **more: other fields of StepOptions.
    """
    if config.deterministic:
        strategies.make_deterministic()
    options = StepOptions(
        weight_decay=config.weight_decay,
        beta_2=config.adam_beta_2,
        epsilon=config.adam_epsilon,
        clip_norm=config.clip_norm,
        accumulation=config.gradient_accumulation,
        jit_compile=config.jit_compile,
        fixed_shapes=config.distribute == "tpu",
        optimizer=getattr(config, "optimizer", "adamw"),  # pre-training only
        bias_correction=config.bias_correction,
        layer_decay=getattr(config, "layer_decay", 1.0),  # fine-tuning only
        **more,
    )
    return get_trainer(key, build, strategy, options, config.precision, config.seed)


def train(trainer, batches, events, config, folder, *, name, show, began=None, **callbacks):
    """Train to the last step, from the run's newest checkpoint if it has one.

    Args:
      trainer: of `make_trainer`, its schedule set.
      batches, events: of `loop.train`.
      config: PretrainConfig or FinetuneConfig.
      folder: RunFolder.
      name: text at the left of the progress line.
      show: whether to show it.
      began: `started` of `Progress`.
      **callbacks: evaluate and when_reached of `loop.train`.

    Returns: (TrainingState at the end, seconds that earlier processes worked on the run).
    Raises:
      UserError: the checkpoint is of another model; or processes differ in checkpoints, options or
        data; or one of them ended.
    """
    strategy = trainer.strategy
    if not strategies.same_everywhere(strategy, folder.digest()):
        raise UserError(folder.other_process())
    folder.write_versions(config.seed, strategies.devices(strategy))
    checkpoints = Checkpoints(folder.checkpoints, config.keep_checkpoints)
    state = loop.restore(trainer, checkpoints, shared_prefix.of(config))
    if not strategies.same_everywhere(strategy, state.step):
        raise UserError("the processes of this run see different checkpoints; share the workdir")
    folder.forget_metrics_after(state.step)
    seconds_before = state.seconds
    show = show and folder.write
    with (
        Progress(folder, state.step, events.last_step, show, name, began) as progress,
        strategies.explained(strategy),
    ):
        if state.step:
            progress.say(f"continues from step {state.step}")
        if events.eval_every > events.last_step:
            progress.say(
                f"eval_every={events.eval_every} is more than this run's {events.last_step} steps: "
                "it is evaluated once, at its end"
            )
        write = folder.write
        loop.train(trainer, batches, events, checkpoints, progress, state, write=write, **callbacks)
    return state, seconds_before


def get_trainer(key, build, strategy, options, precision, seed):
    """Return a Trainer; reuse that of an earlier run in this process if its compiled steps are the
    same.

    The last trainer is kept, and as many earlier ones as fit into memory: each holds a model and
    its optimiser, three times the weights.

    Args:
      key: hashable; names the model that `build` makes (sizes, head).
      build, strategy, options, precision, seed: of `TrainerState`.

    Returns: the Trainer, with fresh weights, at step 0.
    """
    key = (key, options, precision, id(strategy))
    if key in _trainers:
        _trainers.move_to_end(key)
        trainer = _trainers[key]
        trainer.reset(build, seed)
        return trainer
    trainer = Trainer(build, strategy, options, precision, seed)
    _trainers[key] = trainer
    while len(_trainers) > 1 and sum(t.bytes for t in _trainers.values()) > _KEPT_BYTES:
        _trainers.popitem(last=False)
    return trainer


def check_batch_size(batch_size, strategy, accumulation):
    """Raise UserError unless the batch divides into replicas and micro-batches."""
    parts = strategy.num_replicas_in_sync * accumulation
    if batch_size % parts:
        raise UserError(
            f"train_batch_size is {batch_size}, not a multiple of {parts} "
            f"({strategy.num_replicas_in_sync} replicas x {accumulation} micro-batches)"
        )
