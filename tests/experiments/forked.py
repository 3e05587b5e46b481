"""Processes that begin with TensorFlow imported and nothing run with it.

They are forked from a server that has imported it once: an import costs a new process 8 seconds.
"""

import contextlib
import json
import multiprocessing
import os
import socket
from pathlib import Path

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(
    ["experiments.training.pretraining.pretrain_run", "experiments.pretrain"]
)
# Python 3.11's server does not take over sys.path, so modules to preload are found like this.
_FOLDERS = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]
os.environ["PYTHONPATH"] = os.pathsep.join([*_FOLDERS, os.environ.get("PYTHONPATH", "")])


def start(function, *arguments):
    """Return a started `multiprocessing.Process` that calls the function of a module."""
    process = _processes.Process(target=function, args=arguments)
    process.start()
    return process


def exit_code(process, seconds: float = 1800) -> int:
    """Wait the exit code, negative for a signal."""
    process.join(seconds)
    assert process.exitcode is not None, "the process hangs"
    return process.exitcode


@contextlib.contextmanager
def cluster(size):
    """Return the environment of each worker of a cluster on this machine.

    Sockets that do not listen hold the ports, and share them with the workers alone.
    """
    dual = socket.has_dualstack_ipv6()  # as the workers' own
    with contextlib.ExitStack() as stack:
        ports = []
        for _ in range(size):
            held = stack.enter_context(socket.socket(socket.AF_INET6 if dual else socket.AF_INET))
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            if dual:
                held.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            held.bind(("", 0))
            ports.append(held.getsockname()[1])
        told = {"cluster": {"worker": [f"localhost:{port}" for port in ports]}}
        yield [
            {
                "TF_CONFIG": json.dumps({**told, "task": {"type": "worker", "index": index}}),
                "TF_GRPC_REUSE_PORT": "1",
            }
            for index in range(size)
        ]
