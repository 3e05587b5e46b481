"""The inputs and outputs of a command, named once before it works: what it reads stays unharmed."""

import os
import unicodedata
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from official_bert.common import manifests
from official_bert.common.errors import UserError
from official_bert.common.files import check_file, check_free
from official_bert.common.locks import LOCK_FILE
from official_bert.common.paths import OWN_STREAM, is_remote, real_path
from official_bert.common.system import ignores_case


def claim(
    inputs: Iterable[str | os.PathLike] = (),
    *,
    outputs: Iterable[str | os.PathLike] = (),
    files: Iterable[str | os.PathLike] = (),
    folders: Iterable[str | os.PathLike] = (),
    work: Iterable[str | os.PathLike] = (),
    overwrite: bool = False,
) -> None:
    """Checks, before any work, where a command reads and where it will write; called once by each.

    What killed processes left beside the outputs is removed. Paths that are empty or "-" do not
    count, and of remote ones (with "://") only their names do.

    Args:
      inputs: files, folders and patterns that are read; what does not exist (a preset's name) does
        no harm.
      outputs: files that the user named for what the command makes, written with `atomic_write`;
        what stands there is replaced with `overwrite` alone.
      files: others that will be written with `atomic_write`.
      folders: that will be written with `atomic_folder`, with `overwrite`.
      work: folders that are written to piece by piece.

    Raises:
      UserError: an output is an input, lies in one or around one, or would be one the next time;
        two outputs have one name to a disk that takes capital letters for small ones; or something
        stands there that this project did not write.
    """
    outputs = list(filter(_counts, outputs))
    files, folders, work = (
        list(filter(_counts, paths)) for paths in ((*outputs, *files), folders, work)
    )
    for source in filter(_counts, inputs):
        for output in (*files, *folders, *work):
            if how := _relation(source, output, output in files):
                raise UserError(
                    f"the output {output} {how} the input {source}, which must not change; "
                    "choose another"
                )
    for path in (*files, *folders, *work):
        if os.path.basename(os.path.normpath(path)) in (manifests.FILE, LOCK_FILE):
            raise UserError(f"{path} is a name of files that this project keeps; choose another")
    _check_apart(path for path in (*files, *folders, *work) if not is_remote(path))
    for path in work:
        if not is_remote(path) and os.path.lexists(path) and not os.path.isdir(path):
            raise UserError(f"{path} is a file; give a folder")
    for path in files:
        if not is_remote(path) and OWN_STREAM.fullmatch(str(path)) is None:
            target = real_path(path)
            is_file = check_file(target, path)
            if is_file and path in outputs and not overwrite and os.path.lexists(target):
                raise UserError(f"{path} exists already; choose another name or pass --overwrite")
    for parent in {os.path.dirname(real_path(path)) for path in files if not is_remote(path)}:
        manifests.clean(parent)
    for path in folders:
        check_free(path, overwrite)


def members(path: str | os.PathLike) -> list[str]:
    """The files right in a folder, of which a command reads some and which an output may lie
    beside; of anything else itself."""
    if is_remote(path) or not os.path.isdir(path):
        return [str(path)]
    return [entry.path for entry in os.scandir(path) if entry.is_file()]


def _check_apart(paths: Iterable[str | os.PathLike]) -> None:
    named: dict[str, Path] = {}
    for path in map(real_path, paths):
        other = named.setdefault(unicodedata.normalize("NFC", str(path)).casefold(), path)
        if other != path and ignores_case(path.parent):
            raise UserError(
                f"the outputs {other} and {path} are one file on this disk, which does not tell "
                "capital letters from small ones; choose other names"
            )


def _relation(source, output, is_file: bool) -> str:
    """How writing `output` could change `source`, or what it reads the next time; "" if not."""
    read, written = (Path(p if is_remote(p) else os.path.realpath(p)) for p in (source, output))
    if not is_remote(source) and not os.path.lexists(source):  # a pattern, or a preset's name
        path, pattern = str(written), str(read)
        named = fnmatchcase(path, pattern) if "**" in pattern else written.match(pattern)
        return "is named by" if is_file and named else ""
    plain = os.path.isfile(read) or os.path.isdir(read)  # who reads a device may write to it
    if written == read or plain and os.path.exists(written) and os.path.samefile(read, written):
        return "is"
    return "holds" if written in read.parents else "lies in" if read in written.parents else ""


def _counts(path) -> bool:
    return str(path) not in ("", "-", "None")
