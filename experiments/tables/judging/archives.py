"""Archives of a table's cells: one file a pre-training seed, small enough for a repository.

An archive holds the results, the origins and the scores by example of the seed's finished cells,
and no models or data. From it and results.json anybody can make the report again (`runs`). Cells
that are unpacked into a folder of cells count as finished there: on any machine that has the
table's data, further questions can be asked of the same runs.
"""

import io
import itertools
import tarfile
import tempfile
from pathlib import Path

import numpy as np

from data_prep.corpus.packed_files import open_bytes
from data_prep.jobs import checked_json, storage
from experiments.tables.judging import measures
from experiments.tables.judging.intervals import Run
from experiments.tables.judging.results import Results
from experiments.tables.run.grid import Grid
from experiments.tables.run.pool import FINISHED
from experiments.training.finetuning import example_scores
from experiments.training.folder import provenance
from experiments.training.folder.run_folder import RESULTS
from experiments.training.folder.run_results import of_cell
from official_bert.common.errors import UserError
from official_bert.common.files import atomic_write

FOLDER = "archives"  # beside results.json
SCORES = "example_scores.npz"
KEPT = (RESULTS, provenance.FILE, SCORES)


def write(grid: Grid, folder: Path) -> list[Path]:
    """Write `folder`/seed-N.tar.gz for each seed with finished cells; return the paths.

    The same cells give the same bytes. Seed 0 has the rows that begin without a pre-training of
    this table.
    """
    seeds: dict[int, list[Path]] = {}
    for name, cell in grid.cells.items():
        if cell.scored and grid.status(name).state == FINISHED:
            seeds.setdefault(cell.round, []).append(grid.folder(name))
    paths = []
    for seed, cells in sorted(seeds.items()):
        paths.append(folder / f"seed-{seed}.tar.gz")
        with (
            atomic_write(paths[-1], "wb", own=True) as file,
            storage.gzipped(file) as compressed,
            tarfile.open(fileobj=compressed, mode="w") as archive,
        ):
            for cell, kept in itertools.product(sorted(cells), KEPT):
                if (cell / kept).exists():
                    _add(archive, f"{cell.name}/{kept}", (cell / kept).read_bytes())
    return paths


def runs(results: Results, folder: Path) -> dict[tuple[str, str], list[Run]]:
    """Return {(row, column): the runs in a table's results, with the influence of their examples}.

    Args:
      folder: of the archives.

    Raises:
      UserError: there are none, one is damaged, or a run of the results is in none.
    """
    paths = sorted(folder.glob("seed-*.tar.gz"))
    if not paths:
        raise UserError(
            f"{folder} has no archives (seed-*.tar.gz): claims are judged by the scores of single "
            "examples, which they keep; experiments.ablate writes them beside results.json"
        )
    metrics = {column.label: column.metric for column in results.columns}
    found = {}
    with tempfile.TemporaryDirectory() as cells:
        for path in paths:
            _unpack(path, cells)
        for row in results.rows:
            for label, scores in ((label, cell.scores) for label, cell in row.cells.items()):
                if scores:
                    found[row.label, label] = [
                        Run(*values, _influence(cells, name, metrics[label], folder))
                        for values, name in zip(scores.values, scores.folders, strict=True)
                    ]
    return found


def copies(table: Path, other: Path) -> dict[Path, Path]:
    """Return {path of an archive's copy in `other`: its path in `table`}, both of them folders."""
    found = sorted((table / FOLDER).glob("seed-*.tar.gz"))
    return {other / FOLDER / path.name: path for path in found}


def influence(cell: Path, metric: str) -> np.ndarray | None:
    """Return the influence of each example on a metric of a cell's run; None where it was not
    kept."""
    kept = example_scores.load(cell / SCORES, metric)
    return measures.influence(*kept) if kept else None


def union(cells: list[Path], metric: str) -> tuple[float, np.ndarray]:
    """Return (metric in points, influence of each example) over the examples of several cells'
    runs.

    Raises:
      UserError: a cell keeps no scores of its examples by this metric.
    """
    kept = [example_scores.load(cell / SCORES, metric) for cell in cells]
    if any(found is None for found in kept):
        raise UserError(f"{metric} of folds together: the cells keep no scores of their examples")
    measure, sums = kept[0][0], np.concatenate([sums for _, sums in kept])
    points = float(measures.measured(measure)(sums.sum(axis=0)))
    return points, measures.influence(measure, sums)


def _influence(unpacked: str, names, metric: str, folder: Path) -> np.ndarray | None:
    """Return the influence of the examples of one cell, or of a list of cells, each a fold."""
    cells = [Path(unpacked, name) for name in ([names] if isinstance(names, str) else names)]
    for cell in cells:
        if not (cell / RESULTS).exists():
            raise UserError(f"{folder} lacks the run {cell.name}, which results.json names")
    if not metric:
        result = checked_json.read(cells[0] / RESULTS, finite=False)
        metric = of_cell("finetune", result, f"{folder}: {cells[0].name}").main_metric
    return influence(cells[0], metric) if isinstance(names, str) else union(cells, metric)[1]


def _unpack(path: Path, folder: str) -> None:
    with open_bytes(str(path)) as content:
        try:
            with tarfile.open(fileobj=content, mode="r|") as archive:
                archive.extractall(folder, filter="data")
            while content.read(1 << 20):  # the checksum stands at the end
                pass
        except (tarfile.TarError, OSError) as error:
            raise UserError(f"{path} is damaged: {error}") from None


def _add(archive: tarfile.TarFile, name: str, data: bytes):
    """Add a file without its time and owner."""
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    archive.addfile(entry, io.BytesIO(data))
