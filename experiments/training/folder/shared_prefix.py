"""The trunk: a pre-training at a constant rate that other runs share as their first steps.

The rate warms up, is stable and decays. A run that names a trunk takes, step by step, the same
steps as without it: rate, records, masks and dropout are functions of the step. It only skips those
that the trunk has taken. From one trunk models of several lengths branch off, each with its own
decay.
"""

import dataclasses
from pathlib import Path

from experiments.training.folder.checkpointing import Checkpoints
from experiments.training.folder.run_folder import RESULTS, read_config
from experiments.training.settings.config_values import differences, result_dict
from official_bert.common.errors import UserError


def of(config):
    """Return the Checkpoints of the trunk of a configuration; None without one."""
    folder = getattr(config, "trunk", "")
    return Checkpoints(Path(folder) / "checkpoints") if folder else None


def file(config) -> str:
    """Return the file that describes the state at the end of a trunk; "" without a trunk."""
    checkpoints = of(config)
    return str(checkpoints.newest_state()) if checkpoints else ""


def check(config, inputs) -> None:
    """Raise UserError unless the trunk of a PretrainConfig is finished and took its first steps.

    Args:
      config: PretrainConfig.
      inputs: its `inputs.Inputs`."""
    what = f"--config.trunk={config.trunk}"
    trunk, read = read_config(config.trunk, type(config), "give a pre-training's folder")
    if not (Path(config.trunk) / RESULTS).exists():
        raise UserError(f"{what} is not finished; give its command again first")
    found = {name: one.digest for name, one in inputs.found.items()}
    others = [
        f"{name}: other data"
        for name, one in read.items()
        if name != "trunk" and one.digest != found.get(name, one.digest)
    ]
    check_steps(config, trunk, what, others)


def check_steps(config, trunk, what, others=()) -> None:
    """Raise UserError unless a PretrainConfig begins with all steps of its trunk.

    Args:
      trunk: PretrainConfig of the trunk.
      what: begins the message.
      others: further lines on how the two runs differ."""
    constant = trunk.num_train_steps
    if trunk.decay_steps or constant > config.num_train_steps - config.decay_steps:
        raise UserError(
            f"{what}: its rate after {constant} steps is not this run's; a trunk has "
            "num_decay_steps=0 and ends before the decay of the run that goes on from it begins"
        )
    ours = dataclasses.replace(
        config,
        phases=_until(config.phases, constant),
        snapshots=(),
        num_decay_steps=0,
        num_warmup_steps=config.warmup_steps,
        warmup_proportion=trunk.warmup_proportion,
    )
    trunk = dataclasses.replace(trunk, num_warmup_steps=trunk.warmup_steps)
    if lines := [*differences(result_dict(trunk), result_dict(ours)), *others]:
        raise UserError(f"{what} is of another run (there -> here): {'; '.join(lines)}")


def _until(phases, step):
    """Return the phases up to a step."""
    kept = []
    for phase in phases:
        if step > 0:
            kept.append(
                dataclasses.replace(phase, num_train_steps=min(step, phase.num_train_steps))
            )
        step -= phase.num_train_steps
    return tuple(kept)
