"""The processes that run the cells of a grid side by side.

Cells run in worker processes (`experiments.tables.worker`), each of which runs many cells in turn,
so that TensorFlow starts once a worker and compiled steps are used again. A worker that dies marks
its cell as failed and is replaced.
"""

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path

from experiments.tables.devices import available_gpus, worker_environment
from experiments.tables.status import (
    FAILED,
    FINISHED,
    PENDING,
    RUNNING,
    Status,
    read_status,
    write_status,
)
from official_bert.common.files import make_folder


class Pool:
    """The workers of one `Grid.run`."""

    def __init__(self, grid, workers, runner, on_event, poll_seconds):
        self.grid, self.runner, self.on_event = grid, runner, on_event
        self.size, self.poll_seconds = max(1, workers), poll_seconds
        self.workers: list[_Worker] = []
        self.ranks = grid.ranks()
        self.gpus = available_gpus()

    def run(self):
        status = self.grid.statuses()
        todo = [n for n, s in status.items() if s.state in (PENDING, RUNNING)]
        # In a round the longest chain first; sorted() keeps the plan's order among equals.
        todo = sorted(todo, key=lambda name: (self.grid.cells[name].round, -self.ranks[name]))
        finished = {n for n, s in status.items() if s.state == FINISHED}
        failed = {n for n, s in status.items() if s.state == FAILED}
        try:
            while todo or any(w.cell for w in self.workers):
                for worker in list(self.workers):
                    self._collect(worker, finished, failed)
                for name in [n for n in todo if failed & set(self.grid.cells[n].needs)]:
                    todo.remove(name)
                    failed.add(name)
                    self.on_event(FAILED, name, self.grid.status(name))
                self._assign(todo, finished)
                for worker in self.workers:
                    if worker.cell:
                        self.on_event("waiting", worker.cell, Status(RUNNING))
                if todo or any(w.cell for w in self.workers):
                    time.sleep(self.poll_seconds)
        finally:
            for worker in self.workers:
                worker.stop()

    def _collect(self, worker, finished, failed):
        """Notes what became of a worker's cell, once it has ended."""
        name = worker.cell
        if not name:
            return
        # Looked at before the answer: a worker may answer and exit between the two.
        code = worker.process.poll()
        status = worker.answer() or (worker.answer() if code is not None else None)
        if status is None and code is None:
            return
        if status is None:
            seconds = time.time() - worker.started
            status = Status(FAILED, _death(code), seconds, started=worker.started)
            write_status(self.grid.folder(name), status)
        if code is not None:
            self.workers.remove(worker)
            worker.stop()
        worker.cell = ""
        (finished if status.state == FINISHED else failed).add(name)
        self.on_event(status.state, name, status)

    def _assign(self, todo, finished):
        idle = [w for w in self.workers if not w.cell]
        while todo:
            ready = [n for n in todo if finished.issuperset(self.grid.cells[n].needs)]
            if not ready:
                return
            if not idle:
                if len(self.workers) >= self.size:
                    return
                idle.append(self._new_worker())
            worker = idle.pop()
            cells = self.grid.cells
            alike = worker.affinity, cells[ready[0]].round
            same = [n for n in ready if (cells[n].affinity, cells[n].round) == alike]
            name = same[0] if worker.affinity and same else ready[0]
            todo.remove(name)
            worker.start(name, self.grid)
            self.on_event("started", name, Status(RUNNING))

    def _new_worker(self):
        slot = min(set(range(self.size)) - {worker.slot for worker in self.workers})
        environment = worker_environment(slot, self.size, self.gpus)
        self.workers.append(_Worker(self.runner, slot, environment))
        return self.workers[-1]


class _Worker:
    """A worker process: one line of JSON to it starts a cell, its exit or a result file ends it."""

    def __init__(self, runner, slot, environment):
        self.slot = slot
        self.process = subprocess.Popen(
            [sys.executable, "-m", "experiments.tables.worker", runner],
            stdin=subprocess.PIPE,
            env=environment,
            cwd=Path(__file__).parents[2],
            text=True,
            start_new_session=True,  # Ctrl-C reaches the parent, which stops the workers in order
        )
        self.cell, self.affinity, self.started = "", "", 0.0
        self.folder: Path | None = None

    def start(self, name, grid):
        cell = grid.cells[name]
        self.cell, self.affinity, self.started = name, cell.affinity, time.time()
        self.folder = grid.folder(name)
        make_folder(self.folder)
        message = {
            "name": name,
            "kind": cell.kind,
            "folder": str(self.folder),
            "config": grid.resolved(name),
        }
        # A worker that died while idle breaks the pipe; `_collect` then finds its exit code.
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()

    def answer(self):
        return read_status(self.folder)

    def stop(self):
        """Ends the worker; a training in progress saves a checkpoint first."""
        if self.cell and self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=20)
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()  # ends an idle worker
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _death(code: int) -> str:
    if code == -9:
        return "killed (signal 9; the system kills processes when memory runs out)"
    if code < 0:
        return f"killed (signal {-code})"
    return f"its process ended with exit code {code}"
