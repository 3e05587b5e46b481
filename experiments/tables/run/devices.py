"""The GPUs of a machine, and the share of its GPUs and cores that each worker gets."""

import os

from data_prep.jobs.processes import available_cores
from experiments.training.folder import provenance


def available_gpus() -> list[str]:
    """Return the NVIDIA GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them.

    The driver's tool lists them: TensorFlow would claim their memory for the process that asks.
    """
    found = provenance.gpus()
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is None or not found:
        return [str(index) for index in range(len(found))]
    return [name.strip() for name in chosen.split(",") if name.strip() not in ("", "-1")]


def default_workers() -> int:
    """Return the number of workers side by side: one a GPU where there are any, else one a core."""
    return len(available_gpus()) or available_cores()


def worker_environment(slot: int, workers: int, gpus: list[str]) -> dict[str, str]:
    """Return the environment of one of several workers: its threads and its GPUs.

    Args:
      slot: which worker, from 0.
      workers: how many run side by side.
      gpus: of the machine. They are dealt out in turn. Workers that outnumber them share GPUs,
        which works because each takes memory only as it needs it.
    """
    threads = str(max(1, available_cores() // workers))
    environment = {
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "TF_NUM_INTRAOP_THREADS": threads,
        "TF_NUM_INTEROP_THREADS": threads,
        "OMP_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        # By default glibc gives large tensors back to the system after every step, and the system
        # fills their pages with zeros anew: up to a quarter of a small model's time.
        "MALLOC_ARENA_MAX": "1",
        "MALLOC_MMAP_THRESHOLD_": str(1 << 32),
        "MALLOC_TRIM_THRESHOLD_": str(1 << 33),
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        **os.environ,  # what the user set wins, except for the choice of GPUs
    }
    if gpus:
        mine = gpus[slot::workers] or [gpus[slot % len(gpus)]]
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(mine)
    return environment
