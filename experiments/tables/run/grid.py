"""Runs a grid of cells: each at most once, several side by side, through kills and failures.

A cell is one piece of work with one result: a vocabulary, a set of records, a pre-training, a
fine-tuning. Its configuration may refer to a file of another cell as "@NAME//file"; such a cell
waits for the other. Its folder is a run's folder. The folder's name ends in a key, a digest of all
that determines the result: the format, the configuration, the keys of the cells and the
fingerprints of the files that it reads. Paths, devices and bookkeeping are not in it, so a result
is found again wherever the same question is asked. Code and machine are not in it either, for a
finished cell is never run again: versions.json names them, and `origins` compares them.
"""

import dataclasses
import glob
import hashlib
import json
import os
import re
from collections.abc import Callable, Container, Iterable
from pathlib import Path
from typing import Any

from data_prep.jobs.commands import ended_in_order
from data_prep.jobs.locks import exclusive, is_locked
from experiments.tables.run.pool import (
    FAILED,
    FINISHED,
    PENDING,
    RUNNING,
    Pool,
    Status,
    read_status,
)
from experiments.training.folder.run_folder import FAILURE
from experiments.training.folder.run_results import CellResults, of_cell
from official_bert.common.errors import UserError
from official_bert.common.files import remove

RUNNER = "experiments.tables.run.cells:run_cell"
FORMAT = 2  # of keys and folders; raise it when one of them or an option's default changes
_KEY = re.compile(r"(v\d+-)?[0-9a-f]{16}$")  # at the end of a folder's name


@dataclasses.dataclass(frozen=True)
class CellInputs:
    """The files that a cell reads from outside the grid, and how they enter its key.

    Attributes:
      ignored: top-level fields of `Cell.config` that are not in the key (paths, devices); cells
        that they refer to still are.
      fingerprints: digests, by any names, of what lies at the paths.
      paths: of all that is read; no output may replace it.
    """

    ignored: tuple[str, ...] = ()
    fingerprints: dict[str, str] = dataclasses.field(default_factory=dict)
    paths: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Cell:
    """One piece of work.

    Attributes:
      name: unique and readable, "finetune/QNLI/BERT/1-2".
      kind: chooses the function that runs it.
      config: JSON values; strings that start with "@NAME//" are files of the cell NAME. Options
        that have their defaults are left out, so that a new option changes no key.
      inputs: files from outside the grid.
      cost: estimated seconds, for the order and for `--dry_run`.
      bytes: estimated size of what it leaves on disk, for `--dry_run`.
      affinity: cells with the same one share compiled steps; a worker prefers them in a row.
      leaves_model: whether it keeps a model, which its key does not say; of equal cells that one is
        run.
      scored: whether archives keep its result and the scores of its examples.
      round: pre-training seed; cells of a lower one begin first, so that a table that is stopped is
        complete for its first seeds. 0: cells that all seeds share.
    """

    name: str
    kind: str
    config: dict[str, Any]
    inputs: CellInputs = CellInputs()
    cost: float = 1.0
    bytes: float = 1e5
    affinity: str = ""
    leaves_model: bool = False
    scored: bool = False
    round: int = 0

    @property
    def needs(self) -> tuple[str, ...]:
        """The names of the cells that this one refers to, in order of appearance."""
        needs: dict[str, None] = {}
        _replace_references(self.config, lambda need, rest: needs.setdefault(need))
        return tuple(needs)


def reference(cell: str, path: str = "") -> str:
    """Return the text by which a cell's configuration refers to a file or folder of another cell;
    "" is its whole folder."""
    return f"@{cell}" + f"//{path}" * bool(path)


def referred(value: Any) -> tuple[str, str]:
    """Return (cell, path inside its folder) of a `reference`; ("", "") of any other value."""
    if not (isinstance(value, str) and value.startswith("@")):
        return "", ""
    cell, _, path = value[1:].partition("//")
    return cell, path


