"""Parts of training that differ between Keras' backends, chosen by `keras.backend.backend()`.

Loop, checkpoints, run folders, batches of tasks and evaluation are shared. A backend has a
`Trainer`, and a module `strategies` of devices and of the batches that they get.
"""

import keras

from official_bert.common.errors import UserError

if keras.backend.backend() == "tensorflow":
    from experiments.training.step import strategies
    from experiments.training.step.trainer import Trainer
elif keras.backend.backend() == "jax":
    from experiments.training.step import jax_strategies as strategies
    from experiments.training.step.jax_trainer import JaxTrainer as Trainer
else:
    raise UserError(
        f"experiments train with KERAS_BACKEND=tensorflow or jax, not {keras.backend.backend()}, "
        "where a model of `official_bert.load` has compile and fit (docs/library.md)"
    )

__all__ = ["Trainer", "strategies"]
