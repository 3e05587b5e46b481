"""Work in several processes, with the same results as in one."""

import collections
import concurrent.futures
import contextlib
import multiprocessing
import os
import pickle
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterable, Iterator

from official_bert.common.errors import UserError


def available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_WITH_THREADS = {"tensorflow", "jax", "torch"}
_hiding_script = threading.Lock()


class WorkerDied(UserError):
    """A process ended in the middle of its work, or could not start."""


class Processes(contextlib.AbstractContextManager):
    """Processes that call a function; they start with the first work and end with the block.

    Args:
      number: number of processes; 1: the work is done in this process.
      prepare: function that each new process calls first.
    """

    def __init__(self, number: int, prepare: Callable[[], None] | None = None):
        self.number = number
        self._prepare = prepare
        self._pool = None

    def __exit__(self, kind, error, trace):
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def start(self, *needed) -> None:
        """Start the processes now, before this process has threads, not with the first work.

        Args:
          *needed: objects that they will be given.

        Raises:
          UserError: this process is itself a starting worker that runs the user's script.
        """
        if self.number > 1 and self._pool is None:
            if getattr(multiprocessing.current_process(), "_inheriting", False):
                raise UserError(
                    "a worker process runs this script from its beginning, for what it works with "
                    'is defined here; put all but definitions below if __name__ == "__main__":'
                )
            self._pool = concurrent.futures.ProcessPoolExecutor(
                self.number,
                mp_context=_context(self._prepare, *needed),
                initializer=_begin,
                initargs=(self._prepare,),
            )
            self._pool.submit(os.getpid)  # the first task starts the processes

    def map(self, function: Callable, items: Iterable, in_order: bool = True) -> Iterator:
        """Yield function(item) of every item, in order or as results come.

        At most four items a process are under way, so neither items nor results pile up.

        Raises:
          WorkerDied: a process died. Errors of `function` pass through.
        """
        if self.number == 1:
            yield from map(function, items)
            return
        self.start(function)
        waiting = collections.deque()
        try:
            for item in items:
                waiting.append(self._pool.submit(function, item))
                if len(waiting) >= 4 * self.number:
                    yield _next(waiting, in_order)
            while waiting:
                yield _next(waiting, in_order)
        except concurrent.futures.process.BrokenProcessPool:
            raise WorkerDied(
                "a worker process died (out of memory?); run the same command again to continue, "
                "perhaps with a smaller --num_workers"
            ) from None
        finally:
            for future in waiting:
                future.cancel()


def _next(waiting, in_order):
    if not in_order:
        done, _ = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED)
        first = next(future for future in waiting if future in done)
        waiting.remove(first)
        waiting.appendleft(first)
    return waiting.popleft().result()


def _context(*needed):
    """Return the context that starts processes which get these objects.

    Forked processes can work at once, but a fork of a process with threads, as backends have, may
    hang.
    """
    threads = threading.active_count() > 1 or _WITH_THREADS & sys.modules.keys()
    if sys.platform == "linux" and not threads:
        return multiprocessing.get_context("fork")
    of_script = b"__main__" in pickle.dumps(needed)
    return multiprocessing.get_context("spawn") if of_script else _WithoutScript()


class _WithoutScript(multiprocessing.context.SpawnContext):
    """Starts processes that do not run this process's script.

    A script without a main guard would do all its work again and start processes of its own.
    """

    class Process(multiprocessing.context.SpawnProcess):
        @staticmethod
        def _Popen(process_obj):
            with _hiding_script:
                script, sys.modules["__main__"] = sys.modules["__main__"], types.ModuleType("none")
                try:
                    return multiprocessing.context.SpawnProcess._Popen(process_obj)
                finally:
                    sys.modules["__main__"] = script


def _begin(prepare):
    threading.Thread(target=_end_with_parent, daemon=True).start()
    warnings.simplefilter("ignore")  # the parent process has shown them
    if prepare is not None:
        prepare()


def _end_with_parent():
    """End this worker when its parent was killed, since nothing else would stop it."""
    multiprocessing.parent_process().join()
    os._exit(1)
