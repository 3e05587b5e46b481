"""Tables 5 and 6 in pieces: `experiments.ablate` on JAX, stopped in time and continued."""

import importlib
import os
import subprocess
import sys
import time

from benchmarks import machine
from experiments.tables.planning.plan import plan_table
from experiments.tables.run.grid import Grid

DATA = ("sentences", "vocab", "records", "nli")
TABLES = ("table5", "table6")
IN_ORDER = 40  # seconds that the workers of a table have to save what they train


def data(piece, options):
    """Make the text, vocabulary and records of both tables; return True."""
    cells = {}
    for name in TABLES:
        module = importlib.import_module(f"experiments.configs.{name}")
        planned = plan_table(module.get_config(options.scale)).cells
        cells |= {cell.name: cell for cell in planned if cell.kind in DATA}
    os.environ |= _environment(options)
    grid = Grid(cells.values(), options.output / "cells")
    ended = grid.run(options.workers or 4, on_event=_say)
    return all(status.state == "finished" for status in ended.values())


def table(piece, options):
    """Run a table until the time is over; return whether it is finished."""
    left = options.until - time.time() - IN_ORDER
    if left < 0:
        return False
    command = [
        sys.executable, "-m", "experiments.ablate", f"--config={piece}:{options.scale}",
        f"--workdir={options.output / piece}", f"--cells={options.output / 'cells'}",
        f"--workers={options.workers}",
    ]  # fmt: skip
    # In a session of its own: Ctrl-C reaches this command, which ends it once, in order.
    process = subprocess.Popen(command, env=_environment(options), start_new_session=True)
    try:
        return process.wait(timeout=None if left == float("inf") else left) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        process.terminate()
        process.wait()


def _environment(options):
    return machine.importing() | {
        "KERAS_BACKEND": "jax",
        "JAX_COMPILATION_CACHE_DIR": str(options.output / "xla"),
    }


def _say(event, name, status):
    if event != "waiting":
        seconds = (status.result or {}).get("seconds", "")
        print(f"  {event} {name} {status.reason} {seconds}", flush=True)
