"""The origins of a table's runs: counted, said where they differ, refused on request."""

import dataclasses
import json
from pathlib import Path

import pytest

from experiments.tables.judging import results
from experiments.tables.reporting import wording
from experiments.tables.run.grid import Cell, Grid
from experiments.tables.run.origins import origins, refuse_warnings, warnings
from experiments.tables.run.pool import FAILED, FINISHED, Status, read_status
from experiments.training.folder import provenance
from official_bert.common.errors import UserError

RUNNER = "tests.experiments.tables.run.fake_cells:run_cell"
ONE = {
    "code": "aaaa", "git_revision": "1", "python": "3.12.1", "packages": {"keras": "3.15"},
    "processor": "CPU", "cores": 2, "gpus": [], "date": "2026-01-02",
}  # fmt: skip


def cell(*sessions, state=FINISHED):
    return Status(state, provenance=list(sessions))


def test_runs_of_one_origin_are_one_entry_without_warnings():
    later = ONE | {"date": "2026-01-05", "git_revision": "2", "seed": 3}
    found = origins([cell(ONE), cell(later), cell(ONE | {"code": "b"}, state=FAILED)])
    assert [(one["cells"], one["first"], one["last"]) for one in found] == [
        (2, "2026-01-02", "2026-01-05")
    ]
    assert warnings(found) == warnings(found, ONE) == []
    refuse_warnings([])


def test_what_differs_is_said_with_counts():
    other = ONE | {"code": "bbbb", "packages": {"keras": "3.16", "jax": "0.1"}, "gpus": ["H100"]}
    found = origins([cell(ONE), cell(ONE), cell(other), cell(ONE, other), cell()])
    assert [one["cells"] for one in found] == [3, 2, 1]
    said = [
        "unknown code and machine (1 cell)",
        "code: aaaa (3 cells), bbbb (2 cells)",
        "gpus: none (3 cells), H100 (2 cells)",
        "keras: 3.15 (3 cells), 3.16 (2 cells)",
        "jax: none (3 cells), 0.1 (2 cells)",
    ]
    assert sorted(warnings(found)) == sorted(said)
    with pytest.raises(UserError, match=r"--strict: the runs are of different origin: .*aaaa \(3"):
        refuse_warnings(warnings(found))
    assert warnings(origins([cell(ONE)]), other)[0] == "code: aaaa (1 cell); now bbbb"


def test_cells_keep_the_code_that_made_them_and_a_failed_one_that_goes_on_both(tmp_path):
    cells = [Cell("once", "fake", {"once": str(tmp_path / "seen"), "value": 2})]
    grid = Grid(cells, tmp_path / "cells")
    grid.run(1, RUNNER)
    assert grid.status("once").state == FAILED
    path = grid.folder("once")
    before = provenance.here() | {"code": "before"}
    provenance.checked_json.write(path / provenance.FILE, before)
    grid.run(1, RUNNER)
    kept = read_status(path).provenance
    assert [one["code"] for one in kept] == ["before", provenance.code_stamp()]
    found = origins(grid.statuses().values())
    assert "code: before (1 cell), " in warnings(found)[0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"packages": 3}, "packages must be a JSON object"),
        ({"gpus": [3]}, r"gpus\[0\] must be a text"),
        ({"date": 3}, "date must be a text"),
        ({"earlier": [3]}, r"earlier\[0\] must be a JSON object"),
    ],
)
def test_versions_that_are_none(tmp_path, changes, message):
    (tmp_path / provenance.FILE).write_text(json.dumps(ONE | changes))
    with pytest.raises(UserError, match=r"versions\.json: " + message):
        provenance.sessions(tmp_path)


def test_a_footer_names_the_machines_of_the_runs():
    path = Path(__file__).parents[4] / "experiments/results/table5/squad/results.json"
    table = dataclasses.replace(results.read(path), cells={"finished": 3})
    other = dataclasses.replace(cell(ONE | {"processor": "GPU host", "cores": 1, "gpus": ["H100"]}))
    shown = wording.footer(dataclasses.replace(table, origins=origins([cell(ONE)])))
    assert "Python 3.12.1, keras 3.15, code aaaa, on CPU with 2 cores, 2026-01-02; 3" in shown
    several = origins([cell(ONE), cell(ONE), other, cell()])
    shown = wording.footer(dataclasses.replace(table, origins=several))
    assert "2 cells with Python" in shown and "on GPU host with 1 core and H100" in shown
    assert "1 cell of unknown code and machine" in shown
