"""The grid: keys, order, sharing, failures, kills and resumption."""

import contextlib
import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments.tables.run.grid import Cell, CellInputs, Grid, joined
from experiments.tables.run.pool import FAILED, FINISHED, PENDING
from official_bert.common.errors import UserError

RUNNER = "tests.experiments.tables.run.fake_cells:run_cell"


def chain(**second):
    return [
        Cell("data", "fake", {"value": 1.5}),
        Cell("model", "fake", {"sources": ["@data//value.txt"], "value": 1, **second}),
        Cell("task/a", "fake", {"sources": ["@model//value.txt"], "value": 10}),
        Cell("task/b", "fake", {"sources": ["@model//value.txt", "@data//value.txt"]}),
    ]


def results(statuses):
    return {name: status.result["value"] for name, status in statuses.items()}


def calls(grid, name):
    return len((grid.folder(name) / "calls").read_text())


def test_runs_in_order_of_need_and_never_twice(tmp_path):
    grid = Grid(chain(), tmp_path)
    assert {s.state for s in grid.statuses().values()} == {PENDING}
    status = grid.run(workers=2, runner=RUNNER, poll_seconds=0.02)
    assert results(status) == {"data": 1.5, "model": 2.5, "task/a": 12.5, "task/b": 4.0}
    # A worker process runs several cells in turn.
    assert len({s.result["pid"] for s in status.values()}) <= 2
    assert "printed by the cell" in (grid.folder("data") / "log.txt").read_text()
    again = Grid(chain(), tmp_path).run(runner=RUNNER)
    assert again == status
    assert all(calls(grid, name) == 1 for name in grid.cells)


def test_the_cells_of_some_seeds_are_run_alone(tmp_path):
    cells = [Cell("data", "fake", {"value": 1})]
    cells += [
        Cell(f"model/{seed}", "fake", {"sources": ["@data//value.txt"], "seed": seed}, round=seed)
        for seed in (1, 2)
    ]
    grid = Grid(cells, tmp_path)
    states = {n: s.state for n, s in grid.run(runner=RUNNER, only=grid.of_seeds(["2"])).items()}
    assert states == {"data": FINISHED, "model/1": PENDING, "model/2": FINISHED}
    assert grid.of_seeds(()) == {*grid.cells}
    with pytest.raises(UserError, match="seed 3 is not a pre-training seed of the table: 1, 2"):
        grid.of_seeds([3])


def test_one_seed_is_whole_before_the_next_begins(tmp_path):
    cells = [Cell("data", "fake", {"value": 1})]
    for seed in (1, 2):
        model = {"sources": ["@data//value.txt"], "seed": seed}
        cells.append(Cell(f"model/{seed}", "fake", model, cost=9, affinity="model", round=seed))
        for task in "ab":
            config = {"sources": [f"@model/{seed}//value.txt"], "task": task}
            name = f"task/{task}{seed}"
            cells.append(Cell(name, "fake", config, affinity=task, round=seed))
    begun = []
    Grid(cells, tmp_path).run(
        runner=RUNNER, on_event=lambda event, name, _: event == "started" and begun.append(name)
    )
    assert begun[:2] == ["data", "model/1"] and begun[4] == "model/2"
    assert all(name.endswith("1") for name in begun[2:4])


def test_key_follows_what_determines_the_result(tmp_path):
    base = Grid(chain(), tmp_path)
    changed = Grid(chain(steps=1), tmp_path)
    assert base.key("data") == changed.key("data")
    for name in ("model", "task/a", "task/b"):  # downstream of the change
        assert base.key(name) != changed.key(name)
    elsewhere = Grid(chain(), tmp_path / "elsewhere")
    assert all(base.key(name) == elsewhere.key(name) for name in base.cells)

    def one(path, digest):
        fields = {"value": 1, "data_dir": path}
        cell = Cell("x", "fake", fields, CellInputs(("data_dir",), {"data": digest}))
        return Grid([cell], tmp_path).key("x")

    assert one("/here", "1") == one("/there", "1") != one("/here", "2")


def test_cells_of_another_format_are_refused_and_stay(tmp_path):
    """Cells of format 1 had cell.json and a folder run/, and no number in their names."""
    kept = tmp_path / "pretrain-BERT-1-0123456789abcdef" / "run" / "checkpoints"
    kept.mkdir(parents=True)
    (tmp_path / "a user's folder-1").mkdir()
    with pytest.raises(UserError, match="holds 1 cells of another format .pretrain-BERT-1-0123"):
        Grid(chain(), tmp_path).run(runner=RUNNER)
    assert kept.is_dir()


