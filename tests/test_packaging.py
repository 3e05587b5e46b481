"""A wheel holds what the packages read: configurations, templates, the sample."""

import fnmatch
import json
import re
import runpy
import tomllib
from pathlib import Path

import official_bert

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
        assert (folder / "__init__.py").is_file(), f"{folder} is not a package: it is in no wheel"


def test_tensorflow_is_an_extra_and_in_requirements_txt():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    wanted = [line.partition("#")[0].strip() for line in lines]
    expected = ["-r requirements-base.txt", *project["optional-dependencies"]["tensorflow"]]
    assert [line for line in wanted if line] == expected
    base = (ROOT / "requirements-base.txt").read_text().splitlines()
    names = [line for line in base if not line.startswith("#")]
    assert names and not any("tensorflow" in line or "keras-nlp" in line for line in names)


def test_accelerators_get_no_plain_tensorflow():
    """Plain wheels have no TPU kernels, and JAX's environments need none of it."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = extras["optional-dependencies"]
    assert [re.split("[=<]", line)[0] for line in extras["tpu"]] == ["tensorflow-tpu", "libtpu"]
    for name in ("jax", "jax-cuda"):
        assert [line.partition(">")[0].partition("[")[0] for line in extras[name]] == ["jax"]


def test_a_version_is_the_same_everywhere():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert official_bert.__version__ == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {version}\n" in (ROOT / "CHANGELOG.md").read_text("utf-8")
    for page in ("docs/library.md", "docs/data_at_scale.md"):
        named = re.findall(r"official_bert-([\d.]+)-py3", (ROOT / page).read_text("utf-8"))
        assert named and set(named) == {version}


def test_the_index_shows_readme_with_absolute_links():
    readme = runpy.run_path(str(ROOT / "setup.py"))["readme"]
    text = "[![a](b.svg)](C.md) [d](#e) ![f](g/h.png) <k> `[i](j)`\n```\n[l](m)\n```\n"
    home = "https://example.org/x"
    assert readme(text, home, "1.0") == (
        f"[![a]({home}/raw/v1.0/b.svg)]({home}/blob/v1.0/C.md) [d]({home}#e) "
        f"![f]({home}/raw/v1.0/g/h.png) <k> `[i](j)`\n```\n[l](m)\n```\n"
    )
    assert readme(text, "", "1.0") == " d  <k> `[i](j)`\n```\n[l](m)\n```\n"
    assert readme("[n](https://o.org)", "", "1.0") == "[n](https://o.org)"


def named(text, behind):
    """Return the packages of requirements, as the index writes their names."""
    found = re.findall(rf"^([\w.-]+){behind}", text, re.M)
    return {re.sub("[-_.]+", "-", name).lower() for name in found}


def test_constraints_pin_every_requirement():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = named("\n".join(lines), "==")
    files = ("requirements.txt", "requirements-base.txt")
    wanted = set().union(*(named((ROOT / file).read_text(), "[<>=!]") for file in files))
    assert len(wanted) > 25 and wanted <= pinned, wanted - pinned
    beside = (ROOT / "experiments/results/table5/checkpoints/constraints.txt").read_text()
    made_with = {line for line in beside.splitlines() if not line.startswith(("#", "jax"))}
    assert len(made_with) > 7 and made_with <= set(lines)


def test_images_are_made_of_what_is_here():
    text = (ROOT / "containers" / "train.Dockerfile").read_text()
    copied = [name for line in re.findall(r"^COPY (.*) \S+$", text, re.M) for name in line.split()]
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert {"pyproject.toml", "setup.py", "requirements-base.txt", "experiments"} <= set(copied)
    assert all((ROOT / name).exists() and f"!{name}" in ignored for name in copied)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {"README.md", project["license-files"][0]} <= set(copied)
    extras = re.findall(r"EXTRA=(\S+)", text)
    assert len(extras) == 2 and set(extras) <= set(project["optional-dependencies"])
    assert json.loads(re.findall(r"^ENTRYPOINT (.*)$", text, re.M)[0])[0] in project["scripts"]
