"""The architecture's promises: imports run one way, no circles, and light parts stay light."""

import ast
import functools
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import official_bert
from official_bert.backend.keras_registration import _WhenImported

ROOT = Path(__file__).parent.parent
PACKAGES = ("official_bert", "data_prep", "experiments")
# Imports that are refused beside the floors. A folder's commands are the files at its root.
WALLS = [
    ("official_bert", "data_prep"),
    ("official_bert", "experiments"),
    ("data_prep", "experiments"),
    ("the core", "experiments.beyond"),  # `official_bert.extension` finds it by name
]
# The rooms of each package, the lowest first. A room imports from below it alone, not from beside
# it; "" stands for all others: the paper's files, which lean on each other, and the commands.
FLOORS = {
    "official_bert": [("common",), ("backend", "extension"), ("tokenization",), ("",),
                      ("checkpoints",), ("export",), ("predict",)],
    "data_prep": [("jobs", "sample"), ("corpus",), ("sentences",), ("pretraining", "tasks"), ("",)],
    "experiments": [("training", "serving"), ("tables",), ("configs",), ("beyond",), ("",)],
}  # fmt: skip
PAPER = FLOORS["official_bert"].index(("",))


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for name in PACKAGES for path in (ROOT / name).rglob("*.py")}


@functools.cache
def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def imported_modules(path):
    """Return the project's modules that a file imports, at its top and inside its functions."""
    return set(_imported(path))


def _imported(path):
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parent = node.module or ""
            whole = [f"{parent}.{alias.name}" for alias in node.names]
            names = [name if name in FILES else parent for name in whole]
        else:
            continue
        yield from (name for name in names if name in FILES)


def is_in(module, place):
    if place == "the core":
        return not is_in(module, "experiments.beyond")
    return module == place or module.startswith(f"{place}.")


@pytest.mark.parametrize(("inside", "outside"), WALLS)
def test_imports_run_one_way(inside, outside):
    files = {module: path for module, path in FILES.items() if is_in(module, inside)}
    assert files, f"no module in {inside}"
    if outside != "experiments.beyond":  # which may be deleted
        assert any(is_in(module, outside) for module in FILES), f"no module in {outside}"
    for path in files.values():
        for name in imported_modules(path):
            assert not is_in(name, outside), f"{path} imports {name}"


def room_of(module):
    """Return a folder of a package; each file at its root is one, too."""
    return ".".join(module.split(".")[:2])


def folder_of(module):
    """Return the folder of a file; "" for an `__init__`, which offers what is in its folder."""
    if FILES[module].name == "__init__.py":
        return ""
    return module.rpartition(".")[0] if module.count(".") > 1 else module


def floor_of(module):
    package, room, *_ = module.split(".")
    found = [number for number, rooms in enumerate(FLOORS[package]) if room in rooms]
    return found[0] if found else FLOORS[package].index(("",))


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_are_built_floor_by_floor(package):
    inside = {name for name in FILES if name.startswith(f"{package}.")}
    rooms = {room for floor in FLOORS[package] for room in floor if room}
    if not any(is_in(module, "experiments.beyond") for module in FILES):  # `make test-core`
        rooms -= {"beyond"}
    assert rooms <= {name.split(".")[1] for name in inside}
    for module in inside:
        for name in {name for name in imported_modules(FILES[module]) if name in inside}:
            papers = package == "official_bert" and floor_of(name) == floor_of(module) == PAPER
            beside = room_of(name) == room_of(module) or papers
            below = floor_of(name) < floor_of(module)
            assert below or beside, f"{module} imports {name}"


def test_the_paper_stands_at_the_door():
    files = {path.name for path in (ROOT / "official_bert").glob("*.py")} - {"__init__.py"}
    assert {"config.py", "encoder.py", "predict.py"} < files and len(files) <= 14, files


@pytest.mark.parametrize("part", [str, room_of, folder_of], ids=["modules", "packages", "rooms"])
def test_nothing_imports_itself_in_a_circle(part):
    graph = {}
    for module, path in FILES.items():
        needs = {part(name) for name in imported_modules(path) if name not in PACKAGES}
        graph.setdefault(part(module), set()).update(needs - {part(module), ""})
    graph.pop("", None)
    while graph:
        free = [name for name, needs in graph.items() if not needs & set(graph)]
        assert free, f"these import each other in a circle: {sorted(graph)}"
        for name in free:
            del graph[name]


