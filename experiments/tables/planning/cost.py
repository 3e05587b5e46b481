"""The cost of every cell of a table before it runs: FLOPs, seconds and bytes."""

import dataclasses
import os
from collections.abc import Callable

from data_prep.pretraining.record_options import RecordOptions
from experiments.tables.planning.step_rate import measured_rate
from experiments.tables.planning.work import START_SECONDS, Steps
from experiments.tables.run.grid import Cell


@dataclasses.dataclass(frozen=True)
class Estimate:
    """The cost of one cell: FLOPs of its model, seconds of one worker, bytes that stay on disk.

    `beside_flops` are of all that works beside the model, such as a teacher; `seconds` has both."""

    flops: float = 0.0
    seconds: float = 0.0
    bytes: float = 0.0
    beside_flops: float = 0.0


def estimate(plan, rate: float | None = None, say: Callable = print) -> dict[str, Estimate]:
    """Return {cell: its Estimate} of a `TablePlan`.

    Args:
      rate: FLOPs a second of every training; None: one step of every shape is timed on this
        machine.
      say: takes a line before each measurement.
    """
    found = {}
    for cell in plan.cells:
        work = plan.work.get(cell.name)
        if work is None:  # no training
            found[cell.name] = Estimate(0.0, cell.cost, _text_bytes(cell))
            continue
        seconds = START_SECONDS
        for steps in work.steps:
            seconds += steps.seconds(rate or work.rate or _measured(steps, say))
        found[cell.name] = Estimate(work.flops, seconds, work.bytes, work.beside_flops)
    return found


def _measured(steps: Steps, say: Callable) -> float:
    return measured_rate(steps.bert, steps.length, steps.rows, say, steps.precision)


def _text_bytes(cell: Cell) -> float:
    inputs = [*cell.config.get("inputs", ()), *cell.config.get("train", ())]
    files = [path for path in inputs if os.path.isfile(path)]
    text = sum(os.path.getsize(path) * (2.5 if path.endswith(".gz") else 1) for path in files)
    # Records take about 16 bytes a token and pass, a token is about 4.5 characters.
    passes = 1
    if cell.kind == "records":
        passes = cell.config["options"].get("dupe_factor", RecordOptions.dupe_factor)
    return text * 3.5 * passes
