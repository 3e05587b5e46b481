"""First words of docstrings: none begins with What, Whether, Of, Those or As."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("official_bert", "data_prep", "experiments", "benchmarks", "docs", "tests")
REFUSED = re.compile(r"(What|Whether|Of|Those|As)\b")


def test_docstrings_begin_with_what_they_are_about():
    found = []
    for path in (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                text = (ast.get_docstring(node) or "").strip()
                if REFUSED.match(text):
                    found.append(f"{path}: {text[:60]}")
    assert not found, "\n".join(found)
