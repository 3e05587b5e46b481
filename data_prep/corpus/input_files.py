"""The input files of a command: names, folders and patterns."""

import os
import re
from collections.abc import Iterable

from data_prep.jobs import checked_json, storage
from official_bert.common.errors import UserError
from official_bert.common.paths import is_remote, named_path

# Files that the commands write beside texts; a list of articles has a report beside it.
_RECORDS = re.compile(r"(sentences|report|options|manifest)\.json")
_ARTICLES = re.compile(r"articles-\d+\.jsonl\.gz")


def expand_inputs(globs: str | Iterable[str]) -> list[str]:
    """Return the files that glob patterns name, in the patterns' order, matches sorted.

    No file is repeated.

    Args:
      globs: one string (several patterns separated by commas) or a list of such strings. `**`
        matches folders at any depth. A folder stands for the files below it, without those whose
        names begin with a dot or "_". Neither a folder nor a pattern names what the commands wrote
        beside texts. A path that exists is taken as it is, whatever characters it has. Remote paths
        ("gs://...") go through `storage`.

    Raises:
      UserError: nothing given, or a pattern that matches no file.
    """
    patterns = split_patterns(globs)
    if not patterns:
        raise UserError("no input files were given")
    paths = []
    for pattern in patterns:
        matches = _matches(pattern)
        if not matches:
            raise UserError(f"no file matches {pattern!r} (current folder: {os.getcwd()})")
        paths += matches
    return each_once(paths)


def each_once(paths: Iterable[str]) -> list[str]:
    """Return paths without those that name a file again, in whatever spelling."""
    found = {}
    for path in paths:
        found.setdefault(path if is_remote(path) else str(named_path(path)), path)
    return list(found.values())


def places_of(globs: str | Iterable[str]) -> list[str]:
    """Return the folders and patterns given to `expand_inputs`, in which no output may lie."""
    return [name for name in split_patterns(globs) if not os.path.isfile(name)]


def split_patterns(globs: str | Iterable[str]) -> list[str]:
    """Return single patterns from the argument of `expand_inputs`.

    A path that exists is one pattern, with its commas.
    """
    patterns = []
    for text in [globs] if isinstance(globs, str) else globs:
        split = [text] if os.path.exists(text) else text.split(",")
        patterns += [part if os.path.exists(part) else part.strip() for part in split]
    return list(filter(None, patterns))


def _matches(pattern: str) -> list[str]:
    if storage.is_directory(pattern):
        below = storage.files_below(pattern.rstrip("/") or pattern)
        found = [path for path in below if not os.path.basename(path).startswith("_")]
    elif storage.exists(pattern):
        return [pattern]
    else:
        found = storage.matches(pattern)
    return [path for path in found if not _is_beside_texts(path)]


def _is_beside_texts(path: str) -> bool:
    folder, name = os.path.split(path)
    if _ARTICLES.fullmatch(name):
        return checked_json.is_ours(os.path.join(folder, "report.json"))
    return _RECORDS.fullmatch(name) is not None and checked_json.is_ours(path)
