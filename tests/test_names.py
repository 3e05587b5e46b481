"""Names that modules take from each other: each exists, in code that no test runs too.

The sources are read, not imported.
"""

import ast
import functools
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("official_bert", "data_prep", "experiments", "benchmarks", "docs", "tests")
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*.py")
}
MODULE_NAMES = {"__doc__", "__file__", "__name__", "__path__", "__dict__"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@functools.cache
def tree(module):
    return ast.parse(FILES[module].read_text(encoding="utf-8"))


def bound(nodes, inside_functions):
    """Return the names that statements bind, those inside functions and classes too or not."""
    found, waiting = set(), list(nodes)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            found.add(getattr(node, "name", ""))
            if not inside_functions:
                continue
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        waiting += ast.iter_child_nodes(node)
    return found


@functools.cache
def names(module):
    """Return the names of a module, its submodules among them; None where it makes them when
    asked."""
    found = bound(tree(module).body, inside_functions=False)
    for node in ast.walk(tree(module)):  # `global`
        found |= set(node.names) if isinstance(node, ast.Global) else set()
    start = f"{module}."
    found |= {name[len(start) :].partition(".")[0] for name in FILES if name.startswith(start)}
    return None if "__getattr__" in found else found | MODULE_NAMES


def missing(module):
    """Yield (line, name) of what a module takes from others and is not there."""
    modules = {}
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ImportFrom) and node.module in FILES and not node.level:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                if whole in FILES:
                    modules[alias.asname or alias.name] = whole
                elif names(node.module) is not None and alias.name not in names(node.module):
                    yield node.lineno, whole
        elif isinstance(node, ast.Import):
            modules |= {a.asname: a.name for a in node.names if a.asname and a.name in FILES}

    def visit(node, hidden):
        if isinstance(node, FUNCTIONS):  # a parameter or variable may have a module's name
            own = bound(ast.iter_child_nodes(node), inside_functions=True)
            imports = (n for n in ast.walk(node) if isinstance(n, (ast.Import, ast.ImportFrom)))
            imported = {alias.asname or alias.name for n in imports for alias in n.names}
            hidden = hidden | (own - imported)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            whole = modules.get(node.value.id)
            if whole and node.value.id not in hidden and isinstance(node.ctx, ast.Load):
                known = names(whole)
                if known is not None and node.attr not in known:
                    yield node.lineno, f"{whole}.{node.attr}"
        for child in ast.iter_child_nodes(node):
            yield from visit(child, hidden)

    yield from visit(tree(module), frozenset())


@pytest.mark.parametrize("folder", FOLDERS)
def test_names_taken_from_other_modules_exist(folder):
    modules = [name for name in FILES if name == folder or name.startswith(f"{folder}.")]
    assert modules
    told = [f"{FILES[m]}:{line}: {name}" for m in modules for line, name in missing(m)]
    assert not told, "\n".join(told)


def test_a_name_that_is_gone_is_told(monkeypatch):
    source = """
from experiments.training.folder import provenance
from experiments.training.folder.provenance import code_stamp, gone_too
from experiments.training import runs as started

def here(provenance):
    return provenance.anything

def there():
    return provenance.note, provenance.gone, started.pretrain, [started.gone for _ in ()]
"""
    monkeypatch.setitem(FILES, "made_up", None)
    real = tree.__wrapped__
    monkeypatch.setitem(
        globals(), "tree", lambda m: ast.parse(source) if m == "made_up" else real(m)
    )
    found = {name.removeprefix("experiments.training.") for _, name in missing("made_up")}
    assert found == {"folder.provenance.gone_too", "folder.provenance.gone", "runs.gone"}
