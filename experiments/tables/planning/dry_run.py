"""A table before it is run: its cost, and the scores of the trivial baselines to beat."""

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
from official_bert.common.json_files import read_json
from official_bert.common.paths import local_path

BEST = "best.json"  # beside generated data: the best possible scores
PEAK_TFLOPS = 989.0  # of an H100's dense products in bfloat16


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
    known = {}

    def look(column, config):
        known[column.label] = _bounds(column, config)

    plan = planning.plan(ablation, look)
    grid = Grid(plan.cells, kept)
    if share:
        estimates = cost.estimate(plan, ablation, False, share * peak * 1e12)
    else:
        estimates = cost.estimate(plan, ablation, measure, say=commands.say)
    lines = [f"{'cell':<58} {'state':<9} {'work':>12} {'time':>10} {'disk':>9}"]
    total = [0.0, 0.0, 0.0]
    for name in grid.cells:
        state = grid.status(name).state
        work = estimates[name]
        lines.append(
            f"{name[:58]:<58} {state:<9} {cost.readable_flops(work.flops):>12} "
            f"{cost.readable_seconds(work.seconds):>10} {cost.readable_bytes(work.bytes):>9}"
        )
        if work.beside_flops:
            lines.append(f"{'  beside it':<68} {cost.readable_flops(work.beside_flops):>12}")
        if state != FINISHED:
            total = [total[0] + work.flops, total[1] + work.seconds, total[2] + work.bytes]
    todo = f"{len(grid.cells)} cells; still to do: {cost.readable_flops(total[0])}, "
    if share:
        todo += f"{cost.readable_seconds(total[1])} of one device"
        source = f"at {share:.0%} of {peak:g} TFLOP/s"
    else:
        workers = ablation.workers or default_workers()
        todo += (
            f"{cost.readable_seconds(total[1])} of one worker, about "
            f"{cost.readable_seconds(total[1] / workers)} with {workers} side by side"
        )
        gpu = step_rate.gpu() if measure else None
        source = "at the rate of a training step measured on "
        source += f"this machine's {gpu.kind}" if gpu else "this machine"
    todo += f", {cost.readable_bytes(total[2])} of disk"
    if price:
        todo += f"; {total[1] / 3600 * price:,.0f} at {price:g} an hour of a worker's device"
    lines += ["", todo, f"Times are estimates: {source}, plus a constant a run."]
    differences = origins.differences(grid.statuses().values())
    lines += [f"The runs of this table differ: {line}." for line in differences]
    lines += ["", "Trivial baselines, which scores have to beat:"]
    for column in ablation.columns:
        score, best = known.get(column.label, (None, None))
        baseline = "known after the run" if score is None else f"{score:.1f}"
        baseline += "" if best is None else f", the best possible score is {best:.1f}"
        lines.append(f"  {column.label}: {baseline}")
    return "\n".join(lines)


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
