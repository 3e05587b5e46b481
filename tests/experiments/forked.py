"""Processes that begin with TensorFlow imported and nothing run with it.

They are forked from a server that has imported it once: an import costs a new process 8 seconds.
"""

import multiprocessing
import os
from pathlib import Path

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["experiments.training.pretrain_run", "experiments.pretrain"])
# Python 3.11's server does not take over sys.path, so modules to preload are found like this.
_FOLDERS = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]
os.environ["PYTHONPATH"] = os.pathsep.join([*_FOLDERS, os.environ.get("PYTHONPATH", "")])


def start(function, *arguments):
    """A started `multiprocessing.Process` that calls the function of a module."""
    process = _processes.Process(target=function, args=arguments)
    process.start()
    return process


def exit_code(process, seconds: float = 600) -> int:
    """Waits; the exit code, negative for a signal."""
    process.join(seconds)
    assert process.exitcode is not None, "the process hangs"
    return process.exitcode
