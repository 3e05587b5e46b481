"""What a table's cells gave, a small file a pre-training seed that can be kept in a repository.

An archive holds the results and the scores by example of the seed's finished cells, and no models
or data. Unpacked into a folder of cells it makes them finished there: the report can be made again,
or another question asked of the same runs, on any machine that has the data that the table names.
"""

import io
import itertools
import tarfile
from pathlib import Path

from data_prep.jobs import storage
from experiments.tables.grid import Grid
from experiments.tables.status import FINISHED
from official_bert.files import atomic_write

SCORED = ("pretrain", "finetune", "cloze", "pairs")
KEPT = ("cell.json", "run/example_scores.npz")


def write(grid: Grid, folder: Path) -> list[Path]:
    """Writes `folder`/seed-N.tar.gz for each seed with finished cells; returns the paths.

    The same cells give the same bytes. Seed 0 has the rows that no pre-training of the table's own
    goes before.
    """
    seeds: dict[int, list[Path]] = {}
    for name, cell in grid.cells.items():
        if cell.kind in SCORED and grid.status(name).state == FINISHED:
            seeds.setdefault(cell.round, []).append(grid.folder(name))
    paths = []
    for seed, cells in sorted(seeds.items()):
        paths.append(folder / f"seed-{seed}.tar.gz")
        with (
            atomic_write(paths[-1], "wb") as file,
            storage.packing(file) as packed,
            tarfile.open(fileobj=packed, mode="w") as archive,
        ):
            for cell, kept in itertools.product(sorted(cells), KEPT):
                if (cell / kept).exists():
                    _add(archive, f"{cell.name}/{kept}", (cell / kept).read_bytes())
    return paths


def _add(archive: tarfile.TarFile, name: str, data: bytes):
    """Adds a file without its time and owner."""
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    archive.addfile(entry, io.BytesIO(data))
