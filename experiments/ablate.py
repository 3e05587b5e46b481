"""Runs a table of the paper: a grid of pre-trainings and fine-tunings, then the report.

    python -m experiments.ablate --config=experiments/configs/table5.py:smoke --workdir=runs/table5
    python -m experiments.ablate --config=table6:cpu --dry_run

A finished cell is never run again, an interrupted one continues. A failed one is marked with its
reason, and the next call tries it again. Pre-training seeds run one after another, so a table that
is stopped early is complete for its first seeds.

The work folder gets report.html (open it in a browser), report.md, results.json, plots/, cells/
with every run, and archives/ with the results of the runs, one small file a seed. Tables with the
same `--cells` share their runs: a cell that two of them need is run once. Several tables of one
command (`--config=table5:gpu,table6:gpu`) run as one grid, so that small models share a GPU; each
has its report in WORKDIR/NAME/SCALE.
"""

import contextlib
import json
import math
import shlex
import time
from pathlib import Path
from typing import NamedTuple

from absl import flags

from data_prep.jobs import command_flags, commands
from data_prep.jobs.locks import exclusive
from data_prep.jobs.output_folder import begin
from data_prep.jobs.outputs import check_outputs
from experiments.tables.judging import archives
from experiments.tables.planning.ablation import Ablation
from experiments.tables.planning.dry_run import PEAK_TFLOPS, dry_run
from experiments.tables.planning.plan import TablePlan, files_read, plan_table
from experiments.tables.reporting import assemble, report
from experiments.tables.run import origins
from experiments.tables.run.devices import default_workers
from experiments.tables.run.grid import Grid, joined
from experiments.training.pretraining.heldout import main_loss
from experiments.training.settings.config_flags import configs_from_flags, define_flags
from experiments.training.settings.config_values import differences, to_dict
from official_bert.common.errors import UserError
from official_bert.common.files import write_text
from official_bert.common.json_files import read_json
from official_bert.common.paths import local_path


def run(
    ablation,
    workdir,
    *,
    workers=0,
    cells: str = "",
    retry_failed: bool = True,
    quiet=False,
    command="",
    strict: bool = False,
    seeds: tuple[int, ...] = (),
):
    """Run an ablation and write its report and the archives of its seeds.

    Args:
      ablation: experiments.tables.planning.ablation.Ablation.
      workdir: folder of the report, and of the cells.
      workers: cells side by side; 0: as configured, or one a GPU, or one a core without GPUs.
      cells: folder of the cells, for tables that share them; empty: WORKDIR/cells.
      retry_failed: try again the cells that failed in an earlier call.
      quiet: no progress on stderr.
      command: the command that runs it again, for the report.
      seeds: pre-training seeds whose cells are run in this call; empty: all.
      strict: refuse finished cells that other code, versions or machines made.

    Returns: the `Results` that results.json holds (`experiments.tables.judging.results`).
    Raises:
      UserError: data is missing, the folder holds another experiment, is in use or is remote; or
        `strict` refuses a cell.
    """
    how = {"workers": workers, "retry_failed": retry_failed, "quiet": quiet, "strict": strict}
    table = (ablation, local_path(workdir), command)
    return run_together([table], cells or local_path(workdir) / "cells", seeds=seeds, **how)[0]


