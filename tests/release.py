"""Build a release twice, compare the bytes, and leave it in dist/: `make dist`.

The second build has other dates and another umask. The sdist has to hold every file of the
repository, and tests that run from it; `twine check` reads what the index will show.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
_MADE = re.compile(r"PKG-INFO|setup\.cfg|official_bert\.egg-info/.*")
_TESTS = ("test_packaging.py", "test_json_files.py", "data_prep/tasks/files/test_formats.py")


def main() -> None:
    names = _output("git", "ls-files").splitlines()
    epoch = _output("git", "log", "-1", "--format=%ct").strip()
    with tempfile.TemporaryDirectory() as folder:
        umasks = {Path(folder, "one"): 0o022, Path(folder, "other"): 0o077}
        for place, umask in umasks.items():
            _copy(place, names, umask)
        one, other = _built(umasks, epoch)
        assert [p.name for p in one] == [p.name for p in other] and len(one) == 2
        for first, second in zip(one, other, strict=True):
            assert first.read_bytes() == second.read_bytes(), f"{first.name}: two builds differ"
        wheel, sdist = sorted(one, key=lambda path: path.suffix, reverse=True)
        _check_sdist(sdist, names, Path(folder, "unpacked"))
        _check_wheel(wheel)
        subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *one], check=True)
        (ROOT / "dist").mkdir(exist_ok=True)
        for path in one:
            print(shutil.copy(path, ROOT / "dist"))


def _output(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def _copy(place: Path, names: list[str], umask: int) -> None:
    """Copy the files of the repository to a new folder."""
    for name in names:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, place / name)
        (place / name).chmod((ROOT / name).stat().st_mode & ~umask)


def _built(umasks: dict[Path, int], epoch: str) -> list[list[Path]]:
    """Build each copy of the repository with its umask, side by side; return their files."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", "dist"]
    options = {"env": os.environ | {"SOURCE_DATE_EPOCH": epoch}, "stdout": subprocess.DEVNULL}
    builds = [subprocess.Popen(command, cwd=p, umask=u, **options) for p, u in umasks.items()]
    assert not any([build.wait() for build in builds]), "a build failed: see above"
    return [sorted((place / "dist").iterdir()) for place in umasks]


def _check_sdist(sdist: Path, names: list[str], place: Path) -> None:
    with tarfile.open(sdist) as archive:
        archive.extractall(place, filter="data")
    (top,) = place.iterdir()
    found = {path.relative_to(top).as_posix() for path in top.rglob("*") if path.is_file()}
    found = {name for name in found if not _MADE.fullmatch(name)}
    assert found == set(names), f"sdist and repository differ: {sorted(found ^ set(names))[:20]}"
    tests = [f"tests/{name}" for name in _TESTS]
    subprocess.run([sys.executable, "-m", "pytest", "-q", *tests], cwd=top, check=True)


def _check_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        described = next(name for name in names if name.endswith(".dist-info/METADATA"))
        text = archive.read(described).decode()
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == {"official_bert", "data_prep", "experiments"}, tops
    assert not any(name.startswith("experiments/results/") for name in names)
    body = re.sub(r"```.*?```|`[^`\n]*`", "", text.partition("\n\n")[2], flags=re.DOTALL)
    relative = [t for t in re.findall(r"\]\(([^)\s]+)\)", body) if not re.match("[a-z]+:", t)]
    assert not relative, f"README on the index would have relative links: {relative}"


if __name__ == "__main__":
    main()
