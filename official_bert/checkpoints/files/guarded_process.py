"""Files of strangers whose readers are C or C++ code are read in a process of their own.

Such a file may keep its reader busy for ever, take all memory, or crash it.

The process has limits of processor time, of memory (on Linux) and of bytes to write, in proportion
to the file. It ends with the call, after Ctrl-C too. Its result comes back as a safetensors file.
It keeps mishaps away; it is not a sandbox against code that a file brings along.
"""

import contextlib
import importlib
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from official_bert.common.errors import UserError, first_line

_SECONDS, _BYTES_PER_SECOND = 60, 5_000_000  # of processor time; network disks take more
_MEMORY, _TIMES = 1 << 29, 6  # above what the libraries take; a file's arrays, and copies of them
_RESULT, _ERROR, _NOISE = "arrays.safetensors", "error.txt", "stderr.txt"
# Threads of a library reserve much more memory than they use; reading a file needs no device.
_FEW_THREADS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "1",
    "CUDA_VISIBLE_DEVICES": "",
}


def arrays(
    reader: str, path: str | os.PathLike, library: str, seconds: int | None = None
) -> dict[str, np.ndarray]:
    """Call `reader` on a file, in a process of its own, and return its arrays.

    Args:
      reader: "module:function" of the path, which returns arrays by name, of numpy's own types.
      path: the file.
      library: module that the function imports; it is loaded before the limits count.
      seconds: of processor time; by default in proportion to the file.

    Raises:
      UserError: the reader says so, fails, crashes, or does not end within its limits.
    """
    from safetensors.numpy import load_file

    path = Path(path)
    if not path.is_file():
        raise UserError(f"{path}: cannot be read (no such file)")
    size = path.stat().st_size
    seconds = seconds or _SECONDS + size // _BYTES_PER_SECOND
    with tempfile.TemporaryDirectory(prefix="official-bert-") as folder:
        code = _run(reader, path, library, folder, seconds, size)
        if (error := Path(folder, _ERROR)).is_file():
            raise UserError(error.read_text("utf-8", "replace"))
        if code == 0:
            return load_file(Path(folder, _RESULT))
        noise = Path(folder, _NOISE).read_text("utf-8", "replace").strip().rpartition("\n")[2]
    raise UserError(
        f"{path}: cannot be read: its reader ({library}) {_reason(code, seconds)}; the file is "
        f"damaged or made to do so{f' ({noise[-200:]})' if noise else ''}"
    )


def _run(reader, path: Path, library, folder: str, seconds: int, size: int) -> int | None:
    """Return the exit code of the process; None where it had to be stopped."""
    places = [str(Path(__file__).parents[2]), *filter(None, sys.path)]
    environment = {**os.environ, **_FEW_THREADS, "PYTHONPATH": os.pathsep.join(places)}
    # -P: nothing is imported from the folder in which the user happens to be.
    command = [sys.executable, "-P", "-m", "official_bert.checkpoints.files.guarded_process"]
    command += [reader, str(path.absolute()), library, folder, str(seconds), str(size)]
    options = {"stdin": subprocess.DEVNULL, "env": environment, "check": False}
    options["timeout"] = 10 * seconds  # for a reader that waits, which takes no processor time
    with open(Path(folder, _NOISE), "wb") as noise:
        try:
            return subprocess.run(command, stdout=noise, stderr=noise, **options).returncode
        except subprocess.TimeoutExpired:
            return None


def _reason(code: int | None, seconds: int) -> str:
    if code is None or code == -signal.SIGXCPU:
        return f"did not end within {seconds} s"
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"crashed ({signal.Signals(-code).name})"
    return f"failed (exit code {code})"


def _read_here(reader: str, path: str, library: str, folder: str, seconds: str, size: str) -> None:
    """Read the file and write its arrays, inside the guarded process."""
    from safetensors.numpy import save_file

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's own waits for C code to return
    module, _, name = reader.partition(":")
    read = getattr(importlib.import_module(module), name)
    importlib.import_module(library)
    _limit(int(seconds), int(size))
    try:
        found: Mapping[str, np.ndarray] = read(path)
        contiguous = {key: np.ascontiguousarray(array) for key, array in found.items()}
        save_file(contiguous, Path(folder, _RESULT))
    except UserError as error:
        reason = str(error)
    except Exception as error:  # libraries raise every kind of exception for damage
        reason = f"{path}: cannot be read ({first_line(error)[:500]}); the file is damaged"
    else:
        return
    Path(folder, _ERROR).write_text(reason, "utf-8", "replace")
    raise SystemExit(2)


def _limit(seconds: int, size: int) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    spent = int(used.ru_utime + used.ru_stime) + 1
    limits = {"RLIMIT_CPU": spent + seconds, "RLIMIT_CORE": 0}
    limits["RLIMIT_FSIZE"] = _MEMORY + _TIMES * size
    with contextlib.suppress(OSError):  # without /proc the memory has no limit
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limits["RLIMIT_AS"] = pages * resource.getpagesize() + _MEMORY + _TIMES * size
    for name, most in limits.items():
        with contextlib.suppress(OSError, ValueError):  # a limit that is lower already
            # At the soft limit the process gets SIGXCPU, at the hard one SIGKILL.
            resource.setrlimit(getattr(resource, name), (most, most + 1))


if __name__ == "__main__":
    _read_here(*sys.argv[1:])