def run_together(
    tables, cells, *, workers=0, retry_failed=True, quiet=False, strict=False, seeds=()
):
    """Run several ablations as one grid, in which a cell that two of them share is run once.

    Args:
      tables: list of (ablation, folder of its report, `command` of `run`).
      cells, workers, retry_failed, quiet, strict, seeds: see `run`.

    Returns: list of `Results`, one a table; raises the errors of `run`.
    """
    cells = local_path(cells)
    say = (lambda text: None) if quiet else commands.say
    planned = _planned(tables, cells)
    with contextlib.ExitStack() as held:
        for one in planned:
            # Two runs at once in one folder: the last to end could write the older report.
            held.enter_context(exclusive(one.folder))
            _check_config(one.folder, one.ablation)
        grids = [Grid(one.plan.cells, cells) for one in planned]
        grid = joined({p.ablation.full_name: g for p, g in zip(planned, grids, strict=True)})
        asked = grid.of_seeds(seeds)
        started = time.perf_counter()
        shown = _Progress(grid, say)
        for one in planned:
            shown.begin(one.ablation, one.plan.left_out)
        _say_differences(grids, say, strict)
        try:
            configured = max(one.ablation.workers for one in planned)
            grid.run(
                workers or configured or default_workers(),
                retry_failed=retry_failed,
                on_event=shown,
                only=asked,
            )
        except BaseException:
            with contextlib.suppress(Exception):  # the first error is the one to show
                _write_all(planned, cells)
            raise
        found = _write_all(planned, cells)
        for _, paths in found:
            say(f"{time.perf_counter() - started:.0f} s; report: {paths['html']}")
        return [results for results, _ in found]


class _Table(NamedTuple):
    """A table of a run; `folder` and `command` are those of its report."""

    ablation: Ablation
    folder: Path
    command: str
    plan: TablePlan


def _planned(tables, cells) -> list[_Table]:
    """Plan tables, and check that no output would replace a file that one of them reads."""
    places = [(ablation, local_path(folder), command) for ablation, folder, command in tables]
    folders = [folder for _, folder, _ in places]
    if twice := [str(one) for one in folders if folders.count(one) > 1]:
        raise UserError(f"two tables have the folder {twice[0]}; run them one after another")
    found = [_Table(*place, plan_table(place[0])) for place in places]
    for one in found:
        check_outputs(files_read(one.plan), work=[*folders, cells])
    return found


def _say_differences(grids, say, strict):
    """Say how the runs of tables differ in origin; `strict`: raise UserError where they do."""
    lines = origins.of_tables(grids)
    for line in lines:
        say(f"  the runs of this table differ: {line}")
    if strict:
        origins.refuse_warnings(lines)


def _write_all(planned: list[_Table], cells):
    """Write reports and archives; return (results, paths of the report) of each table."""
    found = []
    for one in planned:
        grid = Grid(one.plan.cells, cells)
        results = assemble.assemble(one.ablation, one.plan, grid, one.command)
        found.append((results, report.write(results, one.folder)))
        archives.write(grid, one.folder / archives.FOLDER)
    return found


class _Progress:
    """Prints a line for each event, and every few seconds the step of each running cell."""

    def __init__(self, grid, say, every=5.0):
        self.grid, self.say, self.every = grid, say, every
        self.shown = 0.0
        self.done = sum(s.state == "finished" for s in grid.statuses().values())
        self.running: dict[str, float] = {}
        self.steps: dict[str, int] = {}  # the last ones shown

    def begin(self, ablation, left_out):
        self.say(
            f"{ablation.name}:{ablation.scale}, {ablation.title}: {len(self.grid.cells)} cells, "
            f"{self.done} finished"
        )
        for row, why in left_out.items():
            self.say(f"  {row}: {why}")

    def __call__(self, event, name, status):
        if event == "started":
            self.running[name] = time.perf_counter()
            self.say(f"  start   {name}")
        elif event == "waiting":
            if time.perf_counter() - self.shown >= self.every:
                self.shown = time.perf_counter()
                for running in self.running:
                    self._where(running)
        else:
            self.running.pop(name, None)
            if event == "finished":
                self.done += 1
                result = self.grid.results(name, status)
                note = f"{result.seconds:.0f} s{_headline(result)}"
            else:
                note = f"FAILED: {status.reason}"
            self.say(f"  {self.done:>3}/{len(self.grid.cells)} {name}: {note}")

    def _where(self, name):
        path = self.grid.folder(name) / "metrics.jsonl"
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
            values = json.loads(lines[-1])
            loss = next(json.loads(x)["loss"] for x in reversed(lines) if '"loss"' in x)
        except (OSError, ValueError, IndexError, StopIteration):
            return
        if self.steps.get(name) != values["step"]:
            self.steps[name] = values["step"]
            seconds = time.perf_counter() - self.running[name]
            self.say(f"          {name}: step {values['step']}, loss {loss:.3f}, {seconds:.0f} s")


