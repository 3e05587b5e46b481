"""Devices of training: one device, several of one machine, several machines, or a TPU.

The training loop (`trainer`) is written once against `tf.distribute`. The differences between
strategies are here: making one, dividing a batch among replicas, and choosing the process that
writes files.
"""

import contextlib
import functools
import json
import os

import tensorflow as tf

from data_prep.records import pretraining_dataset
from official_bert.common.errors import UserError, first_line


@functools.cache
def get_strategy(name):
    """Return the strategy of a `distribute` field; it is made once, as TensorFlow requires of most.

    Args:
      name: "one_device" (the first GPU, or the CPU), "mirrored" (all GPUs of this machine, or its
        logical CPU devices where it has none), "multi_worker" (processes named by TF_CONFIG), "tpu"
        (the TPU named by TPU_NAME; "local" on a TPU VM).

    Raises:
      UserError: TF_CONFIG is missing or wrong, or there is no TPU.
    """
    if name == "one_device":
        return tf.distribute.get_strategy()
    if name == "mirrored":
        gpus = tf.config.list_logical_devices("GPU")
        devices = gpus or tf.config.list_logical_devices("CPU")
        return tf.distribute.MirroredStrategy([device.name for device in devices])
    if name == "multi_worker":
        _check_tf_config()
        try:
            return tf.distribute.MultiWorkerMirroredStrategy()
        except (ValueError, TypeError, tf.errors.InvalidArgumentError) as error:
            raise _wrong_tf_config(str(error)) from error
    if name == "tpu":
        return _tpu_strategy()
    raise UserError(f'distribute is "{name}"; valid: one_device, mirrored, multi_worker, tpu')


def strategy_of(config):
    """Return the strategy of a PretrainConfig or FinetuneConfig.

    Raises:
      UserError: see `get_strategy`; or `shard` is set, which needs JAX.
    """
    if config.shard:
        raise UserError(f"shard={config.shard} is for KERAS_BACKEND=jax; leave it out here")
    return get_strategy(config.distribute)


def is_default(strategy):
    """Return whether a step is called directly, without `strategy.run`.

    One replica is not the test: the single core of a small TPU is reached only through its
    strategy.
    """
    return strategy is get_strategy("one_device")


def run(strategy, function, *arguments):
    """Return `function(*arguments)` on every replica; see `is_default`."""
    if is_default(strategy):
        return function(*arguments)
    return strategy.run(function, args=arguments)


def is_chief(name):
    """Return whether this process writes the run's files; in a `multi_worker` run one process
    does."""
    if name != "multi_worker":
        return True
    config = _check_tf_config()
    first = "chief" if "chief" in config["cluster"] else "worker"
    return (config["task"]["type"], config["task"]["index"]) == (first, 0)


def devices(strategy):
    """Describe the devices for versions.json."""
    return {
        "strategy": type(strategy).__name__,
        "replicas": strategy.num_replicas_in_sync,
        "kind": "GPU" if tf.config.list_logical_devices("GPU") else "CPU or TPU",
        "cpus": os.cpu_count(),
    }


def memory(strategy):
    """Return None: only runs on JAX make choices by the GPU's memory."""


def make_deterministic():
    """Make every run compute the same bits, on a GPU too."""
    tf.config.experimental.enable_op_determinism()


def training_batches(records, batch_size, seed, start, strategy, on_device=False):
    """Return an endless iterator over batches of pre-training records, from the example `start` on.

    Args:
      records: of `open_records`.
      batch_size: examples of a batch over all replicas.
      seed: of their order and of dynamic masks.
      strategy: where the batches go.
      on_device: for JAX; here the batches are the same.
    """
    dataset = pretraining_dataset(records, batch_size, seed=seed, epochs=None, start=start)
    return distribute_dataset(dataset, strategy)


