"""Digests of what cells read: a result belongs to the contents of files, not to their places."""

import functools
import hashlib
import json
from pathlib import Path

from data_prep.tasks import get_task
from official_bert.files import sha256_file


def task_digest(config) -> tuple[str, int, int]:
    """(digest of the training and dev examples of a FinetuneConfig's task, their numbers)"""
    options = json.dumps(config.task_options, sort_keys=True)
    return _task_digest(config.task, config.data_dir, options)


@functools.cache
def files_digest(paths: tuple[str, ...]) -> str:
    """Of names and contents, not of places."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(f"{Path(path).name} {sha256_file(path)}\n".encode())
    return digest.hexdigest()[:16]


def checkpoint_digest(checkpoint: str) -> str:
    """Of a folder's files; of a preset its name."""
    folder = Path(checkpoint)
    if not folder.is_dir():
        return checkpoint
    return files_digest(tuple(sorted(str(p) for p in folder.iterdir() if p.is_file())))


@functools.cache
def _task_digest(name: str, data_dir: str, options: str) -> tuple[str, int, int]:
    task = get_task(name, data_dir, **json.loads(options))
    digest = hashlib.sha256()
    sizes = []
    for split in ("train", "dev"):
        examples = task.examples(split)
        sizes.append(len(examples))
        for example in examples:
            digest.update(repr(example).encode())
    return digest.hexdigest()[:16], sizes[0], sizes[1]
