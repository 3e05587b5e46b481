"""A worker process of `experiments.tables.pool`: runs one cell after another.

Reads one JSON object a line from its input: name, kind, folder, config. Leaves the cell's output
in `folder/log.txt` and its end in `folder/cell.json`. When its input is closed (its parent ended or
was killed) it exits at once, in the middle of a cell if need be: the cell's checkpoints remain.
"""

import contextlib
import importlib
import json
import os
import queue
import sys
import threading
import time
import traceback
from pathlib import Path

from experiments.tables.status import FAILED, FINISHED, Status, write_status
from experiments.training import provenance
from official_bert.common.errors import UserError
from official_bert.common.files import appending
from official_bert.common.locks import exclusive


def main(runner: str) -> None:
    """Runs cells with the function that `runner` ("module:function") names."""
    commands: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=(commands,), daemon=True).start()
    function = None
    while True:
        command = json.loads(commands.get())
        folder = Path(command["folder"])
        # A worker whose parent was killed may still be on its way out of this very folder.
        with exclusive(folder, wait=True):
            with _output_to(folder / "log.txt"):
                if function is None:
                    module, _, name = runner.partition(":")
                    function = getattr(importlib.import_module(module), name)
                status = run_cell(function, command["kind"], command["config"], folder)
            write_status(folder, status)


def run_cell(function, kind: str, config: dict, folder: Path) -> Status:
    """Calls the function and turns its result or its exception into the cell's status."""
    started, cpu_started = time.time(), time.process_time()
    result, state, reason = None, FAILED, ""
    if changed := provenance.note(folder):
        print(f"goes on with other code or versions: {changed}")
    try:
        result = function(kind, config, folder)
        json.dumps(result)
        state = FINISHED
    except UserError as error:
        reason = str(error)
    except MemoryError:
        reason = "out of memory"
    except Exception as error:
        traceback.print_exc()
        reason = describe(error)
    return Status(
        state,
        reason,
        seconds=round(time.time() - started, 2),
        result=result if state == FINISHED else None,
        started=round(started, 2),
        cpu_seconds=round(time.process_time() - cpu_started, 2),
        provenance=provenance.sessions(folder),
    )


def describe(error: Exception) -> str:
    """One line: the kind of error and the first line of its message."""
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
    """Sends both output streams of the process to the end of a file, C++ messages included."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    with appending(path, "ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for saved, stream in zip(kept, (1, 2), strict=True):
            os.dup2(saved, stream)
            os.close(saved)


if __name__ == "__main__":
    main(sys.argv[1])