class Grid:
    """The cells of an experiment and the folder that holds their work.

    Args:
      cells: in the order in which a reader wants to see them.
      root: folder with one subfolder a cell; may be shared by several grids.

    Raises:
      UserError: two cells share a name, a name has "//", or a cell refers to one that is not there
        or to itself.
    """

    def __init__(self, cells: Iterable[Cell], root: str | os.PathLike):
        self.root = Path(os.path.realpath(root))
        self.cells: dict[str, Cell] = {}
        for cell in cells:
            if cell.name in self.cells and self.cells[cell.name] != cell:
                raise UserError(f"two cells are named {cell.name}; rename a row or a column")
            if "//" in cell.name:
                raise UserError(f"cell {cell.name}: the name of a row, column or variant holds //")
            self.cells[cell.name] = cell
        self._keys: dict[str, str] = {}
        for name in self.cells:
            self.key(name)
        # Another table may have made the same cell under another name.
        found = ((_KEY.search(path.name), path) for path in sorted(self.root.glob("*-*")))
        self._others = {key[0]: path for key, path in found if key}

    def key(self, name: str, _path: tuple[str, ...] = ()) -> str:
        """Return the cell's key: the format, "v2-", and a hexadecimal digest of what determines the
        result."""
        if name not in self.cells:
            raise UserError(f"cell {_path[-1] if _path else '?'} needs {name}, which is not there")
        if name in _path:
            raise UserError(f"cells need each other in a circle: {' -> '.join((*_path, name))}")
        if name not in self._keys:
            cell = self.cells[name]
            keys = {need: self.key(need, (*_path, name)) for need in cell.needs}
            config = {k: v for k, v in cell.config.items() if k not in cell.inputs.ignored}
            config = _replace_references(config, lambda need, rest: f"@{keys[need]}{rest}")
            # All needed keys, since an ignored field may refer to a cell too.
            needs = list(keys.values())
            determines = [FORMAT, cell.kind, config, cell.inputs.fingerprints, needs]
            text = json.dumps(determines, sort_keys=True)
            digest = hashlib.sha256(text.encode()).hexdigest()[:16]
            self._keys[name] = f"v{FORMAT}-{digest}"
        return self._keys[name]

    def folder(self, name: str) -> Path:
        """Return the folder with the cell's key; its name begins with that of the cell that made
        it."""
        key = self.key(name)
        readable = re.sub(r"[^A-Za-z0-9.+]+", "-", name).strip("-")[:80]
        own = self.root / f"{readable}-{key}"
        return own if own.is_dir() else self._others.get(key, own)

    def resolved(self, name: str) -> dict[str, Any]:
        """Return the cell's configuration with references turned into paths."""
        return _replace_references(
            self.cells[name].config, lambda need, rest: str(self.folder(need)) + rest
        )

    def status(self, name: str) -> Status:
        """Read a cell's state from its files; a cell whose runner was killed is pending again."""
        folder = self.folder(name)
        ended = read_status(folder)
        if ended:
            return ended
        for need in self.cells[name].needs:
            other = self.status(need)
            if other.state == FAILED:
                why = other.reason
                whole = why if why.startswith("needs ") else f"needs {need}, which failed: {why}"
                return Status(FAILED, whole)
        return Status(RUNNING if is_locked(folder) else PENDING)

    def results(self, name: str, status: Status) -> CellResults:
        """Return the results in a finished cell's status as its kind's dataclass.

        Raises:
          UserError: a field is missing or of another type.
        """
        return of_cell(self.cells[name].kind, status.result or {}, str(self.folder(name)))

    def statuses(self) -> dict[str, Status]:
        return {name: self.status(name) for name in self.cells}

    def of_seeds(self, seeds: Iterable[int | str]) -> set[str]:
        """Return the names of the cells that some pre-training seeds need; no seeds: of all.

        Raises:
          UserError: a seed is not one of the cells'.
        """
        known = {str(cell.round) for cell in self.cells.values() if cell.round}
        asked = {str(seed) for seed in seeds}
        if unknown := asked - known:
            listed = ", ".join(sorted(known, key=int)) or "it has none"
            raise UserError(
                f"seed {min(unknown)} is not a pre-training seed of the table: {listed}"
            )
        wanted, found = {"0", *(asked or known)}, set()
        new = {name for name, cell in self.cells.items() if str(cell.round) in wanted}
        while new:  # what its cells refer to, and so on
            found |= new
            new = {need for name in new for need in self.cells[name].needs} - found
        return found

    def run(
        self,
        workers: int = 1,
        runner: str = RUNNER,
        retry_failed: bool = True,
        on_event: Callable[[str, str, Status], None] = lambda event, name, status: None,
        poll_seconds: float = 0.2,
        only: Container[str] | None = None,
    ) -> dict[str, Status]:
        """Run every cell that has no result yet; return the states of all.

        Args:
          workers: processes side by side.
          runner: "module:function", called as function(kind, config, folder) -> result (JSON).
          retry_failed: cells that failed in an earlier call are tried again.
          on_event: called with ("started" | "finished" | "failed" | "waiting", cell, status).
          poll_seconds: how often the workers are looked at.
          only: names of the cells to run; None: all.

        Raises:
          UserError: another process is running cells in this folder; the folder holds cells of
            another format, or a finished cell without a file that others need (`archives` keep no
            models).
        """
        if foreign := [p.name for k, p in self._others.items() if k[:-16] != f"v{FORMAT}-"]:
            raise UserError(
                f"{self.root} holds {len(foreign)} cells of another format ({foreign[0]}), which "
                "this version neither reads nor removes; choose another --cells or --workdir"
            )
        with exclusive(self.root), ended_in_order():
            for name in self.cells:
                folder = self.folder(name)
                ended = read_status(folder)
                if ended and ended.state == FAILED and retry_failed:
                    remove(folder / FAILURE)
            if lacking := self._lacking():
                raise UserError(
                    "cells have a result, but not the file that others need, as where they came "
                    "from an archive; delete these folders, and they are run again:\n"
                    + "\n".join(f"  {folder} ({path})" for folder, path in lacking)
                )
            Pool(self, workers, runner, on_event, poll_seconds).run(only)
        return self.statuses()

    def _lacking(self) -> list[tuple[Path, str]]:
        """Return (folder of a finished cell, missing file there that a pending one needs)."""
        statuses, lacking = self.statuses(), {}

        def look(need, rest):
            folder = self.folder(need)
            if statuses[need].state == FINISHED and not glob.glob(glob.escape(str(folder)) + rest):
                lacking[folder, rest[1:]] = None

        for name, status in statuses.items():
            if status.state == PENDING:
                _replace_references(self.cells[name].config, look)
        return [*lacking]

    def ranks(self) -> dict[str, float]:
        """Return the estimated seconds from the start of each cell to the end of all that wait for
        it."""
        waiting = {name: [] for name in self.cells}
        for name, cell in self.cells.items():
            for need in cell.needs:
                waiting[need].append(name)
        ranks: dict[str, float] = {}

        def rank(name):
            if name not in ranks:
                ranks[name] = self.cells[name].cost + max(map(rank, waiting[name]), default=0.0)
            return ranks[name]

        for name in self.cells:
            rank(name)
        return ranks


