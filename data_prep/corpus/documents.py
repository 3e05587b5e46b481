"""Documents from text files: one sentence a line, a blank line between documents.

This is the input format of the original's create_pretraining_data and what `data_prep.sentences`
and `data_prep.wikipedia` write.
"""

import os
import re
from collections.abc import Iterable, Iterator

from data_prep.corpus.text_files import text_lines
from data_prep.jobs import storage
from official_bert.common.errors import UserError

# What the commands write beside texts, and further files of a folder that are no text.
_BESIDE_TEXTS = re.compile(r"(sentences|report|options|manifest)\.json|articles-\d+\.jsonl\.gz")
_NO_TEXT = re.compile(rf"[._].*|{_BESIDE_TEXTS.pattern}")


def documents(paths: str | Iterable[str]) -> Iterator[list[str]]:
    """Yields each document of the files, in order, as its list of sentences.

    Lines are stripped; empty documents (several blank lines in a row) are skipped. A document also
    ends where its file ends. Files are read as they are needed: memory holds one document.

    Args:
      paths: files, plain or packed; see `expand_inputs` for globs.

    Raises:
      UserError: as `text_lines`, or no file holds a single sentence.
    """
    paths = [paths] if isinstance(paths, str) else list(paths)
    if not paths:
        raise UserError("no input files were given")
    any_text = False
    for path in paths:
        document = []
        for line in text_lines(path):
            line = line.strip()
            if line:
                document.append(line)
            elif document:
                any_text = True
                yield document
                document = []
        if document:
            any_text = True
            yield document
    if not any_text:
        raise UserError(f"no text in the input: {_some(paths)} hold nothing but blank lines")


def expand_inputs(globs: str | Iterable[str]) -> list[str]:
    """The files that glob patterns name, without repetitions: patterns in order, matches sorted.

    Args:
      globs: one string (several patterns separated by commas) or a list of such strings. `**`
        matches folders at any depth. A folder stands for the files below it, without hidden ones
        and those that the commands write beside texts. A path that exists is taken as it is,
        whatever characters it has. Remote paths ("gs://...") go through `storage`.

    Raises:
      UserError: nothing given, or a pattern that matches no file.
    """
    patterns = split_patterns(globs)
    if not patterns:
        raise UserError("no input files were given")
    paths = {}  # a dict keeps the order and drops repetitions
    for pattern in patterns:
        matches = _matches(pattern)
        if not matches:
            raise UserError(f"no file matches {pattern!r} (current folder: {os.getcwd()})")
        paths.update(dict.fromkeys(matches))
    return list(paths)


def places_of(globs: str | Iterable[str]) -> list[str]:
    """The folders and patterns of what `expand_inputs` was given: no output must be in them."""
    return [name for name in split_patterns(globs) if not os.path.isfile(name)]


def split_patterns(globs: str | Iterable[str]) -> list[str]:
    """The patterns of `expand_inputs`, one by one; a path that exists is one, commas and all."""
    patterns = []
    for text in [globs] if isinstance(globs, str) else globs:
        split = [text] if os.path.exists(text) else text.split(",")
        patterns += [part if os.path.exists(part) else part.strip() for part in split]
    return list(filter(None, patterns))


def _matches(pattern: str) -> list[str]:
    if storage.is_directory(pattern):
        below = storage.files_below(pattern.rstrip("/") or pattern)
        return [path for path in below if not _NO_TEXT.fullmatch(os.path.basename(path))]
    if storage.exists(pattern):
        return [pattern]
    return [path for path in storage.matches(pattern) if not _is_beside_texts(path)]


def _is_beside_texts(path: str) -> bool:
    name = os.path.basename(path)
    known = _BESIDE_TEXTS.fullmatch(name) is not None
    return known and (name.endswith(".gz") or storage.is_written_here(path))


def _some(paths: list[str]) -> str:
    shown = ", ".join(paths[:3])
    return shown if len(paths) <= 3 else f"{shown} and {len(paths) - 3} more files"
