"""Three steps of every model of `tiny_steps`."""

import hashlib
from pathlib import Path

import numpy as np
import tensorflow as tf
from tiny_steps import PREDICTIONS, ROWS, STEPS

from experiments.training.step.strategies import get_strategy
from experiments.training.step.trainer import Trainer
from experiments.training.step.trainer_state import StepOptions

PATH = Path(__file__).with_name("steps.json")


def taken(name: str) -> dict:
    """Return what the variables of a model are called, its weights and the losses of three steps.

    The steps are taken operation by operation: to compile them would take ten times as long.
    """
    trainer, batches = _begun(name)
    model = trainer.model
    found = {"variables": _variables(model), "initial": summary(model.get_weights())}
    tf.config.run_functions_eagerly(True)
    try:
        found["losses"] = [float(x) for x in trainer.train_from(batches, 3)["loss"]]
    finally:
        tf.config.run_functions_eagerly(False)
    return found | {"trained": summary(model.get_weights())}


def summary(arrays) -> list[float]:
    """Return the number of some arrays' numbers, their sum and one that depends on their order."""
    numbers = np.concatenate([np.ravel(array) for array in arrays]).astype(np.float64)
    order = np.cos(np.arange(len(numbers)))
    return [len(numbers), float(np.sum(np.abs(numbers))), float(np.sum(numbers * order))]


def _begun(name: str):
    build, batch, *options = STEPS[name]
    trainer = Trainer(build, get_strategy("one_device"), StepOptions(**dict(*options)), seed=3)
    trainer.set_schedule(1e-2, 1, 10)
    if "masked_lm_positions" in batch:
        places = np.broadcast_to(np.arange(PREDICTIONS, dtype=np.int32), (ROWS, PREDICTIONS))
        batch = {**batch, "masked_lm_positions": places}
    return trainer, iter(tf.data.Dataset.from_tensors(batch).repeat())


def _variables(model) -> str:
    names = [f"{variable.path} {tuple(variable.shape)}" for variable in model.weights]
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]
