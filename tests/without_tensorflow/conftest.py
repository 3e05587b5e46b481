"""Tests of the experiments on JAX; `make test-jax` runs them, in an environment without TensorFlow.

A process has one backend, so they are collected with KERAS_BACKEND=jax only. Beside them stand the
tests of any backend (models, heads, answers), which are those of tests/official_bert: the Makefile
names their files.
"""

import os
import sys
import tempfile

from tests.xla_flags import quick_compiler

if os.environ.get("KERAS_BACKEND") == "jax":
    sys.modules["tensorflow"] = None  # not to be used, even where it is installed
    # Eight devices, and little time spent on fast code: programs run for some steps only.
    os.environ["XLA_FLAGS"] = (
        "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0 "
        f"--xla_llvm_disable_expensive_passes=true {quick_compiler()}"
    )
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        # A program is compiled once: the workers and the processes that they start inherit this.
        cache = tempfile.TemporaryDirectory()
        os.environ["JAX_COMPILATION_CACHE_DIR"] = cache.name
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.5"
    collect_ignore_glob: list[str] = []
else:
    collect_ignore_glob = ["test_*.py"]