def joined(grids: dict[str, Grid]) -> Grid:
    """Return one grid of the cells of several in one folder, each key once.

    Args:
      grids: {name: Grid}; if two cells of one name differ, the later grid's is called "NAME: CELL".
    """
    names: dict[str, str] = {}  # of keys
    for table, grid in grids.items():
        for name in grid.cells:
            taken = name in names.values()
            names.setdefault(grid.key(name), f"{table}: {name}" if taken else name)
    cells: dict[str, Cell] = {}
    for grid in grids.values():
        for name, cell in grid.cells.items():
            new = names[grid.key(name)]

            def renamed(need, rest, grid=grid):
                return reference(names[grid.key(need)], rest[1:])

            made = dataclasses.replace(
                cell, name=new, config=_replace_references(cell.config, renamed)
            )
            seen = cells.get(new, made)
            cells[new] = dataclasses.replace(
                seen if seen.leaves_model else made,
                scored=made.scored or seen.scored,
                round=min(made.round, seen.round),
            )
    return Grid(cells.values(), next(iter(grids.values())).root)


def _replace_references(value: Any, replace: Callable[[str, str], Any]) -> Any:
    """Return a value with every "@pretrain/BERT/1//model" made replace("pretrain/BERT/1",
    "/model").

    A cell's name holds single slashes only.
    """
    cell, path = referred(value)
    if cell:
        return replace(cell, f"/{path}" if path else "")
    if isinstance(value, dict):
        return {key: _replace_references(inner, replace) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_replace_references(inner, replace) for inner in value]
    return value
