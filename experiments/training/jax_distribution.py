"""Devices of training on JAX: one device, or all of this machine's, each with its rows of a batch.

What `distribution` is for TensorFlow. A step is written for the whole batch, and XLA divides it:
weights are on every device, rows are split, sums over the batch become sums over devices. So any
number of devices draws the same dropout masks and takes the same step, but for rounding.
"""

import contextlib
import dataclasses
import functools
import itertools
import os

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from data_prep.records import numpy_batches
from experiments.training.jax_records import DeviceBatches
from official_bert.common.errors import UserError


@dataclasses.dataclass(frozen=True, eq=False)
class Devices:
    """The devices that take steps together; what a tf.distribute strategy is for TensorFlow."""

    mesh: Mesh

    @property
    def num_replicas_in_sync(self):
        return self.mesh.size

    def scope(self):
        return contextlib.nullcontext()

    @property
    def everywhere(self):
        """The sharding of what every device has."""
        return NamedSharding(self.mesh, PartitionSpec())

    def rows(self, axis=0):
        """The sharding of arrays whose rows are divided."""
        return NamedSharding(self.mesh, PartitionSpec(*[None] * axis, "rows"))


@functools.cache
def get_strategy(name):
    """The Devices of a `distribute` field.

    Args:
      name: "one_device" (the first accelerator, or the CPU), "mirrored" (all of this machine),
        "tpu" (all cores of this machine's TPU).

    Raises:
      UserError: "multi_worker", or there is no TPU.
    """
    if name == "multi_worker":
        raise UserError("distribute=multi_worker is for KERAS_BACKEND=tensorflow; here: mirrored")
    devices = jax.local_devices()
    if name == "tpu" and devices[0].platform != "tpu":
        raise UserError(
            f"distribute=tpu found no TPU, JAX sees {devices[0].platform}; "
            "choose another distribute"
        )
    return Devices(Mesh(np.array(devices[:1] if name == "one_device" else devices), ("rows",)))


def is_chief(name):
    """Whether this process writes the run's files."""
    get_strategy(name)
    return True


def devices(strategy):
    """What versions.json says of the devices."""
    first = strategy.mesh.devices.flat[0]
    return {
        "strategy": "JAX",
        "replicas": strategy.num_replicas_in_sync,
        "kind": first.device_kind,
        "cpus": os.cpu_count(),
    }


def same_everywhere(strategy, number):
    """There is one process."""
    return True


def make_deterministic():
    """Asks for the same bits in every run.

    Raises:
      UserError: on a GPU, unless XLA was told so before it started.
    """
    flag = "--xla_gpu_deterministic_ops=true"
    if jax.default_backend() == "gpu" and flag not in os.environ.get("XLA_FLAGS", ""):
        raise UserError(f'deterministic needs XLA_FLAGS="{flag}" in the environment')


def training_batches(records, batch_size, seed, start, strategy, on_device=False):
    """An iterator over the batches of pre-training records, from the example `start` on, endless.

    Args:
      records: of `open_records`.
      batch_size: examples of a batch over all devices.
      seed: of their order and of dynamic masks.
      strategy: where the batches go.
      on_device: the devices hold the records and make the batches (`jax_records`).

    Raises:
      UserError: see `DeviceBatches`.
    """
    if on_device:
        return DeviceBatches(records, batch_size, seed, start, strategy)
    return numpy_batches(records, batch_size, seed=seed, epochs=None, start=start)


def stacked(batches, count, capacity, parts):
    """Several batches as arrays [capacity, parts, rows / parts, ...]; zeros after `count`.

    Args:
      batches: iterator of dicts of arrays [rows, ...].
      count: how many to take, at most `capacity`.
      parts: micro-batches of a step.
    """
    arrays = {}
    for index, batch in enumerate(itertools.islice(batches, count)):
        for name, x in batch.items():
            x = np.asarray(x).reshape(parts, -1, *np.shape(x)[1:])
            if name not in arrays:
                arrays[name] = np.zeros((capacity, *x.shape), x.dtype)
            arrays[name][index] = x
    return arrays