# Functions that replace, remove or write files, by full name or as a method of a path.
DESTROYERS = {
    *(f"os.{name}" for name in ("remove", "unlink", "rmdir", "removedirs", "replace", "rename")),
    *(f"os.{name}" for name in ("renames", "truncate", "link", "symlink", "mkfifo")),
    *(f"shutil.{name}" for name in ("rmtree", "move", "copy", "copy2", "copyfile", "copytree")),
}
OF_PATHS = {"unlink", "rmdir", "rename", "write_text", "write_bytes", "touch", "symlink_to"}
OWNERS = {f"official_bert.common.{name}" for name in ("files", "system")}
# In a temporary folder of its own, from a process with limits.
IN_ITS_OWN_FOLDER = {"official_bert.checkpoints.files.guarded_process"}


def destructive_calls(path):
    """(line, text) of the calls of a file that replace, remove or write files."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            modes = node.args[1:2] + [k.value for k in node.keywords if k.arg == "mode"]
            writes = any(set(ast.unparse(mode)) & set("wax+") for mode in modes)
            opened = name in ("open", "io.open", "os.fdopen") and writes
            if opened or name in DESTROYERS or name.rpartition(".")[2] in OF_PATHS:
                yield node.lineno, ast.unparse(node)


def test_one_module_owns_all_destruction():
    found = [
        f"{FILES[module]}:{line}: {text}"
        for module in set(FILES) - OWNERS - IN_ITS_OWN_FOLDER
        for line, text in destructive_calls(FILES[module])
        if not text.startswith(("write_text(", "files.write_text("))
    ]
    assert not found, "use official_bert.common.files:\n" + "\n".join(found)
    assert all(list(destructive_calls(FILES[module])) for module in OWNERS)


def modules_after(statement):
    command = [sys.executable, "-c", f"import sys; {statement}; print(*sys.modules)"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return set(run.stdout.split())


@pytest.mark.parametrize(
    "statement",
    [
        "import official_bert",
        "from official_bert import BertConfig, named_config, UserError",
        "from official_bert import BertTokenizer",
    ],
)
def test_light_imports_load_neither_keras_nor_tensorflow(statement):
    assert not modules_after(statement) & {"keras", "tensorflow", "torch", "jax"}


def test_stand_ins_for_classes_give_way_to_them():
    import keras

    from official_bert.backend.keras_registration import register_later

    made = keras.layers.Dense
    register_later(lambda: ["Made"], {"Made": made}.get)  # Keras is loaded already
    stored = {"registered_name": "official_bert>Made", "class_name": "Made", "config": {"units": 3}}
    stored["module"] = "official_bert.made"
    assert keras.saving.deserialize_keras_object(stored).units == 3
    del keras.saving.get_custom_objects()["official_bert>Made"]


def test_a_module_that_was_looked_for_before_its_import_is_still_noticed(tmp_path, monkeypatch):
    (tmp_path / "noticed_module.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    calls = []
    finder = _WhenImported("noticed_module", lambda: calls.append("imported"))
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    assert importlib.util.find_spec("noticed_module") and not calls
    importlib.import_module("noticed_module")
    assert calls == ["imported"] and finder not in sys.meta_path


@pytest.mark.slow  # `make test-jax` has no TensorFlow
def test_works_where_tensorflow_is_missing_and_loads_keras_files_before_any_class(tmp_path):
    pytest.importorskip("jax", reason="needs a backend other than TensorFlow")
    from official_bert import BertAdamW, BertClassifier, BertConfig, BertEncoder

    model = BertClassifier(BertEncoder(BertConfig(9, 4, 1, 1, 8)), 2)
    model.compile(BertAdamW())
    model.save(tmp_path / "model.keras")
    block = "sys.modules['tensorflow'] = None; import os; os.environ['KERAS_BACKEND'] = 'jax'"
    load = f"keras.saving.load_model({str(tmp_path / 'model.keras')!r})"
    use = (
        "from official_bert import BertEncoder, BertPretrainer, BertClassifier, BertAdamW, "
        "BertConfig; c = BertConfig(vocab_size=9, hidden_size=4, num_hidden_layers=1, "
        "num_attention_heads=1, intermediate_size=8); BertClassifier(BertEncoder(c), 2); "
        "BertPretrainer(c); BertAdamW()"
    )
    modules_after(f"{block}; import official_bert, keras; {load}; {use}")


def test_type_checkers_see_every_name_of_the_package():
    nodes = [node for node in parsed(FILES["official_bert"]).body if isinstance(node, ast.If)]
    (checked,) = [node for node in nodes if ast.unparse(node.test) == "TYPE_CHECKING"]
    seen = {
        alias.asname: node.module.removeprefix("official_bert.")
        for node in checked.body
        for alias in node.names
    }
    assert seen == official_bert._HOME_OF
