"""This project's step on JAX: `JaxTrainer`'s own loop, batches from the host."""

import itertools
import os

# XLA would take three quarters of the GPU, which contestants share while they compile.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ["KERAS_BACKEND"] = "jax"

from turns import arguments, jax_trainer, random_batch, sizes, take_turns

from experiments.training.settings.flops import pretraining_step_flops
from experiments.training.step import device_choices, jax_strategies
from official_bert import named_config

shape, _, precision = arguments()
bert = named_config("base", **sizes(*shape[:3]))
# Steps of one compiled call, as a run chooses them.
at_once = 16
if jax_strategies.memory(jax_strategies.get_strategy("one_device")):
    flops = pretraining_step_flops(bert, ("masked_lm", "next_sentence"), *shape[3:])
    at_once = device_choices.steps_of_a_call(flops)
trainer = jax_trainer(shape, precision, steps_of_a_call=at_once)
trainer.set_schedule(1e-4, 10_000, 1_000_000)
batches = itertools.repeat(random_batch(*shape[3:]))


def peak():
    import jax

    return (jax.local_devices()[0].memory_stats() or {}).get("peak_bytes_in_use")


take_turns(lambda: float(trainer.train_from(batches, at_once)["loss"][-1]), at_once, peak)
