"""First words: no sentence of a docstring or comment begins with What, Whether, Of, Those or As."""

import ast
import io
import re
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("official_bert", "data_prep", "experiments", "benchmarks", "docs", "tests")
REFUSED = re.compile(r"(?:^|(?<=[.!?] ))(?:What|Whether|Of|Those|As)\b.{,40}")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstrings(text: str) -> list[str]:
    """Return the paragraphs of docstrings, each on one line."""
    nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, DOCUMENTED))
    found = [re.split(r"\n\s*\n|\n\s+\w+: ", ast.get_docstring(node) or "") for node in nodes]
    return [" ".join(paragraph.split()) for paragraphs in found for paragraph in paragraphs]


def comments(text: str) -> list[str]:
    """Return the blocks of comments, each on one line."""
    blocks, before = [], -1
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            line, own = token.start[0], token.string.lstrip("#").strip()
            blocks[-1:] = [f"{blocks[-1]} {own}"] if line == before + 1 else [*blocks[-1:], own]
            before = line
    return blocks


def lines_of_pages(text: str) -> list[str]:
    """Return the paragraphs and items of a page, each on one line, without code and tables."""
    text = re.sub(r"```.*?```", "", text, flags=re.S)
    parts = re.split(r"\n\s*\n|\n(?=[-*|#])|\n\d+\. ", text)
    return [" ".join(part.split()).lstrip("-*#> ") for part in parts if not part.startswith("|")]


def test_no_sentence_begins_so():
    pages = [page for page in ROOT.glob("*.md") if page.name != "CHANGELOG.md"]  # it quotes
    pages += [*(ROOT / "docs").rglob("*.md"), ROOT / "benchmarks/README.md"]
    found = []
    for path in (*pages, *(path for name in FOLDERS for path in (ROOT / name).rglob("*.py"))):
        text = path.read_text(encoding="utf-8")
        parts = lines_of_pages(text) if path.suffix == ".md" else docstrings(text) + comments(text)
        found += [f"{path}: {sentence}" for part in parts for sentence in REFUSED.findall(part)]
    assert not found, "\n".join(found)
