"""Devices of training on JAX: one, or all of this machine, each with its rows of a batch.

It has the functions of `strategies`, which is for TensorFlow. A step is written for the whole
batch, and XLA divides it: weights are on every device, rows are split, sums over the batch become
sums over devices. So any number of devices draws the same dropout masks and takes the same step,
but for rounding.

Records may lie on the devices as arrays (`DeviceBatches`): the host then only says which rows a
step reads. On one GPU a small model takes more sequences a second than a host can parse and copy.
The batches are those of `numpy_batches`, bit for bit, the masks of dynamic masking too.

With `shard=weights` each device keeps its part of every matrix and of what the optimiser keeps for
it (as ZeRO, Rajbhandari et al. 2020, and FSDP do): a step gathers the weights, and each device sums
and applies the gradient of its part.
"""

import collections
import contextlib
import dataclasses
import functools
import itertools
import math
import os

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from data_prep.pretraining.reading import jax_masking, philox, record_sets
from data_prep.pretraining.reading.dynamic_masking import MaskingRules
from data_prep.pretraining.reading.numpy_batches import numpy_batches, reading_order
from experiments.training.step.device_choices import Memory
from official_bert.backend import fused_attention
from official_bert.common.errors import UserError


@dataclasses.dataclass(frozen=True, eq=False)
class Devices:
    """The devices that take steps together, in place of TensorFlow's strategy."""

    mesh: Mesh
    shard: str = ""  # of config.SHARD

    @property
    def num_replicas_in_sync(self):
        return self.mesh.size

    def scope(self):
        return contextlib.nullcontext()

    def computing(self):
        """Tell the attention kernels how batches are divided, while a block is traced."""
        return fused_attention.divided(self.mesh, "rows")

    @property
    def everywhere(self):
        """The sharding of arrays that are whole on every device."""
        return NamedSharding(self.mesh, PartitionSpec())

    def rows(self, axis=0):
        """Return the sharding of arrays whose rows are divided."""
        return NamedSharding(self.mesh, PartitionSpec(*[None] * axis, "rows"))

    def at_rest(self, value):
        """Return the sharding of a variable's value between steps.

        The longest axis that divides is divided; vectors and numbers are whole on every device."""
        axes = [i for i, size in enumerate(value.shape) if size % self.num_replicas_in_sync == 0]
        if not self.shard or not axes or len(value.shape) < 2:
            return self.everywhere
        return self.rows(max(axes, key=lambda axis: value.shape[axis]))

    def check(self, variables):
        """Check that the weights can be divided.

        Raises:
          UserError: most of them would be whole on every device.
        """
        divided = sum(math.prod(v.shape) for v in variables if "rows" in self.at_rest(v).spec)
        share = divided / sum(math.prod(v.shape) for v in variables)
        if self.shard and share < 0.5:
            raise UserError(
                f"shard={self.shard}: {share:.0%} of the weights are in matrices with a side that "
                f"divides by {self.num_replicas_in_sync} devices, the others would be whole on "
                "each; show JAX another number of devices (CUDA_VISIBLE_DEVICES), or leave shard "
                "out"
            )

    def gathered(self, values):
        """Return values as a step reads them: whole on every device, with gradients divided as at
        rest."""
        return [self._gathered(x) for x in values] if self.shard else values

    def _gathered(self, value):
        divided = self.at_rest(value)

        @jax.custom_vjp
        def gather(x):
            return lax.with_sharding_constraint(x, self.everywhere)

        gather.defvjp(
            lambda x: (gather(x), None),
            lambda _, gradient: (lax.with_sharding_constraint(gradient, divided),),
        )
        return gather(value)


@functools.cache
def get_strategy(name, shard=""):
    """Return the Devices of the fields `distribute` and `shard`.

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
    devices = devices[:1] if name == "one_device" else devices
    return Devices(Mesh(np.array(devices), ("rows",)), shard)


def strategy_of(config):
    """Return the Devices of a PretrainConfig or FinetuneConfig; UserError: see `get_strategy`."""
    return get_strategy(config.distribute, config.shard)


def is_chief(name):
    """Return whether this process writes the run's files."""
    get_strategy(name)
    return True


def devices(strategy):
    """Describe the devices for versions.json."""
    first = strategy.mesh.devices.flat[0]
    return {
        "strategy": "JAX",
        "replicas": strategy.num_replicas_in_sync,
        "kind": first.device_kind,
        "cpus": os.cpu_count(),
    }


def same_everywhere(strategy, number):
    """Return True: there is one process."""
    return True


def explained(strategy):
    """Return an empty context: there is no other process that could end."""
    return contextlib.nullcontext()


