"""Files and folders by the names that a table gives them: its texts, tasks and checkpoints."""

import importlib.util
import os
from pathlib import Path

from data_prep.corpus.input_files import expand_inputs
from experiments.tables.run.grid import referred
from official_bert.checkpoints import embedded
from official_bert.common.errors import UserError

_SAMPLE = "sample"  # "sample:NAME": of the data that the package brings


def inside(data_dir: str, path: str) -> Path:
    """Return a path inside the data folder; an absolute one is returned as it is."""
    if Path(path).is_absolute():
        return Path(path)
    if not data_dir:
        raise UserError(
            f"{path} is a file of the data folder, but there is none: set BERT_DATA_DIR or "
            "--config.data_dir"
        )
    return Path(os.path.realpath(data_dir), path)


def text_files(patterns, data_dir: str) -> list[str]:
    """Return the files of a `Text`, sorted."""
    files = []
    for pattern in patterns:
        source, _, name = pattern.partition(":")
        if source == _SAMPLE:
            from data_prep import sample

            files += sample.corpus_files(name or "*")
        else:
            files += expand_inputs([str(inside(data_dir, pattern))])
    return sorted(files)


def task_folder(folder: str, data_dir: str) -> str:
    """Return the folder of a task's files that `FinetuneConfig.data_dir` of a column names.

    That of another cell ("@NAME//FOLDER") is returned as it is; "" means the task's own place."""
    source, colon, name = folder.partition(":")
    if source == _SAMPLE and colon:
        from data_prep import sample

        return sample.task_dir(name)
    return str(inside(data_dir, folder)) if folder and not referred(folder)[0] else folder


def vocabulary(name: str, data_dir: str) -> str:
    """Return the file of a vocabulary: of a model of the package, or inside the data folder."""
    model = embedded.find(name)
    return str(model / "vocab.txt" if model.is_dir() else inside(data_dir, name))


def checkpoint(name: str) -> str:
    """Return the folder that "package:NAME/FOLDER" names; other checkpoints are returned as they
    are."""
    if not name.startswith("package:"):
        return name
    package, _, folder = name.removeprefix("package:").partition("/")
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):  # inside a package that is missing, or not a package's name
        spec = None
    if spec is None or not spec.origin:
        raise UserError(f"{name}: there is no such package (pip install {package})")
    return str(Path(spec.origin).parent / folder)


def earlier_model(name: str) -> str:
    """Return the folder of a model that an earlier table pre-trained.

    Raises:
      UserError: it is not there.
    """
    found = embedded.find(name)
    if not found.is_dir():
        raise UserError(
            f"{name} is missing; the package has one model a row, the repository has all of its "
            "tables': run the command in a clone of it"
        )
    return str(found)


def why_missing(name: str) -> str:
    """Return the reason why a file or a checkpoint is not to be had; "" where it is, or will be
    made by a cell."""
    try:
        path = checkpoint(name)
    except UserError as error:
        return str(error)
    there = referred(path)[0] or embedded.find(path).exists()
    return "" if there else f"{path} is missing"
