"""Digests of files: a result belongs to what was read, not to the place where it lay."""

import functools
import hashlib
from pathlib import Path

from official_bert.checkpoints import embedded
from official_bert.files import sha256_file


def files_digest(paths: tuple[str, ...]) -> str:
    """Of names and contents, not of places."""
    digest = hashlib.sha256()
    for path in paths:
        changed = Path(path).stat()
        contents = _sha256(path, changed.st_mtime_ns, changed.st_size)
        digest.update(f"{Path(path).name} {contents}\n".encode())
    return digest.hexdigest()[:16]


def checkpoint_digest(checkpoint: str) -> str:
    """Of a folder's files; of a preset its name."""
    folder = embedded.find(checkpoint)
    if not folder.is_dir():
        return checkpoint
    return files_digest(tuple(sorted(str(p) for p in folder.iterdir() if p.is_file())))


@functools.lru_cache(maxsize=10_000)
def _sha256(path: str, _changed: int, _size: int) -> str:
    return sha256_file(path)
