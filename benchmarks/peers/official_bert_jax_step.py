"""This project's step on JAX: `JaxTrainer`'s own loop, batches from the host."""

import itertools
import os

os.environ["KERAS_BACKEND"] = "jax"

from turns import arguments, random_batch, sizes, take_turns

from experiments.training import jax_distribution
from experiments.training.jax_trainer import JaxTrainer
from experiments.training.trainer_state import StepOptions
from official_bert import BertPretrainer, named_config

AT_ONCE = 16  # steps of one compiled call

(layers, width, heads, batch, length, predictions), _, precision = arguments()
config = named_config("base", **sizes(layers, width, heads))
trainer = JaxTrainer(
    lambda seed: BertPretrainer(config, seed=seed),
    jax_distribution.get_strategy("one_device"),
    StepOptions(),
    "mixed_bfloat16" if precision == "bfloat16" else "float32",
)
trainer.set_schedule(1e-4, 10_000, 1_000_000)
batches = itertools.repeat(random_batch(batch, length, predictions))
take_turns(lambda: float(trainer.train_from(batches, AT_ONCE)["loss"][-1]), AT_ONCE)
