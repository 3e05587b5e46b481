"""The core without the guests, in a copy of the tree (`make test-core`).

    python -m tests.core_alone [--table] [pytest arguments]

copies the tree without `experiments/beyond` and `tests/beyond`, imports every module there and
runs pytest with the arguments; --table runs a table in miniature too. An editable install would
serve the deleted folders from the original tree, so each Python of the copy drops its finder.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("official_bert", "data_prep", "experiments")
BEYOND = ("experiments/beyond", "tests/beyond")
# Python runs this file at its start, wherever it is found.
_SITE = """
import sys
sys.meta_path[:] = [each for each in sys.meta_path if "__editable__" not in getattr(
    each, "__module__", "")]
sys.path_hooks[:] = [each for each in sys.path_hooks if "__editable__" not in getattr(
    each, "__module__", "")]
"""
_IMPORT_ALL = """
import importlib, sys, traceback
broken = []
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except Exception as error:
        broken.append(f"{name}: {type(error).__name__}: {error}")
found = {sys.modules[name].__spec__.origin for name in sys.modules if name.partition(".")[0] in
         ("official_bert", "data_prep", "experiments")}
outside = [path for path in found if path and not path.startswith(sys.path[0])]
print(*broken, *(f"{path} is not of the copy" for path in outside), sep="\\n")
sys.exit(bool(broken or outside))
"""


def copy(folder: Path, without=BEYOND) -> Path:
    """Copy the files of the tree, without some folders, into `folder`/tree.

    Returns: the copy's root.
    """
    for name in _names():
        left_out = any(name == path or name.startswith(f"{path}/") for path in without)
        if (source := ROOT / name).is_file() and not left_out:
            (target := folder / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(_SITE)
    return folder / "tree"


def _names() -> list[str]:
    """Return the files of the tree: what git tracks, in an unpacked sdist all but what was made."""
    if not (ROOT / ".git").exists():
        made = (".venv*", "runs", "site", "dist", ".cache")
        files = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
        kept = (path for path in files if not any(Path(path.parts[0]).match(m) for m in made))
        return [path.as_posix() for path in kept if "__pycache__" not in path.parts]
    command = ["git", "ls-files", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return listed.stdout.strip("\0").split("\0")


def python(root: Path, *arguments: str, **options) -> subprocess.CompletedProcess:
    """Run Python in a copy, whose packages hide installed ones."""
    paths = f"{root}{os.pathsep}{root.parent / 'site'}"
    # Bytecode is kept: a fifth of a command's start would be compiling, and the copy goes anyway.
    own = {"PYTHONPATH": paths, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONDONTWRITEBYTECODE": ""}
    environment = {**os.environ, **own}
    return subprocess.run([sys.executable, *arguments], cwd=root, env=environment, **options)


def modules(root: Path) -> list[str]:
    """Return the names of all modules of the three packages in a tree."""
    files = (path for name in PACKAGES for path in sorted((root / name).rglob("*.py")))
    names = (".".join(path.relative_to(root).with_suffix("").parts) for path in files)
    return [name.removesuffix(".__init__") for name in names]


def import_all(root: Path) -> str:
    """Import every module of a copy in one process; return what went wrong, a line each."""
    run = python(root, "-c", _IMPORT_ALL, *modules(root), capture_output=True, text=True)
    return "" if run.returncode == 0 else run.stdout.strip() or run.stderr


def main(*arguments: str) -> int:
    """Return the exit code of the first check that fails, 0 where none does."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as beside_the_tests:
        root = copy(Path(folder))
        imports = beside_the_tests.submit(import_all, root)
        tests = [argument for argument in arguments if argument != "--table"]
        code = python(root, "-m", "pytest", "-p", "no:cacheprovider", *tests).returncode
        print(imports.result() or f"{len(modules(root))} modules are imported without {BEYOND}")
        table = ("-m", "experiments.ablate", "--config=table5:smoke", f"--workdir={folder}/table5")
        if not code and "--table" in arguments:
            code = python(root, *table).returncode
        return code or bool(imports.result())


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
