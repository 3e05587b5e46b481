"""Provenance of a run: a stamp of the code that trained it, packages, machine and date.

versions.json holds that of the last session and, under "earlier", of the sessions that differed.
"""

import contextlib
import datetime
import functools
import hashlib
import importlib.metadata
import platform
import re
import shutil
import subprocess
from pathlib import Path

from data_prep.jobs import checked_json
from data_prep.jobs.processes import available_cores
from official_bert.common.json_files import field, list_of

FILE = "versions.json"
# Parts that two sessions must share to have computed the same numbers.
COMPARED = ("code", "python", "packages", "processor", "cores", "gpus")
_KINDS = {"code": str, "packages": dict, "gpus": str, "date": str}  # one of gpus
_PACKAGES = ("tensorflow", "keras", "numpy", "jax", "keras-hub", "tensorflow-text", "sentencex",
             "sentencepiece", "tokenizers", "scikit-learn")  # fmt: skip
_ROOT = Path(__file__).parents[3]
# The source that can change a number of a run: these files except those that only show or hand out
# what was computed. Configurations do not count here: a run's config.json holds its own.
_COMPUTES = ("official_bert", "data_prep", "experiments/training", "experiments/beyond",
             "experiments/tables/run/cells.py")  # fmt: skip
_ONLY_SHOWS = ("official_bert/export", "data_prep/show_records.py",
               "experiments/training/settings/config_files.py",
               "experiments/training/settings/config_flags.py",
               "experiments/training/settings/config_help.py",
               "experiments/training/folder/progress.py",
               "experiments/training/folder/provenance.py")  # fmt: skip

_TRIPLE = r'(?:"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\')'
_STRING = rf"(?P<string>{_TRIPLE}|" + r""""(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
_COMMENT = re.compile(rf"{_STRING}|#[^\n]*", re.DOTALL)
# Python's tokeniser would take a second for all files, and read f-strings differently by version.
_DOCSTRING = re.compile(rf"(?P<before>\A|:[ \t]*\n)\s*[rR]?{_TRIPLE}[ \t]*\n|{_STRING}", re.DOTALL)


def here() -> dict:
    """Describe this process: "code", "git_revision", "python", "packages", "processor",
    "cores", "gpus" and "date"."""
    return {
        "code": code_stamp(),
        "git_revision": _git_revision(),
        "python": platform.python_version(),
        "packages": _packages(),
        "processor": _processor(),
        "cores": available_cores(),
        "gpus": gpus(),
        "date": datetime.date.today().isoformat(),
    }


def note(folder: Path, **more) -> str:
    """Write versions.json of a session that begins in `folder`; `more`: further fields.

    Returns: the differences from the session before, in words; "" without any.
    """
    before = sessions(folder)
    now = here() | more
    earlier = [one for one in before if not same(one, now)]
    checked_json.write(Path(folder) / FILE, now | ({"earlier": earlier} if earlier else {}))
    return differences(before[-1], now) if before else ""


def sessions(folder: Path) -> list[dict]:
    """Return the provenance of each session whose work a folder holds, the last one at the end.

    Raises:
      UserError: the file is damaged, or a value has another type than in `here`.
    """
    path = Path(folder) / FILE
    if not path.exists():
        return []
    last = checked_json.read(path)
    found = [*list_of({"earlier": last.pop("earlier", [])}, "earlier", dict, path), last]
    for one in found:
        for name in _KINDS.keys() & one.keys():
            (list_of if name == "gpus" else field)(one, name, _KINDS[name], path)
    return found


def same(one: dict, other: dict) -> bool:
    return all(one.get(name) == other.get(name) for name in COMPARED)


def flat(one: dict) -> dict[str, str]:
    """Return the compared fields as {name: text}, each package under its own name."""
    values = {name: one[name] for name in COMPARED if name in one}
    values |= values.pop("packages", {})
    texts = {n: ", ".join(v) if isinstance(v, list) else str(v) for n, v in values.items()}
    return {name: text for name, text in texts.items() if text}


def differing(several: list[dict]) -> list[str]:
    """Return the names of `flat` whose values differ; empty dicts are skipped."""
    texts = [flat(one) for one in several if one]
    names = {name: None for one in texts for name in one}
    return [name for name in names if len({one.get(name, "none") for one in texts}) > 1]


def differences(one: dict, other: dict) -> str:
    """Return the differences of two sessions, as "code 12ab34cd -> 56ef78ab, keras 3.14 ->
    3.15"."""
    old, new = flat(one), flat(other)
    names = differing([one, other])
    return ", ".join(f"{n} {old.get(n, 'none')} -> {new.get(n, 'none')}" for n in names)


@functools.cache
def code_stamp(root: Path = _ROOT) -> str:
    """Return a digest of the source that can change a number, without comments and docstrings."""
    digest = hashlib.sha256()
    for path in _sources(root):
        name = path.relative_to(root).as_posix()
        digest.update(f"{name}\n{_code_of(path.read_text(encoding='utf-8'))}\0".encode())
    return digest.hexdigest()[:12]


def _sources(root):
    found = {path for name in _COMPUTES for path in [root / name, *(root / name).rglob("*.py")]}
    left_out = [root / name for name in _ONLY_SHOWS]
    return sorted(
        path
        for path in found
        if path.is_file() and not any(path.is_relative_to(other) for other in left_out)
    )


def _code_of(source: str) -> str:
    """Return the lines of a module without comments, docstrings and blank lines."""
    source = _COMMENT.sub(lambda found: found["string"] or "", source)
    source = _DOCSTRING.sub(lambda found: found["string"] or found["before"], source)
    return "\n".join(line.rstrip() for line in source.splitlines() if line.strip())


@functools.cache
def _packages():
    found = {}
    for name in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


@functools.cache
def _git_revision():
    """Return the commit of the code, with "+" if files differ from it; "" outside a checkout."""
    command = ["git", "-C", str(_ROOT), "describe", "--always", "--abbrev=12", "--dirty=+"]
    return _said(command).strip()


@functools.cache
def _processor():
    with contextlib.suppress(OSError):
        described = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        if found := re.search(r"^model name.*?:(.*)", described, re.MULTILINE):
            return found[1].strip()
    return platform.processor() or platform.machine()


@functools.cache
def gpus() -> list[str]:
    """Return the names of the machine's NVIDIA GPUs, as the driver's tool lists them."""
    return re.findall(r"^GPU \d+: (.*?) \(UUID", _said(["nvidia-smi", "-L"]), re.MULTILINE)


def _said(command):
    """Return the standard output of a program; "" where it is not there or fails."""
    if shutil.which(command[0]) is None:
        return ""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout
