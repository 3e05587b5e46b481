"""This project's step on JAX: `JaxTrainer`'s own loop, batches from the host."""

import itertools
import os

# XLA would take three quarters of the GPU, which contestants share while they compile.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

from turns import arguments, jax_trainer, random_batch, take_turns

AT_ONCE = 16  # steps of one compiled call

shape, _, precision = arguments()
trainer = jax_trainer(shape, precision)
trainer.set_schedule(1e-4, 10_000, 1_000_000)
batches = itertools.repeat(random_batch(*shape[3:]))


def peak():
    import jax

    return (jax.local_devices()[0].memory_stats() or {}).get("peak_bytes_in_use")


take_turns(lambda: float(trainer.train_from(batches, AT_ONCE)["loss"][-1]), AT_ONCE, peak)