def distribute_dataset(dataset, strategy):
    """Return an iterator over a dataset of global batches that gives each replica its rows.

    Every process reads all batches and keeps its own rows: parsing runs at tens of thousands of
    sequences a second of one core, and the order stays that of one device.

    Args:
      dataset: batch dicts of tensors [global batch, ...], the same in all processes.
      strategy: where they go.
    """
    if is_default(strategy):
        return iter(dataset.prefetch(2))
    replicas = strategy.num_replicas_in_sync

    def rows_of_each_replica(context):
        local = replicas // context.num_input_pipelines
        first = local * context.input_pipeline_id

        def divide(batch):
            return {
                name: tf.reshape(x, [replicas, x.shape[0] // replicas, *x.shape[1:]])[
                    first : first + local
                ]
                for name, x in batch.items()
            }

        # A replica takes one element after another, so one global batch becomes `local` elements.
        return dataset.map(divide).unbatch().prefetch(2 * local)

    return iter(strategy.distribute_datasets_from_function(rows_of_each_replica))


def distribute_batch(batch, strategy, sharing=None):
    """Return one batch of numpy arrays as the per-replica values that `strategy.run` takes.

    Args:
      batch: dict of arrays [rows, ...], the same in all processes.
      strategy: where they go.
      sharing: how many replicas share the rows, by default all. With `local_replicas(strategy)` the
        replicas of each process share all rows, so that each process has all results and waits for
        no other.
    """
    if is_default(strategy):
        return {name: tf.convert_to_tensor(x) for name, x in batch.items()}
    sharing = sharing or strategy.num_replicas_in_sync

    def rows(x):
        def of_replica(context):
            size = len(x) // sharing
            start = (context.replica_id_in_sync_group % sharing) * size
            return tf.convert_to_tensor(x[start : start + size])

        return strategy.experimental_distribute_values_from_function(of_replica)

    return {name: rows(x) for name, x in batch.items()}


def local_replicas(strategy):
    """Return the number of replicas in this process."""
    return strategy.num_replicas_in_sync // _num_processes(strategy)


def same_everywhere(strategy, number):
    """Return whether `number` is equal in all processes; waits for all of them.

    Args:
      number: int below 2**24, which float32 holds exactly; not every collective has integers.

    Raises:
      UserError: as `explained`.
    """
    if _num_processes(strategy) == 1:
        return True

    with explained(strategy):
        numbers = _gathered(strategy, number)
    return bool((numbers == numbers[0]).all())  # a sum of squares would round in float32


@contextlib.contextmanager
def explained(strategy):
    """Explain the end of another process during the steps of this block.

    At the end of the block the processes wait for each other.

    They wait because a process that ends also ends its server, from which others may still fetch
    their last result.

    Raises:
      UserError: another one ended, or cannot be reached.
    """
    if _num_processes(strategy) == 1:
        yield
        return
    try:
        yield
    except (tf.errors.UnavailableError, tf.errors.AbortedError) as error:
        raise UserError(
            "another process of this run ended, or cannot be reached; what it said tells why. "
            "Start all of them again with the same commands: they go on from the last checkpoint"
        ) from error
    with contextlib.suppress(tf.errors.OpError):  # each process has all results by then
        _gathered(strategy, 0)


def _gathered(strategy, number):
    """Return float32 [replicas]: the numbers of all processes."""

    @tf.function(autograph=False)
    def of_all_replicas(value):
        def of_replica(value):
            # An identity has a device, which an argument lacks and the collective asks for.
            context = tf.distribute.get_replica_context()
            return context.all_gather(tf.identity(value), axis=0)

        return strategy.run(of_replica, args=(value,))

    gathered = of_all_replicas(tf.constant([number], tf.float32))
    return strategy.experimental_local_results(gathered)[0].numpy()


def _num_processes(strategy):
    is_multi_worker = isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
    return getattr(strategy.extended, "_num_workers", 1) if is_multi_worker else 1


def _check_tf_config():
    try:
        config = json.loads(os.environ.get("TF_CONFIG", ""))
        config["cluster"]["worker"], config["task"]["type"], config["task"]["index"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _wrong_tf_config() from error
    return config


def _wrong_tf_config(reason=""):
    example = (
        '{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 0}}'
    )
    return UserError(
        "distribute=multi_worker needs TF_CONFIG in the environment of each process, for example "
        f"{example}; it is {os.environ.get('TF_CONFIG') or 'not set'}{reason and f' ({reason})'}"
    )


def _tpu_strategy():
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(
            tpu=os.environ.get("TPU_NAME", "local")
        )
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (ValueError, RuntimeError, tf.errors.OpError) as error:
        raise UserError(
            f"distribute=tpu found no TPU ({first_line(error)}); "
            "set TPU_NAME, or choose another distribute"
        ) from error
    return tf.distribute.TPUStrategy(resolver)
