"""One walk for all that read files: the files that a path, a folder or a pattern names.

A name that exists is taken as it is, whatever characters it has; other names are patterns. A folder
to which several links lead is read once, by the shortest path. A link that leads nowhere counts as
a file, so that reading it is refused and no text is missing unnoticed.
"""

import errno
import fnmatch
import os
import re
from collections.abc import Iterator

from official_bert.common.errors import os_errors

_MAGIC = re.compile(r"[*?[]")


def files_below(folder: str | os.PathLike) -> list[str]:
    """Return the files in a folder, at any depth, sorted, without hidden ones."""
    return sorted(path for path, is_file in _walk(os.fspath(folder)) if is_file)


def matches(pattern: str | os.PathLike, folders: bool = False) -> list[str]:
    """Return the files of a name or a pattern, sorted; `**` stands for folders at any depth.

    Names that begin with a dot match only patterns that do.

    Args:
      folders: whether folders count, too.
    """
    pattern = os.fspath(pattern)
    if os.path.lexists(pattern) or not _MAGIC.search(pattern):
        return [pattern] if _counts(pattern, folders) else []
    parts = pattern.split(os.sep)
    first = next(i for i, part in enumerate(parts) if _is_pattern(os.sep.join(parts[: i + 1])))
    start = os.sep.join(parts[:first])
    found = {start + os.sep if first and not start else start}
    for part in parts[first:]:
        found = {path for folder in found for path in _step(folder, part)}
    return sorted(path for path in found if _counts(path, folders))


def _is_pattern(path: str) -> bool:
    return bool(_MAGIC.search(path)) and not os.path.lexists(path)


def _counts(path: str, folders: bool) -> bool:
    return _is_file(path) or (folders and os.path.isdir(path))


def _is_file(path: str) -> bool:
    return os.path.isfile(path) or (os.path.islink(path) and not os.path.exists(path))


def _step(folder: str, part: str) -> Iterator[str]:
    """Yield the paths in a folder that one part of a pattern names."""
    exact = os.path.join(folder, part)
    if part == "**":
        yield folder
        yield from (path for path, _ in _walk(folder))
    elif not part or os.path.lexists(exact):
        yield exact if part else folder
    elif _MAGIC.search(part):
        hidden = part.startswith(".")
        names = (name for name in _names(folder) if hidden or not name.startswith("."))
        yield from (os.path.join(folder, n) for n in names if fnmatch.fnmatchcase(n, part))


def _walk(folder: str) -> Iterator[tuple[str, bool]]:
    """Yield (path, whether it is a file) of all in a folder that is not hidden, parents first."""
    folders, seen = [folder], {os.path.realpath(folder or ".")}
    while folders:
        further = []
        for above in folders:
            for name in _names(above):
                path = os.path.join(above, name)
                if name.startswith("."):
                    continue
                if not os.path.isdir(path):
                    yield path, _is_file(path)
                elif (real := os.path.realpath(path)) not in seen:
                    seen.add(real)
                    further.append(path)
                    yield path, False
        folders = further


def _names(folder: str) -> list[str]:
    with os_errors(folder):
        try:
            return sorted(os.listdir(folder or "."))
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                raise
            return []
