"""The state of a cell of a table, and the file in its folder that says so."""

import dataclasses
from pathlib import Path
from typing import Any

from data_prep.jobs import storage
from official_bert.common.json_files import field

PENDING, RUNNING, FINISHED, FAILED = "pending", "running", "finished", "failed"


@dataclasses.dataclass(frozen=True)
class Status:
    """How far a cell is, with the reason of a failure.

    Attributes:
      seconds: by the clock.
      started: in seconds since 1970.
      cpu_seconds: of all threads: what the cell costs on a machine that others use too.
      provenance: of each session that worked on it (`training.provenance`).
    """

    state: str
    reason: str = ""
    seconds: float = 0.0
    result: dict[str, Any] | None = None
    started: float = 0.0
    cpu_seconds: float = 0.0
    provenance: list[dict[str, Any]] = dataclasses.field(default_factory=list)


def write_status(folder: Path, status: Status) -> None:
    storage.write_json(folder / "cell.json", dataclasses.asdict(status))


def read_status(folder: Path) -> Status | None:
    """The end of a cell, or None where it has not ended."""
    path = folder / "cell.json"
    if not path.exists():
        return None
    record = storage.read_json(path, finite=False)
    field(record, "state", str, path)
    names = {field.name for field in dataclasses.fields(Status)}
    return Status(**{name: value for name, value in record.items() if name in names})
