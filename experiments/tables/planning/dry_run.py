"""A table before it is run: its cost, and the scores of the trivial baselines to beat."""

import dataclasses
import os
from pathlib import Path

from data_prep.jobs import commands
from data_prep.tasks.batches import sample
from experiments.tables.planning import cost, step_rate
from experiments.tables.planning import plan as planning
from experiments.tables.run import origins
from experiments.tables.run.devices import default_workers
from experiments.tables.run.grid import Grid
from experiments.tables.run.pool import FINISHED
from experiments.training.folder.inputs import read_task
from experiments.training.settings.flops import RATE
from official_bert.common.json_files import read_json
from official_bert.common.paths import local_path

BEST = "best.json"  # beside generated data: the best possible scores
PEAK_TFLOPS = 989.0  # of an H100's dense products in bfloat16


@dataclasses.dataclass(frozen=True)
class _Forecast:
    """Cells, cost and baselines of a table before it is run."""

    cells: list[tuple[str, str, cost.Estimate]]  # (name, state, estimate)
    differences: list[str]  # between the origins of finished cells
    bounds: dict[str, tuple[float | None, float | None]]  # column label -> `_bounds`


def dry_run(
    ablation, workdir="", *, cells="", measure=True, share=0.0, peak=PEAK_TFLOPS, price=0.0
):
    """Return the cells with estimated work, time and disk, and the trivial baselines, as text.

    Args:
      workdir, cells: folders in which finished cells are found; nothing is written there. "": none.
      measure: time one step of every shape on this machine.
      share: of `peak` (TFLOP/s of another machine's device) that is assumed, in place of measuring.
      price: of an hour of a device, in any currency; 0 leaves it out.
    """
    kept = local_path(cells or local_path(workdir or os.devnull) / "cells")
    measure = measure and not share
    steps = "times a training step of every shape on this machine" if measure else "trains nothing"
    faster = "; --share=0.4 reckons with a GPU and measures nothing" if measure else ""
    commands.say(
        f"dry run of {ablation.name}:{ablation.scale}: reads the data, then {steps}{faster}"
    )
    workers = 0 if share else ablation.workers or default_workers()
    if share:
        rate, source = share * peak * 1e12, f"at {share:.0%} of {peak:g} TFLOP/s"
    elif measure:
        gpu = step_rate.gpu()
        machine = f"this machine's {gpu.kind}" if gpu else "this machine"
        rate, source = None, f"at the rate of a training step measured on {machine}"
    else:
        rate, source = RATE, f"at {readable_flops(RATE)} a second, which two cores reach"
    found = _forecast(ablation, kept, rate)
    lines = [*_cell_lines(found.cells), "", _todo_line(found.cells, workers, price)]
    lines.append(f"Times are estimates: {source}, plus a constant a run.")
    lines += [f"The runs of this table differ: {line}." for line in found.differences]
    lines += ["", "Trivial baselines, which scores have to beat:"]
    lines += [_bounds_line(column.label, found.bounds) for column in ablation.columns]
    return "\n".join(lines)


def _forecast(ablation, folder, rate) -> _Forecast:
    """Plan a table and estimate its cells; those that are finished are in `folder`."""
    bounds = {}

    def look(column, config):
        bounds[column.label] = _bounds(column, config)

    plan = planning.plan(ablation, look)
    statuses = Grid(plan.cells, folder).statuses()
    work = cost.estimate(plan, rate, commands.say)
    cells = [(name, status.state, work[name]) for name, status in statuses.items()]
    return _Forecast(cells, origins.differences(statuses.values()), bounds)


def _cell_lines(cells) -> list[str]:
    lines = [f"{'cell':<58} {'state':<9} {'work':>12} {'time':>10} {'disk':>9}"]
    for name, state, work in cells:
        lines.append(
            f"{name[:58]:<58} {state:<9} {readable_flops(work.flops):>12} "
            f"{readable_seconds(work.seconds):>10} {readable_bytes(work.bytes):>9}"
        )
        if work.beside_flops:
            lines.append(f"{'  beside it':<68} {readable_flops(work.beside_flops):>12}")
    return lines


def _todo_line(cells, workers, price) -> str:
    """Return the sum of the cells that are not finished; `workers` 0: they have one device."""
    left = [work for _, state, work in cells if state != FINISHED]
    names = ("flops", "seconds", "bytes")
    flops, seconds, size = (sum(getattr(work, name) for work in left) for name in names)
    time = f"{readable_seconds(seconds)} of one {'worker' if workers else 'device'}"
    if workers:
        time += f", about {readable_seconds(seconds / workers)} with {workers} side by side"
    told = f"{len(cells)} cells; still to do: {readable_flops(flops)}, {time}, "
    told += f"{readable_bytes(size)} of disk"
    paid = f"; {seconds / 3600 * price:,.0f} at {price:g} an hour of a worker's device"
    return told + paid if price else told


def _bounds_line(label, bounds) -> str:
    score, best = bounds.get(label, (None, None))
    baseline = "known after the run" if score is None else f"{score:.1f}"
    best = "" if best is None else f", the best possible score is {best:.1f}"
    return f"  {label}: {baseline}{best}"


def _bounds(column, config) -> tuple[float | None, float | None]:
    """Return (score of the trivial baseline, best possible score) of a column; None if unknown.

    Both are in printed units; `config` is one of the column's FinetuneConfigs."""
    task, train, dev = read_task(config)
    limits = config.max_train_examples, config.max_dev_examples
    scores = task.baseline(*map(sample, (train, dev), limits))
    path = Path(config.data_dir, BEST)
    best = read_json(path) if path.is_file() else {}
    metric, scale = column.metric or next(iter(scores)), 100 if column.percent else 1
    found = (known.get(metric) for known in (scores, best.get("dev", best)))
    score, best = (None if value is None else scale * value for value in found)
    return score, None if score is None else best


def readable_flops(flops: float) -> str:
    for unit, size in (("EFLOP", 1e18), ("PFLOP", 1e15), ("TFLOP", 1e12)):
        if flops >= size:
            return f"{flops / size:,.1f} {unit}"
    return f"{flops / 1e9:,.1f} GFLOP"


def readable_seconds(value: float) -> str:
    for unit, size in (("years", 3.156e7), ("days", 86400), ("h", 3600), ("min", 60)):
        if value >= 2 * size:
            return f"{value / size:,.1f} {unit}"
    return f"{value:.0f} s"


def readable_bytes(value: float) -> str:
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if value >= size:
            return f"{value / size:,.1f} {unit}"
    return f"{value / 1e3:,.0f} kB"
