"""The door for systems beyond the paper: names, messages, other packages, the absent folder."""

import subprocess
import sys
from pathlib import Path

import pytest

from official_bert import extension
from official_bert.common.errors import UserError
from official_bert.extension import Extension

ROOT = Path(__file__).parent.parent
PACKAGE = """
from official_bert.extension import Extension
MARK = Extension("mark", objectives={"marked": "others:Marked"}, sizes={"minute": "others:SIZE"})
SIZE = {"hidden_size": 4}
class Marked:
    kept = True
    direction = ""
"""


@pytest.fixture
def some(monkeypatch):
    """Extensions in the place of those that are installed."""

    def use(*given):
        monkeypatch.setattr(extension, "_manifest", lambda: given)
        extension.extensions.cache_clear()

    yield use
    monkeypatch.undo()
    extension.extensions.cache_clear()


def test_what_a_name_stands_for_is_imported_when_it_is_asked_for(some):
    some(Extension("one", tasks={"a": "json:dumps", "absent": "no_such_module:X"}))
    assert extension.names("tasks") == ["a", "absent"]
    assert extension.find("tasks", "a")([1]) == "[1]"
    assert extension.find("tasks", "own", {"own": 7}) == 7
    assert extension.find("tasks", "own", {"own": "json:loads"})("2") == 2
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        extension.find("tasks", "absent")
    assert dict(extension.load_all("heads")) == {}


def test_unknown_names_are_told_with_all_names_and_the_nearest(some):
    some(Extension("one", tasks={"visits": "json:dumps"}))
    with pytest.raises(UserError) as told:
        extension.find("tasks", "visit", {"cola": 1}, "a.json")
    expected = "a.json: task='visit'; it is one of cola, visits (did you mean \"visits\"?)"
    assert str(told.value) == expected


def test_two_extensions_do_not_share_a_name(some):
    some(Extension("one", tasks={"a": "x:y"}), Extension("two", tasks={"a": "x:z"}))
    with pytest.raises(UserError, match="tasks: a is of one and of two"):
        extension.names("tasks")


def test_every_place_of_the_manifest_exists():
    pytest.importorskip("experiments.beyond")
    for kind in extension.KINDS:
        for name in extension.names(kind):
            assert extension.find(kind, name) is not None, (kind, name)


def run(code, *paths):
    path = ":".join(map(str, paths))
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": f"{path}:{':'.join(p for p in sys.path if 'site-packages' in p)}"},
        capture_output=True, text=True, check=True, cwd=paths[0],
    )  # fmt: skip
    return done.stdout.strip()


def test_another_package_adds_names_by_an_entry_point(tmp_path):
    (tmp_path / "others.py").write_text(PACKAGE)
    about = tmp_path / "others-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[{extension.GROUP}]\nmark = others:MARK\n")
    code = (
        "from official_bert import extension, objectives; "
        "from official_bert import BertConfig; "
        "objectives.check_direction(['marked'], BertConfig(attention_direction='left_to_right')); "
        "print(extension.find('sizes', 'minute'), objectives.parse_spec('marked')[0])"
    )
    assert run(code, tmp_path, ROOT) == "{'hidden_size': 4} marked"


def test_without_the_folder_the_core_stands_alone(tmp_path):
    (tmp_path / "official_bert").symlink_to(ROOT / "official_bert")
    code = "from official_bert import extension; print(extension.extensions())"
    assert run(code, tmp_path) == "()"


def test_a_folder_that_hides_the_manifest_is_named(tmp_path):
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "__init__.py").touch()
    code = (
        "from official_bert import extension, objectives\n"
        "try: objectives.parse_spec('span_boundary')\n"
        "except Exception as error: print(error)"
    )
    assert f"{tmp_path / 'experiments'} hides {ROOT / 'experiments'}" in run(code, tmp_path, ROOT)
