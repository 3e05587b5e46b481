"""Digest of the examples that cells read."""

import functools
import hashlib
import json

from data_prep.tasks import get_task


def task_digest(config) -> tuple[str, int, int]:
    """(digest of the training and dev examples of a FinetuneConfig's task, their numbers)"""
    options = json.dumps(config.task_options, sort_keys=True)
    return _task_digest(config.task, config.data_dir, options)


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
