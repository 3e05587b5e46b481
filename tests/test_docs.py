"""The documentation's code runs: docstrings, notebooks. Its links hold."""

import ast
import doctest
import importlib
import json
import re
import textwrap
from pathlib import Path

import pytest

import official_bert as ob
from docs import api_pages, figures, gaps
from experiments import ablate
from experiments.tables.planning.plan import plan_table
from experiments.training.settings.config_files import load_config
from official_bert import export
from official_bert.checkpoints.hugging_face.huggingface import export_huggingface
from official_bert.common.errors import UserError
from tests import guests

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/*.md", "benchmarks/**/*.md", "experiments/results/**/*.md")
    for path in ROOT.glob(pattern)
)
MODULES = ("config", "encoder", "heads", "optimization", "tokenization.tokenizer")
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz.!?"]
VOCAB += [f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Return the models that the documents name, tiny ones, in the working folder."""
    config = ob.BertConfig(len(VOCAB), 8, 2, 2, 16, max_position_embeddings=64)
    tokenizer = ob.BertTokenizer(VOCAB)
    encoder = ob.BertEncoder(config, seed=0)
    pretrainer = ob.BertPretrainer(encoder)
    export_huggingface(tmp_path / "google-bert/bert-base-uncased", pretrainer, tokenizer)
    export_huggingface(tmp_path / "sentence-transformers/all-MiniLM-L6-v2", encoder, tokenizer)
    spam = ob.BertClassifier(encoder, 2)
    ob.save(tmp_path / "runs" / "spam" / "model", spam, tokenizer, {"labels": ["ham", "spam"]})
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("module", MODULES)
def test_docstrings(module):
    failed, tried = doctest.testmod(importlib.import_module(f"official_bert.{module}"))
    assert tried and not failed


NOTEBOOKS = ("own_model", "words_in_context")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("text_to_table", marks=pytest.mark.slow),
        pytest.param("sentence_similarity", marks=pytest.mark.slow),
        *guests.names(NOTEBOOKS, (*NOTEBOOKS, "sentence_vectors")),
    ],
)
def test_notebooks(name, folders):
    cells = json.loads((DOCS / f"notebooks/{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    blocks = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert len(blocks) >= 4
    shorter = ("steps, examples = 800, 2000", "steps, examples = 3, 32")
    names = {"__name__": "__main__"}
    for number, block in enumerate(blocks):
        exec(compile(block.replace(*shorter), f"{name} block {number}", "exec"), names)


def test_tables_of_results_are_those_of_the_committed_results():
    pages = {page.name: page.read_text("utf-8") for page in figures.PAGES}
    for name, text in pages.items():
        assert figures.fill(text, name) == text, f"{name} is old: python -m docs.figures"
    assert sum(text.count("<!-- end -->") for text in pages.values()) >= 13
    stale = pages["tables.md"].replace("58.6 / 88.4", "58.7 / 88.4")
    assert stale != pages["tables.md"] == figures.fill(stale)
    counts = re.sub(r"(report.md\).*?) \| [0-9 /]+ \|", r"\1 | 9 / 9 / 9 / 9 |", pages["README.md"])
    assert counts != pages["README.md"] == figures.fill(counts)
    mean = re.sub(r"\S+ on average of", "1.0 on average of", pages["README.md"])
    assert mean != pages["README.md"] == figures.fill(mean)
    drawn = gaps.draw(figures.RESULTS / "table5")
    assert drawn == figures.GAPS.read_text("utf-8"), "docs/images is old: python -m docs.figures"
    with pytest.raises(UserError, match="x.md: table8 has no column MNLI; held-out loss, NER"):
        figures.fill("<!-- table8/cpu: MNLI -->\n<!-- end -->", "x.md")
    with pytest.raises(UserError, match="x.md: .*table9/cpu/results.json, which is missing"):
        figures.fill("<!-- table9/cpu -->\n<!-- end -->", "x.md")


def test_the_tables_of_own_table_md_can_be_planned(tmp_path):
    page = (DOCS / "own_table.md").read_text("utf-8")
    code, slow = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "masking40.py").write_text(code)
    ablation = load_config(f"{tmp_path}/masking40.py:smoke")
    text = ablate.dry_run([ablation], share=0.5)
    assert "pretrain/masking 40%/1" in text and "9 cells; still to do" in text
    assert {records.masked_lm_prob for records in ablation.records} == {0.15, 0.4}
    (tmp_path / "slow.py").write_text(slow)
    theirs, ours = (
        plan_table(load_config(s)).cells for s in ("table5:smoke", f"{tmp_path}/slow.py")
    )
    new = [cell.name for cell in ours if cell not in theirs]
    assert len(new) == len(ours) - len(theirs) and all("slow" in name for name in new)


def _anchors(path: Path) -> set[str]:
    """Return the headings of a page, as GitHub and the site's pages name them."""
    text = re.sub(r"```.*?```", "", path.read_text("utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ +(.*?) *$", text, re.MULTILINE)
    shown = [re.sub(r"[`*]|\]\([^)]*\)", "", heading).lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in shown}


@pytest.mark.parametrize("page", PAGES)
def test_links_hold(page):
    text = re.sub(r"```.*?```|`[^`\n]*`", "", (ROOT / page).read_text("utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)", text):
        if re.match(r"[a-z]+:", target):
            continue
        place, _, anchor = target.partition("#")
        path = (ROOT / page).parent / place if place else ROOT / page
        assert path.exists(), f"{page}: {target}"
        assert not anchor or anchor in _anchors(path), f"{page}: {target}"


def test_every_page_is_in_the_navigation_of_the_site():
    site = (ROOT / "mkdocs.yml").read_text()
    listed = re.findall(r"^ +- .*?([\w./]+\.(?:md|ipynb))$", site, re.M)
    there = [*ROOT.glob("*.md"), *DOCS.glob("*.md"), *DOCS.glob("notebooks/*.ipynb")]
    assert {path.relative_to(ROOT).as_posix() for path in there} <= set(listed)
    made = {f"docs/api/{group.file}.md" for group in api_pages.GROUPS}
    assert made <= set(listed)
    assert all((ROOT / name).is_file() for name in set(listed) - made)


@pytest.mark.parametrize("group", api_pages.GROUPS, ids=lambda group: group.file)
def test_examples_of_the_api_run(group, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(group.example, group.file, "exec"), {"__name__": "__main__"})
    for path in map(api_pages.path_of, group.names):
        module, _, name = path.rpartition(".")
        assert getattr(importlib.import_module(module), name).__doc__, path


def test_fit_goes_on_from_a_fine_tuned_folder(folders):
    page = (DOCS / "answers.md").read_text("utf-8")
    block = next(b for b in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if ".fit(" in b)
    exec(compile(block, "answers.md", "exec"), {})
    assert ob.load("runs/spam/further").settings["labels"] == ["ham", "spam"]


def test_every_public_name_is_on_a_page_of_the_api():
    shown = {api_pages.path_of(name) for group in api_pages.GROUPS for name in group.names}
    public = {f"official_bert.{home}.{name}" for name, home in ob._HOME_OF.items()}
    public |= {f"official_bert.export.{h}.{n}" for n, h in export._HOME_OF.items() if n != "HEADS"}
    assert public <= shown


@pytest.mark.parametrize("page", [page for page in PAGES if "results/" not in page])
def test_python_is_python(page):
    for block in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL):
        ast.parse(textwrap.dedent(block))