def test_another_table_finds_the_cell_under_its_own_name(tmp_path):
    Grid(chain(), tmp_path).run(runner=RUNNER, poll_seconds=0.02)
    data, model = chain()[:2]
    renamed = [
        Cell("text", data.kind, data.config),
        Cell("L2 H128", model.kind, model.config | {"sources": ["@text//value.txt"]}),
    ]
    other = Grid(renamed, tmp_path)
    assert {s.state for s in other.statuses().values()} == {FINISHED}
    assert other.run(runner=RUNNER)["L2 H128"].result["value"] == 2.5
    assert calls(other, "L2 H128") == 1


def test_several_tables_are_one_grid(tmp_path):
    """Shared cells are run once; cells of one name that differ have the table's before it."""

    def table(value, last):
        cells = [
            Cell("data", "fake", {"value": 1.5}, round=last),
            Cell("model", "fake", {"sources": ["@data//value.txt"], "value": value}, round=last),
            Cell(f"task/{last}", "fake", {"sources": ["@model//value.txt"]}, scored=True),
            Cell(f"other/{last}", "fake", {"needs": "@model"}),
        ]
        return Grid(cells, tmp_path)

    grids = {"a/x": table(1, 1), "a/y": table(2, 2), "b": table(2, 3)}
    grid = joined(grids)
    first, second = ["data", "model", "task/1", "other/1"], ["a/y: model", "task/2", "other/2"]
    assert list(grid.cells) == first + second
    assert grid.cells["a/y: model"].needs == ("data",) and grid.cells["data"].round == 1
    assert grid.cells["other/2"].needs == ("a/y: model",)
    for one in grids.values():
        assert {one.key(name) for name in one.cells} <= {grid.key(name) for name in grid.cells}
    del grid.cells["other/1"], grid.cells["other/2"]  # of a kind that the fake runner lacks
    grid.run(workers=1, runner=RUNNER, poll_seconds=0.02)
    ends = {}
    for name, value in (("a/x", 1), ("a/y", 2), ("b", 3)):
        again = table(2 if name == "b" else value, value)
        ends[name] = again.status(f"task/{value}").result["value"]
        assert calls(again, "data") == calls(again, "model") == 1
    assert ends == {"a/x": 2.5, "a/y": 3.5, "b": 3.5}


def test_a_result_without_the_file_that_others_need_is_refused(tmp_path):
    """This happens where archives of a seed that had not ended were unpacked into a folder of
    cells."""
    grid = Grid(chain(), tmp_path)
    grid.run(runner=RUNNER)
    (grid.folder("model") / "value.txt").unlink()
    grid.run(runner=RUNNER)  # nobody needs it any more
    (grid.folder("task/a") / "results.json").unlink()
    with pytest.raises(UserError, match=rf"run again:\n  {grid.folder('model')} \(value.txt\)$"):
        grid.run(runner=RUNNER)
    shutil.rmtree(grid.folder("model"))
    assert {s.state for s in grid.run(runner=RUNNER).values()} == {FINISHED}
    assert calls(grid, "model") == 1 and calls(grid, "task/b") == 1


def test_failures_are_marked_and_the_others_go_on(tmp_path):
    cells = [
        Cell("nan", "fake", {"diverge": True}),
        Cell("after nan", "fake", {"sources": ["@nan//value.txt"]}),
        Cell("after that", "fake", {"sources": ["@after nan//value.txt"]}),
        Cell("memory", "fake", {"memory": True}),
        Cell("killed", "fake", {"die": True}),
        Cell("exits", "fake", {"exit": 5}),
        Cell("crash", "fake", {"crash": True}),
        Cell("fine", "fake", {"value": 3}),
    ]
    events = []
    status = Grid(cells, tmp_path).run(
        2, RUNNER, on_event=lambda *event: events.append(event[:2]), poll_seconds=0.02
    )
    assert status["fine"].state == FINISHED
    assert status["nan"].reason == "the loss became NaN at step 7"
    assert status["after nan"].state == FAILED
    assert status["after nan"].reason == "needs nan, which failed: the loss became NaN at step 7"
    assert status["after that"].reason == status["after nan"].reason
    assert status["memory"].reason == "out of memory"
    assert status["killed"].reason.startswith("killed (signal 9")
    assert status["exits"].reason == "its process ended with exit code 5"
    assert status["crash"].reason == "RuntimeError: first line"
    assert ("failed", "after that") in events and ("finished", "fine") in events


@pytest.mark.parametrize("log", ["link", "pipe"])
def test_a_log_that_takes_nothing(log, tmp_path, capfd):
    grid = Grid([Cell("a", "fake", {"value": 1})], tmp_path / "cells")
    grid.folder("a").mkdir(parents=True)
    place = grid.folder("a") / "log.txt"
    if log == "link":
        place.symlink_to(tmp_path / "elsewhere.txt")
    else:
        os.mkfifo(place)
    [status] = grid.run(runner=RUNNER, poll_seconds=0.02).values()
    told = capfd.readouterr().err
    assert status.state == FAILED and not (tmp_path / "elsewhere.txt").exists()
    assert told.count("\n") == 1 and f"{place}" in told