def _headline(result):
    scores, name = result.scores, result.main_metric
    if name in scores:
        return f", dev {name} {100 * scores[name]:.1f}"
    return f", held-out loss {scores[main_loss(scores)]:.3f}" if scores else ""


def _check_config(workdir, ablation):
    """Check that a work folder belongs to this table at this scale.

    Its other fields may change: a cell's key depends on them."""
    path = workdir / "config.json"
    if path.exists():
        old = read_json(path, finite=False)
        names = ("name", "scale")
        lines = differences(
            {n: old.get(n) for n in names}, {n: getattr(ablation, n) for n in names}
        )
        if lines:
            raise UserError(
                f"{workdir} holds another experiment (old -> new): {'; '.join(lines)}; "
                "choose another --workdir"
            )
    begin(workdir, path.name, [*report.FILES, archives.FOLDER])
    write_text(path, json.dumps(to_dict(ablation), indent=2) + "\n", own=True)


def main(_):
    values = flags.FLAGS
    configs = configs_from_flags(Ablation)
    for name in ("share", "peak_tflops", "price"):
        if values[name].present and not values.dry_run:
            raise UserError(f"--{name} is for --dry_run; add that, or leave --{name} out")
        if not math.isfinite(values[name].value):
            raise UserError(f"--{name}={values[name].value}: give a finite number")
    if not values.peak_tflops:
        raise UserError("--peak_tflops=0: at this rate nothing ends; give the device's")
    if values.dry_run:
        how = {"share": values.share, "peak": values.peak_tflops, "price": values.price}
        how |= {name: values[name].value for name in ("cells", "workers", "seeds")}
        print(dry_run([*configs.values()], values.workdir, **how))
        return
    commands.required("workdir")
    how = ("workdir", "cells", "workers", "config")  # where and how, not what
    given = (values[name] for name in values if values[name].present and name not in how)
    what = [shlex.quote(flag.serialize()) for flag in given]
    workdir, tables = local_path(values.workdir), []
    for source, config in configs.items():
        folder = workdir / config.full_name if len(configs) > 1 else workdir
        command = ["python -m experiments.ablate", f"--config={source}", *what, "--workdir=DIR"]
        tables.append((config, folder, " ".join(command)))
    places = {"workdir", "cells"}
    options = {n: x for n, x in command_flags.values(run).items() if n not in places}
    cells = values.cells or workdir / "cells"
    found = run_together(tables, cells, **options)
    for results, (_, folder, _) in zip(found, tables, strict=True):
        print(report.text(results, folder))
    if any(results.cells["failed"] for results in found):
        return 1


def _define_flags():
    define_flags(run)
    flags.DEFINE_bool(
        "dry_run",
        False,
        "print the cells with their estimated cost, the columns "
        "with their trivial baselines, and stop",
    )
    flags.DEFINE_float("share", 0.0, "dry run at this share of --peak_tflops; 0: measured here",
                       lower_bound=0.0, upper_bound=1.0)  # fmt: skip
    flags.DEFINE_float("peak_tflops", PEAK_TFLOPS, "of the device that --share is of; an H100's "
                       "in bfloat16", lower_bound=0.0)  # fmt: skip
    flags.DEFINE_float("price", 0.0, "of an hour of a device, for the dry run", lower_bound=0.0)
    flags.DEFINE_integer("workers", 0, "cells side by side; 0: as configured, or one a GPU or core")


if __name__ == "__main__":
    _define_flags()
    commands.run(main)
