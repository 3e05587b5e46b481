"""The check of a command's inputs and outputs before its work: no input may be harmed."""

import os
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from data_prep.jobs.locks import LOCK_FILE
from official_bert.common.errors import UserError
from official_bert.common.files import check_free
from official_bert.common.paths import OWN_STREAM, is_remote


def check_outputs(
    inputs: Iterable[str | os.PathLike] = (),
    *,
    outputs: Iterable[str | os.PathLike] = (),
    files: Iterable[str | os.PathLike] = (),
    work: Iterable[str | os.PathLike] = (),
    overwrite: bool = False,
) -> None:
    """Check what a command reads and where it will write; each command calls this once.

    Empty paths and "-" do not count; of remote paths (with "://") only the names are compared.

    Args:
      inputs: files, folders and patterns that are read; names that do not exist (a preset's) do no
        harm.
      outputs: files and folders that the command makes whole (`files.beside`); existing ones are
        refused, or renamed with `overwrite`.
      files: outputs that are files.
      work: folders that are written to piece by piece.

    Raises:
      UserError: an output is an input, lies inside or around one, or would match an input pattern
        the next time; the name of a file ends like a folder's; or an output exists.
    """
    outputs, work = list(filter(_counts, (*outputs, *files))), list(filter(_counts, work))
    for path in map(str, files):
        if path.endswith(("/", os.sep)):
            raise UserError(f"{path} names a folder, and a file is written; leave out what ends it")
    for source in filter(_counts, inputs):
        for output in (*outputs, *work):
            if how := _relation(source, output, output in outputs):
                raise UserError(
                    f"the output {output} {how} the input {source}, which must not change; "
                    "choose another"
                )
    for path in (*outputs, *work):
        if os.path.basename(os.path.normpath(path)) == LOCK_FILE:
            raise UserError(f"{path} is a name of files that this project keeps; choose another")
    for path in work:
        if not is_remote(path) and os.path.lexists(path) and not os.path.isdir(path):
            raise UserError(f"{path} is a file; give a folder")
    for path in outputs:
        if not is_remote(path) and OWN_STREAM.fullmatch(str(path)) is None:
            check_free(path, overwrite)


def members(path: str | os.PathLike) -> list[str]:
    """Return the files directly in a folder; any other path is returned alone.

    A command reads some of them, and its output may lie beside them.
    """
    if is_remote(path) or not os.path.isdir(path):
        return [str(path)]
    return [entry.path for entry in os.scandir(path) if os.path.isfile(entry)]  # or a link's loop


def _relation(source, output, is_file: bool) -> str:
    """Return how writing `output` could change `source`, now or the next time; "" if it cannot."""
    read, written = (Path(p if is_remote(p) else os.path.realpath(p)) for p in (source, output))
    if not is_remote(source) and not os.path.lexists(source):  # a pattern, or a preset's name
        path, pattern = str(written), str(read)
        named = fnmatchcase(path, pattern) if "**" in pattern else written.match(pattern)
        return "is named by" if is_file and named else ""
    plain = os.path.isfile(read) or os.path.isdir(read)  # a device may be read and written
    if written == read or plain and os.path.exists(written) and os.path.samefile(read, written):
        return "is"
    return "holds" if written in read.parents else "lies in" if read in written.parents else ""


def _counts(path) -> bool:
    return str(path) not in ("", "-", "None")
