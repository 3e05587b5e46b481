"""Digests of files and examples: a result belongs to what was read, not to where it lay."""

import functools
import hashlib
import json
from pathlib import Path

from data_prep.tasks import get_task
from official_bert.checkpoints import resolve
from official_bert.common.checksums import sha256_file
from official_bert.common.errors import UserError


def files_digest(paths: tuple[str, ...]) -> str:
    """Of names and contents, not of places."""
    digest = hashlib.sha256()
    for path in paths:
        changed = Path(path).stat()
        contents = _sha256(path, changed.st_mtime_ns, changed.st_size)
        digest.update(f"{Path(path).name} {contents}\n".encode())
    return digest.hexdigest()[:16]


def checkpoint_digest(checkpoint: str) -> str:
    """Of the files of a folder, or of the folder of a checkpoint's prefix; of a preset its name.

    Of a model of the hub its name and commit.
    """
    try:
        folder = resolve.find(checkpoint)
    except UserError:
        return checkpoint  # the run itself will say so
    if isinstance(folder, str):
        return folder
    if not folder.is_dir():
        folder = folder.parent
    if folder.parent.name == "snapshots":  # a cache of the hub, to which other programs add files
        return folder.name
    # A card says what the model is, and may be written after it was used.
    found = (p for p in folder.iterdir() if p.is_file() and p.name[0] != "." and p.suffix != ".md")
    return files_digest(tuple(sorted(map(str, found))))


def examples_digest(*splits: list) -> str:
    """Of what tasks made of their files."""
    digest = hashlib.sha256()
    for example in (example for examples in splits for example in examples):
        digest.update(repr(example).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]


def task_digest(config) -> tuple[str, int, int]:
    """(digest of the training and dev examples of a FinetuneConfig's task, their numbers)"""
    options = json.dumps(config.task_options, sort_keys=True)
    return _task_digest(config.task, config.data_dir, options)


@functools.cache
def _task_digest(name: str, data_dir: str, options: str) -> tuple[str, int, int]:
    task = get_task(name, data_dir, **json.loads(options))
    train, dev = task.examples("train"), task.examples("dev")
    return examples_digest(train, dev), len(train), len(dev)


@functools.lru_cache(maxsize=10_000)
def _sha256(path: str, _changed: int, _size: int) -> str:
    return sha256_file(path)
