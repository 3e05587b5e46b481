"""Runs the pipeline's tasks: here, in local processes, or (data_prep.jobs.beam) on a cluster.

A task is a function of one dictionary that writes files and, last of all, a small JSON summary at
task["summary"]. The summary is the sign that the task is done: a run that was killed goes on with
the tasks that have none. Tasks never depend on one another or on the order of work, so the results
have the same bytes whatever runs them.
"""

import concurrent.futures
import contextlib
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable

from data_prep.jobs import storage
from official_bert.errors import UserError


def available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_task(function: Callable[[dict], dict], task: dict) -> None:
    """Runs one task and marks it as done."""
    storage.write_json(task["summary"], function(task))


def missing_tasks(tasks: list[dict]) -> list[dict]:
    """The tasks that are not done yet."""
    folders = {os.path.dirname(task["summary"]) for task in tasks}
    done = {folder: set(storage.list_folder(folder)) for folder in folders}
    return [
        task
        for task in tasks
        if os.path.basename(task["summary"]) not in done[os.path.dirname(task["summary"])]
    ]


def summaries(tasks: list[dict]) -> list[dict]:
    """What the finished tasks returned; read side by side, for remote files answer slowly."""
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        return list(pool.map(storage.read_json, (task["summary"] for task in tasks)))


class LocalWorkers:
    """Runs tasks in this process (one worker) or in processes of its own.

    Args:
      num_workers: 0 for as many as there are cores.
      progress: shows a bar on stderr.
    """

    def __init__(self, num_workers: int = 0, progress: bool = True):
        self.num_workers = num_workers or available_cores()
        self.progress = progress
        self._pool = None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def run(self, function: Callable[[dict], dict], tasks: list[dict], title: str) -> list[dict]:
        """Runs the tasks that have no summary yet; returns the summaries of all, in their order.

        Raises:
          UserError: from a task, or when a worker process died.
        """
        missing = missing_tasks(tasks)
        alone = self.num_workers == 1 or len(missing) < 2
        if not alone:
            self._start()  # before the bar, which has a thread of its own
        with self._bar(title, len(tasks), len(tasks) - len(missing)) as bar:
            if alone:
                for task in missing:
                    run_task(function, task)
                    bar.update()
            else:
                self._run_parallel(function, missing, bar)
        return summaries(tasks)

    def _start(self):
        if self._pool is None:
            self._pool = concurrent.futures.ProcessPoolExecutor(
                self.num_workers,
                mp_context=multiprocessing.get_context(_start_method()),
                initializer=_end_with_parent,
            )
            self._pool.submit(os.getpid)  # the first task starts the processes

    def _run_parallel(self, function, tasks, bar):
        futures = [self._pool.submit(run_task, function, task) for task in tasks]
        try:
            for future in concurrent.futures.as_completed(futures):
                future.result()
                bar.update()
        except concurrent.futures.process.BrokenProcessPool:
            raise UserError(
                "a worker process died (out of memory?); run the same command again to continue, "
                "perhaps with a smaller --num_workers"
            ) from None
        finally:
            for future in futures:
                future.cancel()

    def _bar(self, title, total, initial):
        if not self.progress:
            return _NoBar()
        from tqdm import tqdm

        return tqdm(desc=title, total=total, initial=initial)


def _start_method() -> str:
    """Forked processes work at once; but of a process that has threads a copy may hang."""
    threads = threading.active_count() > 1 or "tensorflow" in sys.modules
    return "fork" if sys.platform == "linux" and not threads else "spawn"


def _end_with_parent():
    """Ends this worker when the process that started it was killed: nobody would ever stop it."""

    def watch():
        multiprocessing.parent_process().join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class _NoBar(contextlib.nullcontext):
    def __enter__(self):
        return self

    def update(self):
        pass
