"""A wheel holds what the packages read: configurations, templates, the sample."""

import fnmatch
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Results of runs and what belongs to them stay in the repository.
NOT_PACKAGED = ("experiments/results",)


def test_every_data_file_of_the_packages_is_packaged():
    setup = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert setup["packages"]["find"]["include"] == ["official_bert*", "data_prep*", "experiments*"]
    for package in ("official_bert", "data_prep", "experiments"):
        patterns = setup["package-data"].get(package, [])
        for path in (ROOT / package).rglob("*"):
            name = path.relative_to(ROOT / package).as_posix()
            if not path.is_file() or path.suffix in (".py", ".pyc"):
                continue
            if path.relative_to(ROOT).as_posix().startswith(NOT_PACKAGED):
                continue
            assert any(fnmatch.fnmatch(name, pattern.replace("**/", "")) for pattern in patterns), (
                f"{package}/{name} is in no wheel: add it to package-data in pyproject.toml"
            )
    for folder in {path.parent for path in ROOT.glob("experiments/**/*.py")}:
        assert (folder / "__init__.py").is_file(), f"{folder} is no package: it is in no wheel"