def memory(strategy):
    """Return the `device_choices.Memory` of one of a strategy's GPUs; None without a GPU."""
    first = strategy.mesh.devices.flat[0]
    limit = (first.memory_stats() or {}).get("bytes_limit") if first.platform == "gpu" else None
    return Memory(first.device_kind, limit, fused_attention.widths()) if limit else None


def make_deterministic():
    """Check that every run computes the same bits.

    Raises:
      UserError: on a GPU, unless XLA was told so before it started.
    """
    flag = "--xla_gpu_deterministic_ops=true"
    if jax.default_backend() == "gpu" and flag not in os.environ.get("XLA_FLAGS", ""):
        raise UserError(f'deterministic needs XLA_FLAGS="{flag}" in the environment')


def training_batches(records, batch_size, seed, start, strategy, on_device=False):
    """Return batches as TensorFlow's `training_batches` does; `on_device`: the devices hold the
    records and make the batches (`DeviceBatches`, whose UserErrors it raises)."""
    if on_device:
        return DeviceBatches(records, batch_size, seed, start, strategy)
    return numpy_batches(records, batch_size, seed=seed, epochs=None, start=start)


def stacked(batches, count, capacity, parts):
    """Return several batches as arrays [capacity, parts, rows / parts, ...]; zeros after `count`.

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


@dataclasses.dataclass(frozen=True)
class MakeBatch:
    """Makes a batch of the rows that `DeviceBatches` draws, inside a compiled step.

    Attributes:
      rules: of dynamic masking; None for records that are masked already.
    """

    rules: MaskingRules | None

    def __call__(self, arrays, drawn):
        """Return a dict of int32 and float32 [rows, ...], the fields of the records.

        Args:
          arrays: of `DeviceBatches`.
          drawn: its items: "rows" int32 [rows], "philox" uint32 [rows, 4], all rows alike.
        """
        batch = {name: _widened(x[drawn["rows"]]) for name, x in arrays.items()}
        return batch if self.rules is None else jax_masking.mask(
            batch, drawn["philox"][0], self.rules
        )  # fmt: skip


def in_parts(make, arrays, drawn):
    """Return the batch of drawn rows; both are in micro-batches, arrays [parts, rows / parts,
    ...]."""
    parts = len(drawn["rows"])
    whole = {name: x.reshape(-1, *x.shape[2:]) for name, x in drawn.items()}
    batch = make(arrays, whole)
    return {name: x.reshape(parts, -1, *x.shape[1:]) for name, x in batch.items()}


class DeviceBatches:
    """An endless iterator over the row numbers of batches, and the seeds of their masks.

    Args:
      records, batch_size, seed, start: of `jax_strategies.training_batches`.
      strategy: Devices; each has all records.

    Attributes:
      arrays: the records, dict of arrays [examples, ...] of the smallest types that hold them.
      make: MakeBatch.

    Raises:
      UserError: the records mask whole words, which only the host can do; or a record is damaged.
    """

    def __init__(self, records, batch_size, seed, start, strategy):
        rules = MaskingRules.of(records) if records.dynamic_masking else None
        if rules and rules.continues is not None:
            raise UserError(
                "records_on_device: masks of whole words are made on the host only; set "
                "--config.records_on_device=false"
            )
        self.make = MakeBatch(rules)
        self.arrays = jax.device_put(_all_rows(records), strategy.everywhere)
        self._rows = _rows_in_order(records, seed, start)
        self._size, self._seed, self._first = batch_size, seed, start

    def __iter__(self):
        return self

    def __next__(self):
        rows = np.fromiter(itertools.islice(self._rows, self._size), np.int32, self._size)
        state = philox.state((self._seed % 2**62, self._first))
        self._first += self._size
        return {"rows": rows, "philox": np.tile(state, (self._size, 1))}


def _rows_in_order(records, seed, start):
    """Return indices into the arrays, in reading order."""
    begin = np.cumsum([0, *records.counts])
    position, _ = records.beginning(start, seed, True, None)
    for _, shard, index, order in reading_order(records, seed, True, None, position):
        yield from begin[shard] + index * record_sets.WINDOW + order


def _all_rows(records):
    """Return a dict of arrays [examples, ...], in the order of the files."""
    read = numpy_batches(records, 4096, shuffle=False, drop_remainder=False, masked=False)
    parts = collections.defaultdict(list)
    for batch in read:
        for name, x in batch.items():
            parts[name].append(_narrowed(x))
    return {name: np.concatenate(found) for name, found in parts.items()}


def _narrowed(x):
    """Return integers in the smallest type that holds the largest, ids in uint16."""
    return x.astype(np.min_scalar_type(x.max(initial=0))) if x.dtype.kind == "i" else x


def _widened(x):
    return x.astype(jnp.int32) if jnp.issubdtype(x.dtype, jnp.integer) else x