def test_failed_cells_are_tried_again_on_request(tmp_path):
    cells = [Cell("flaky", "fake", {"once": str(tmp_path / "seen"), "value": 2})]
    assert Grid(cells, tmp_path).run(1, RUNNER)["flaky"].state == FAILED
    assert Grid(cells, tmp_path).run(1, RUNNER, retry_failed=False)["flaky"].state == FAILED
    assert Grid(cells, tmp_path).run(1, RUNNER)["flaky"].result["value"] == 2


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_equal_cells_of_two_tables_the_one_that_leaves_a_model_is_run(order, tmp_path):
    one = Cell("x", "fake", {"value": 1, "save": False}, CellInputs(("save",)))
    kept = dataclasses.replace(one, config={"value": 1, "save": True}, leaves_model=True)
    grids = [Grid([[one, kept][index]], tmp_path) for index in order]
    grid = joined({str(index): grid for index, grid in enumerate(grids)})
    assert grid.cells["x"].config["save"] and grid.cells["x"].leaves_model


def test_wrong_grids_are_refused(tmp_path):
    with pytest.raises(UserError, match="b needs nowhere, which is not there"):
        Grid([Cell("b", "fake", {"x": "@nowhere//file"})], tmp_path)
    with pytest.raises(UserError, match="in a circle: a -> b -> a"):
        Grid([Cell("a", "f", {"x": "@b"}), Cell("b", "f", {"x": "@a"})], tmp_path)
    with pytest.raises(UserError, match="two cells are named a; rename"):
        Grid([Cell("a", "f", {"x": 1}), Cell("a", "f", {"x": 2})], tmp_path)
    with pytest.raises(UserError, match="cell a//b: the name of a row"):
        Grid([Cell("a//b", "f", {})], tmp_path)


def test_killed_in_the_middle_it_ends_with_the_same_results(tmp_path):
    go = tmp_path / "go"
    work = {"sources": ["@data//value.txt"], "steps": 6, "go": str(go)}
    cells = [Cell("data", "fake", {"value": 2, "steps": 2})]
    cells += [Cell(f"m{i}", "fake", {**work, "value": i}) for i in range(4)]
    go.touch()
    expected = results(Grid(cells, tmp_path / "whole").run(2, RUNNER, poll_seconds=0.02))
    go.unlink()
    process = started(cells, tmp_path / "cut", 2)
    grid = Grid(cells, tmp_path / "cut")
    wait_until(lambda: progress(grid, "m0") >= 3 or progress(grid, "m1") >= 3)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert any(s.state != FINISHED for s in grid.statuses().values())
    go.touch()
    status = grid.run(2, RUNNER, poll_seconds=0.02)
    assert results(status) == expected
    assert calls(grid, "data") == 1
    assert max(calls(grid, f"m{i}") for i in range(4)) == 2  # the interrupted ones, continued


def test_told_to_end_it_lets_its_workers_save(tmp_path):
    saved = tmp_path / "saved"
    config = {"steps": 5, "saves": str(saved), "go": str(tmp_path / "never")}
    grid = Grid([Cell("slow", "fake", config)], tmp_path / "cells")

    def end(event, name, status):
        if progress(grid, "slow"):
            os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit, match="143"):
        grid.run(1, RUNNER, on_event=end, poll_seconds=0.02)
    assert saved.read_text() == "saved" and grid.status("slow").state == PENDING
    assert signal.getsignal(signal.SIGTERM) == before


def test_one_run_at_a_time_in_a_folder(tmp_path):
    cells = [Cell("slow", "fake", {"steps": 5, "go": str(tmp_path / "never")})]
    process = started(cells, tmp_path, 1)
    try:
        grid = Grid(cells, tmp_path)
        wait_until(lambda: progress(grid, "slow") > 0)
        assert grid.status("slow").state == "running"
        with pytest.raises(UserError, match="is in use by process"):
            grid.run(1, RUNNER)
    finally:
        process.kill()
        process.wait()
    # The orphaned worker notices that its parent is gone and lets the cell go.
    wait_until(lambda: grid.status("slow").state == PENDING)


def started(cells, folder, workers):
    """Return the process of a grid that runs by itself."""
    script = (
        "from tests.experiments.tables.run.test_grid import Cell, CellInputs, Grid, RUNNER\n"
        f"Grid({cells!r}, {str(folder)!r}).run({workers}, RUNNER, poll_seconds=0.02)"
    )
    return subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parents[4])


def progress(grid, name):
    with contextlib.suppress(FileNotFoundError, ValueError):
        return int((grid.folder(name) / "progress").read_text())
    return 0


def wait_until(condition):
    while not condition():  # the limit of every test ends it
        time.sleep(0.02)
