"""Origins of the runs behind a table: which code, packages and machines, and how many each.

A table may hold numbers of different code or machines only if its report says so.
"""

import collections
from collections.abc import Iterable

from experiments.tables.run.pool import FINISHED, Status
from experiments.training.folder import provenance
from official_bert.common.errors import UserError


def origins(statuses: Iterable[Status]) -> list[dict]:
    """Return one entry for each origin of the finished cells.

    It has "cells", their number, the dates "first" and "last", and the fields of
    `provenance.COMPARED`; cells of unknown origin have "cells" alone. A cell that other code
    continued has two origins.
    """
    found: list[dict] = []
    for status in statuses:
        for session in status.provenance or [{}] if status.state == FINISHED else []:
            same = [one for one in found if provenance.same(one, session)]
            entry = same[0] if same else {"cells": 0}
            if not same:
                found.append(entry)
                entry |= {n: session[n] for n in provenance.COMPARED if n in session}
            entry["cells"] += 1
            if date := session.get("date"):
                entry["first"] = min(date, entry.get("first", date))
                entry["last"] = max(date, entry.get("last", date))
    return found


def warnings(found: list[dict], now: dict | None = None) -> list[str]:
    """List what differs between the entries of `origins`, a line each; "code: 12ab (7 cells), ...".

    Args:
      now: of `provenance.here`, if this process is about to make more runs.
    """
    lines = []
    known = [one for one in found if "code" in one]
    if silent := sum(one["cells"] for one in found) - sum(one["cells"] for one in known):
        lines.append(f"unknown code and machine ({_cells(silent)})")
    values = {name: collections.Counter() for name in provenance.differing([*known, now or {}])}
    for name, counts in values.items():
        for one in known:
            counts[provenance.flat(one).get(name, "none")] += one["cells"]
        shown = ", ".join(f"{value} ({_cells(count)})" for value, count in counts.items())
        present = f"; now {provenance.flat(now).get(name, 'none')}" if now else ""
        lines.append(f"{name}: {shown}{present}")
    return lines


def _cells(number: int) -> str:
    return f"{number} cell{'s' * (number != 1)}"


def differences(statuses: Iterable[Status]) -> list[str]:
    """Return the `warnings` on the finished cells and this process, which would make the others."""
    return warnings(origins(statuses), provenance.here())


def of_tables(grids) -> list[str]:
    """Return the `differences` inside each of several tables, each line once."""
    lines = (line for grid in grids for line in differences(grid.statuses().values()))
    return list(dict.fromkeys(lines))


def refuse_warnings(lines: list[str]) -> None:
    """Raise UserError where there are warnings."""
    if lines:
        raise UserError(
            f"--strict: the runs are of different origin: {'; '.join(lines)}. Make all of them "
            "again in another folder (--workdir, --cells of experiments.ablate), or leave --strict "
            "out"
        )


def constraints(found: list[dict]) -> str:
    """Return a constraints file for pip: the versions behind most cells; "" where none are known.

    Args:
      found: of `origins`.
    """
    known = [one for one in found if one.get("packages")]
    if not known:
        return ""
    most = max(known, key=lambda one: one["cells"])
    packages = most["packages"]
    extra = "tensorflow" if "tensorflow" in packages else "jax"
    total = sum(one["cells"] for one in found)
    return (
        f"# Versions that made {most['cells']} of the {total} cells of this table, with Python "
        f"{most['python']}.\n# pip install -e '.[{extra}]' -c this file\n"
    ) + "".join(f"{name}=={version}\n" for name, version in sorted(packages.items()))
