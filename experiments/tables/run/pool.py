"""The processes that run the cells of a grid side by side, and the states of the cells.

Cells run in worker processes (`main`). A worker runs many cells in turn, so that TensorFlow starts
once a worker and compiled steps are used again. It reads one JSON object a line from its input:
name, kind, folder, config. The cell's folder is a run's (`training.run_folder`), with the output in
`log.txt` and at the end `results.json` or `failure.json`. When a worker dies, its cell is marked as
failed and a new worker takes its place. When a worker's input is closed (its parent ended or was
killed) it exits at once, even in the middle of a cell, whose checkpoints remain.
"""

import contextlib
import dataclasses
import json
import os
import queue
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from data_prep.jobs import checked_json, output_folder
from data_prep.jobs.commands import end
from data_prep.jobs.locks import exclusive, is_locked
from experiments.tables.run.devices import available_gpus, worker_environment
from experiments.training.folder import provenance
from experiments.training.folder.run_folder import FAILURE, RESULTS
from official_bert.common.errors import UserError
from official_bert.common.files import appending
from official_bert.common.json_files import field
from official_bert.extension import load

PENDING, RUNNING, FINISHED, FAILED = "pending", "running", "finished", "failed"
LOG = "log.txt"


@dataclasses.dataclass(frozen=True)
class Status:
    """The state of a cell.

    Attributes:
      reason: of a failure.
      result: what results.json holds, "seconds" and "ended" (since 1970) among it.
      provenance: of each session that worked on it (`training.provenance`).
    """

    state: str
    reason: str = ""
    result: dict[str, Any] | None = None
    provenance: list[dict[str, Any]] = dataclasses.field(default_factory=list)


def read_status(folder: Path) -> Status | None:
    """Return the status of a cell that has finished or failed; None for others."""
    path, failure = folder / RESULTS, folder / FAILURE
    if path.exists():
        result = checked_json.read(path, finite=False)
        for name in ("seconds", "ended"):
            field(result, name, (int, float), path)
        return Status(FINISHED, result=result, provenance=provenance.sessions(folder))
    if failure.exists():
        return Status(FAILED, field(checked_json.read(failure), "reason", str, failure))
    return None


class Pool:
    """The workers of one `Grid.run`."""

    def __init__(self, grid, workers, runner, on_event, poll_seconds):
        self.grid, self.runner, self.on_event = grid, runner, on_event
        self.size, self.poll_seconds = max(1, workers), poll_seconds
        self.workers: list[_Worker] = []
        self.ranks = grid.ranks()
        self.gpus = available_gpus()

    def run(self, only=None):
        status = self.grid.statuses()
        todo = [n for n, s in status.items() if s.state in (PENDING, RUNNING)]
        if only is not None:
            todo = [name for name in todo if name in only]
        # Within a round the longest chain comes first; sorted() keeps the plan's order among
        # equals.
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
        """Note the status of a worker's cell, once it has ended."""
        name = worker.cell
        if not name:
            return
        # Read the exit code before the answer: a worker may answer and exit between the two.
        code = worker.process.poll()
        status = worker.answer() or (worker.answer() if code is not None else None)
        if status is None and code is None:
            return
        if status is None:
            status = _failed(worker.folder, _death(code))
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
    """A worker process. A line of JSON to it starts a cell; its exit or a result file ends the
    cell."""

    def __init__(self, runner, slot, environment):
        self.slot = slot
        self.process = subprocess.Popen(
            [sys.executable, "-m", "experiments.tables.run.pool", runner],
            stdin=subprocess.PIPE,
            env=environment,
            cwd=Path(__file__).parents[3],
            text=True,
            start_new_session=True,  # Ctrl-C reaches the parent, which stops the workers in order
        )
        self.cell, self.affinity = "", ""
        self.folder: Path | None = None

    def start(self, name, grid):
        cell = grid.cells[name]
        self.cell, self.affinity = name, cell.affinity
        self.folder = grid.folder(name)
        others = {path.name for path in self.folder.glob("*")} - {LOG}
        output_folder.begin(self.folder, provenance.FILE, others)
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
        return None if is_locked(self.folder) else read_status(self.folder)

    def stop(self):
        """End the worker; a training in progress saves a checkpoint first."""
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


def main(runner: str) -> None:
    """Run cells with the function that `runner` ("module:function") names."""
    commands: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=(commands,), daemon=True).start()
    function = None
    while True:
        command = json.loads(commands.get())
        folder = Path(command["folder"])
        # A worker whose parent was killed may still be on its way out of this very folder.
        with exclusive(folder, seconds=60) as lock, _output_to(folder / LOG):
            if function is None:
                function = load(runner)
            run_cell(function, command["kind"], command["config"], folder, lock)


def run_cell(function, kind: str, config: dict, folder: Path, lock=None) -> Status:
    """Call the function, whose result or exception ends the cell; return the status."""
    started = time.perf_counter()
    if changed := provenance.note(folder):
        print(f"goes on with other code or versions: {changed}")
    try:
        result = function(kind, config, folder, lock)
        if not (folder / RESULTS).exists():  # runs write it themselves
            seconds = round(time.perf_counter() - started, 2)
            ended = {"seconds": seconds, "ended": round(time.time(), 2)}
            checked_json.write(folder / RESULTS, result | ended)
        return read_status(folder)
    except UserError as error:
        return _failed(folder, str(error))
    except MemoryError:
        return _failed(folder, "out of memory")
    except Exception as error:
        with contextlib.suppress(OSError):  # a full disk
            traceback.print_exc()
        return _failed(folder, describe(error))


def _failed(folder: Path, reason: str) -> Status:
    checked_json.write(folder / FAILURE, {"reason": reason})
    return Status(FAILED, reason)


def describe(error: Exception) -> str:
    """Return the kind of an error and the first line of its message, on one line."""
    kind = type(error).__name__
    text = (str(error).strip().splitlines() or [""])[0][:200]
    if kind == "ResourceExhaustedError":
        return f"out of memory ({text})"
    return f"{kind}: {text}" if text else kind


def _listen(commands: queue.Queue) -> None:
    for line in sys.stdin:
        commands.put(line)
    os._exit(3)


@contextlib.contextmanager
def _output_to(path: Path):
    """Send both output streams of the process to the end of a file, C++ messages included."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    with appending(path, "ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # a full disk
            sys.stdout.flush()
            sys.stderr.flush()
        for saved, stream in zip(kept, (1, 2), strict=True):
            os.dup2(saved, stream)
            os.close(saved)


if __name__ == "__main__":
    end(lambda: main(sys.argv[1]))
