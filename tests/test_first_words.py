"""First words of docstrings: none begins with What, Whether, Of, Those or As."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("official_bert", "data_prep", "experiments", "benchmarks", "docs", "tests")
REFUSED = re.compile(r"(What|Whether|Of|Those|As)\b")
# Rooms that are still to be gone through.
TO_DO = {
    "benchmarks/gpu",
    "data_prep/pretraining/reading",
    "data_prep/tasks",
    "data_prep/tasks/tagging",
    "docs",
    "experiments/beyond/common",
    "experiments/beyond/gpt",
    "experiments/beyond/seq2seq",
    "experiments/beyond/video",
    "experiments/beyond/words",
    "experiments/tables/planning",
    "experiments/tables/reporting",
    "experiments/tables/run",
    "experiments/training/answers",
    "experiments/training/finetuning",
    "experiments/training/folder",
    "experiments/training/pretraining",
    "experiments/training/settings",
    "experiments/training/start",
    "experiments/training/step",
    "official_bert",
    "official_bert/checkpoints",
    "official_bert/export",
    "official_bert/export/formats",
    "tests",
    "tests/beyond/common",
    "tests/beyond/distil",
    "tests/beyond/seq2seq",
    "tests/beyond/video",
    "tests/data_prep",
    "tests/data_prep/corpus",
    "tests/data_prep/jobs",
    "tests/experiments",
    "tests/experiments/tables/planning",
    "tests/experiments/tables/run",
    "tests/experiments/training/finetuning",
    "tests/experiments/training/pretraining",
    "tests/experiments/training/start",
    "tests/experiments/training/step",
    "tests/official_bert",
    "tests/parity",
    "tests/without_tensorflow",
}


def test_docstrings_begin_with_what_they_are_about():
    found = []
    for path in (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))):
        room = path.parent.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                text = (ast.get_docstring(node) or "").strip()
                if REFUSED.match(text) and room not in TO_DO:
                    found.append(f"{path}: {text[:60]}")
    assert not found, "\n".join(found)
