"""Runs the pipeline's tasks: here, in local processes, or (data_prep.jobs.beam) on a cluster.

A task is a function of one dictionary that writes files and, last of all, a small JSON summary at
task["summary"]. The summary is the sign that the task is done: a run that was killed continues with
the tasks that have none. The tasks of one step depend neither on one another nor on the order of
work, so results have the same bytes whatever runs them. A summary may name files that no other task
needs as "used_up"; they are removed once it is written.
"""

import concurrent.futures
import contextlib
import functools
import os
from collections.abc import Callable

from data_prep.jobs import checked_json, storage
from data_prep.jobs.processes import Processes, available_cores
from data_prep.jobs.progress import progress_bar


def task(output: str, **more) -> dict:
    """Return a task whose output files begin with `output`; its summary lies beside them."""
    return {**more, "output": output, "summary": f"{output}.summary"}


def run_task(function: Callable[[dict], dict], task: dict) -> None:
    """Run one task, mark it as done and remove what it used up.

    A task that is done already is not run: clusters repeat work whose end they missed.
    """
    if storage.exists(task["summary"]):
        return
    summary = function(task)
    used_up = summary.pop("used_up", [])
    checked_json.write(task["summary"], summary)
    storage.remove_all(used_up)


def missing_tasks(tasks: list[dict]) -> list[dict]:
    """Return the tasks that are not done yet."""
    folders = {os.path.dirname(task["summary"]) for task in tasks}
    done = {folder: set(storage.list_folder(folder)) for folder in folders}
    return [
        task
        for task in tasks
        if os.path.basename(task["summary"]) not in done[os.path.dirname(task["summary"])]
    ]


def summaries(tasks: list[dict]) -> list[dict]:
    """Read the summaries of finished tasks, side by side, since remote storage answers slowly."""
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        return list(pool.map(checked_json.read, (task["summary"] for task in tasks)))


class LocalWorkers(contextlib.AbstractContextManager):
    """Runs tasks in this process (one worker) or in processes of its own.

    Args:
      num_workers: number of processes; 0: one for each core.
      progress: shows a bar on stderr.
    """

    def __init__(self, num_workers: int = 0, progress: bool = True):
        self.num_workers = num_workers or available_cores()
        self.progress = progress
        self._processes = Processes(self.num_workers)

    def __exit__(self, *error):
        self._processes.__exit__(*error)

    def run(self, function: Callable[[dict], dict], tasks: list[dict], title: str) -> list[dict]:
        """Run the tasks that have no summary yet; return the summaries of all, in their order.

        Raises:
          UserError: from a task, or when a worker process died.
        """
        missing = missing_tasks(tasks)
        run = functools.partial(run_task, function)
        if len(missing) > 1:
            self._processes.start(run)  # before the bar, which has a thread of its own
            results = self._processes.map(run, missing, in_order=False)
        else:
            results = map(run, missing)
        done = len(tasks) - len(missing)
        with progress_bar(self.progress, desc=title, total=len(tasks), initial=done) as bar:
            for _ in results:
                bar.update()
        return summaries(tasks)
