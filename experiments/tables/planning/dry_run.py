"""A table before it is run: its cost, and the scores of the trivial baselines to beat."""

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path

from data_prep.jobs import commands
from data_prep.tasks.batches import sample
from experiments.tables.planning.cost import Steps, estimate, usual_rate
from experiments.tables.planning.plan import plan_table
from experiments.tables.planning.step_rate import measured
from experiments.tables.run import origins
from experiments.tables.run.devices import default_workers
from experiments.tables.run.grid import Grid, joined, referred
from experiments.tables.run.pool import FINISHED
from experiments.training.folder.inputs import forget_examples, read_task
from experiments.training.settings.flops import RATE
from official_bert.common.errors import check_once
from official_bert.common.json_files import read_json
from official_bert.common.paths import local_path

BEST = "best.json"  # beside generated data: the best possible scores
PEAK_TFLOPS = 989.0  # of an H100's dense products in bfloat16


@dataclasses.dataclass(frozen=True)
class _Rate:
    """The FLOPs a second that a dry run reckons with.

    Attributes:
      of_steps: returns those of some Steps.
      announcement: ends the first line that is printed.
      source: says it at the end of the report.
    """

    of_steps: Callable[[Steps], float]
    announcement: str
    source: str


def dry_run(
    ablations,
    workdir="",
    *,
    cells="",
    measure=True,
    share=0.0,
    peak=PEAK_TFLOPS,
    price=0.0,
    workers=0,
    seeds=(),
):
    """Return the cells with estimated work, time and disk, and the trivial baselines, as text.

    Args:
      ablations: list of Ablation; a cell that two of them share is counted once, as it is run.
      workdir, cells: folders in which finished cells are found; nothing is written there. "": none.
      measure: time one step of every shape on this machine.
      share: of `peak` (TFLOP/s of another machine's device) that is assumed, in place of measuring.
      price: of an hour of a device, in any currency; 0 leaves it out.
      workers: cells side by side; 0: as configured, or one a GPU, or one a core without GPUs.
      seeds: pre-training seeds whose cells are listed; empty: all.
    """
    check_once((one.full_name for one in ablations), "tables")
    # Without a folder no cell is finished: nothing lies below the null device.
    kept = local_path(cells or local_path(workdir or os.devnull) / "cells")
    rate = _rate(share, peak, measure)
    named = ", ".join(f"{one.name}:{one.scale}" for one in ablations)
    commands.say(f"dry run of {named}: reads the data, {rate.announcement}")
    plans = {one.full_name: plan_table(one) for one in ablations}
    bounds = [
        (one.full_name, column.label, _bounds(column, plans[one.full_name].configs))
        for one in ablations
        for column in one.columns
    ]
    forget_examples()
    grids = {name: Grid(plan.cells, kept) for name, plan in plans.items()}
    estimates = {}  # by the cells' keys
    for name, plan in plans.items():
        of_plan = estimate(plan, rate.of_steps)
        estimates |= {grids[name].key(cell): one for cell, one in of_plan.items()}
    grid = joined(grids)  # each key once, as in the run
    listed = grid.of_seeds(seeds)
    found = [
        (name, status.state, estimates[grid.key(name)])
        for name, status in grid.statuses().items()
        if name in listed
    ]
    # Another machine's devices are not known.
    configured = max(one.workers for one in ablations)
    side_by_side = None if share else workers or configured or default_workers()
    lines = [*_cell_lines(found), "", _todo_line(found, side_by_side, price)]
    lines.append(f"Times are estimates: {rate.source}, plus a constant a run.")
    lines += [f"The runs of this table differ: {x}." for x in origins.of_tables(grids.values())]
    lines += ["", "Trivial baselines, which scores have to beat:"]
    for table, label, bound in bounds:
        lines.append(_bounds_line(label if len(ablations) == 1 else f"{table}: {label}", *bound))
    return "\n".join(lines)


def _rate(share, peak, measure) -> _Rate:
    if share:
        rate = share * peak * 1e12
        source = f"at {share:.0%} of {peak:g} TFLOP/s"
        return _Rate(lambda steps: rate, "trains nothing", source)
    if not measure:
        source = f"at {_flops(RATE)} a second, which two cores reach"
        return _Rate(usual_rate, "trains nothing", source)
    begins = (
        "then times a training step of every shape on this machine; --share=0.4 reckons with a GPU "
        "and measures nothing"
    )
    source = "at the rate of a training step measured on this machine (LSTMs: as on two cores)"
    return _Rate(measured(commands.say), begins, source)


def _cell_lines(cells) -> list[str]:
    lines = [f"{'cell':<58} {'state':<9} {'work':>12} {'time':>10} {'disk':>9}"]
    for name, state, one in cells:
        lines.append(
            f"{name[:58]:<58} {state:<9} {_flops(one.flops):>12} "
            f"{_seconds(one.seconds):>10} {_bytes(one.bytes):>9}"
        )
        if one.beside_flops:
            lines.append(f"{'  beside it':<68} {_flops(one.beside_flops):>12}")
    return lines


def _todo_line(cells, side_by_side: int | None, price: float) -> str:
    """Return the work that is left, as text; `side_by_side`: cells at once; None: one device."""
    left = [one for _, state, one in cells if state != FINISHED]
    seconds = sum(one.seconds for one in left)
    time = f"{_seconds(seconds)} of one {'worker' if side_by_side else 'device'}"
    if side_by_side:
        time += f", about {_seconds(seconds / side_by_side)} with {side_by_side} side by side"
    work, disk = _flops(sum(one.flops for one in left)), _bytes(sum(one.bytes for one in left))
    line = f"{len(cells)} cells; still to do: {work}, {time}, {disk} of disk"
    if price:
        line += f"; {seconds / 3600 * price:,.0f} at {price:g} an hour of a worker's device"
    return line


def _bounds_line(label, score, best) -> str:
    baseline = "known after the run" if score is None else f"{score:.1f}"
    best = "" if best is None else f", the best possible score is {best:.1f}"
    return f"  {label}: {baseline}{best}"


def _bounds(column, configs) -> tuple[float | None, float | None]:
    """Return (score of the trivial baseline, best possible score) of a column; None if unknown.

    Both are in printed units; `configs`: see `TablePlan`."""
    config = configs.get(column.label)
    if not config or referred(config.data_dir)[0]:  # a cell makes the data
        return None, None
    task, train, dev = read_task(config)
    limits = config.max_train_examples, config.max_dev_examples
    scores = task.baseline(*map(sample, (train, dev), limits))
    path = Path(config.data_dir, BEST)
    best = read_json(path) if config.data_dir and path.is_file() else {}
    metric, scale = column.metric or next(iter(scores)), 100 if column.percent else 1
    score, highest = scores.get(metric), best.get("dev", best).get(metric)
    score, highest = (None if value is None else scale * value for value in (score, highest))
    return score, highest


def _flops(flops: float) -> str:
    return _readable(flops, {"EFLOP": 1e18, "PFLOP": 1e15, "TFLOP": 1e12, "GFLOP": 1e9})


def _bytes(size: float) -> str:
    return _readable(size, {"TB": 1e12, "GB": 1e9, "MB": 1e6, "kB": 1e3})


def _readable(value: float, units: dict[str, float]) -> str:
    unit, size = next((one for one in units.items() if value >= one[1]), [*units.items()][-1])
    return f"{value / size:,.1f} {unit}"


def _seconds(value: float) -> str:
    for unit, size in (("years", 3.156e7), ("days", 86400), ("h", 3600), ("min", 60)):
        if value >= 2 * size:
            return f"{value / size:,.1f} {unit}"
    return f"{value:.0f} s"
