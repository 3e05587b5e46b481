"""Common parts of pre-training and fine-tuning: a trainer, and its training to the last step.

A session is the part of a run that one process does. It begins where the run's newest checkpoint
ends.
"""

from experiments.training import loop
from experiments.training.backend import distribution
from experiments.training.checkpointing import Checkpoints
from experiments.training.progress import Progress
from experiments.training.trainer_state import StepOptions
from experiments.training.trainers import get_trainer
from official_bert.common.errors import UserError


def make_trainer(config, key, build, strategy, train_metrics=False, unfreeze_every=0):
    """The Trainer that a configuration asks for.

    Args:
      config: PretrainConfig or FinetuneConfig.
      key, build, strategy: of `get_trainer`.
      train_metrics, unfreeze_every: of StepOptions.
    """
    if config.deterministic:
        distribution.make_deterministic()
    options = StepOptions(
        weight_decay=config.weight_decay,
        beta_2=config.adam_beta_2,
        epsilon=config.adam_epsilon,
        clip_norm=config.clip_norm,
        accumulation=config.gradient_accumulation,
        jit_compile=config.jit_compile,
        fixed_shapes=config.distribute == "tpu",
        train_metrics=train_metrics,
        optimizer=getattr(config, "optimizer", "adamw"),  # pre-training only
        bias_correction=config.bias_correction,
        layer_decay=getattr(config, "layer_decay", 1.0),  # fine-tuning only
        schedule=getattr(config, "schedule", "linear"),  # fine-tuning only
        unfreeze_every=unfreeze_every,
    )
    return get_trainer(key, build, strategy, options, config.precision, config.seed)


def train(trainer, feed, plan, config, folder, *, name, show, began=None, **events):
    """Trains to the end of the plan, from the run's newest checkpoint if it has one.

    Args:
      trainer: of `make_trainer`, its schedule set.
      feed, plan: of `loop.train`.
      config: PretrainConfig or FinetuneConfig.
      folder: RunFolder.
      name: what stands at the left of the progress line.
      show: whether to show it.
      began: `started` of `Progress`.
      **events: evaluate and when_reached of `loop.train`.

    Returns: (State at the end, seconds that earlier processes worked on the run).
    Raises:
      UserError: the checkpoint is of another model, or processes see different ones.
    """
    folder.write_versions(config.seed, distribution.devices(trainer.strategy))
    checkpoints = Checkpoints(folder.checkpoints, config.keep_checkpoints)
    state = loop.restore(trainer, checkpoints)
    if not distribution.same_everywhere(trainer.strategy, state.step):
        raise UserError("the processes of this run see different checkpoints; share the workdir")
    folder.forget_metrics_after(state.step)
    seconds_before = state.seconds
    show = show and folder.write
    with Progress(folder, state.step, plan.last_step, show, name, began) as progress:
        write = folder.write
        loop.train(trainer, feed, plan, checkpoints, progress, state, write=write, **events)
    return state, seconds_before
