"""Every table and picture of results that README.md and the pages of docs/ show.

    python -m docs.figures

makes all reports of experiments/results again, with their pictures, then claims.md, then the tables
in the pages, from nothing but the results that are committed. In a page

    <!-- table5/night: QNLI, SQuAD -->
    ...
    <!-- end -->

holds the means of these columns (without names of all) from `experiments/results/table5/night`, the
paper's numbers behind a slash; "own_domain/report.md: 2" asks for the second table of a report.
Each row between

    <!-- verdicts -->

and the end that links to a report begins with how many of the paper's claims were reproduced there,
reproduced in part, were not, and are open; what it says beside that is left as it is, but for the
mean of several comparisons (`next_sentence_on_squad`). "speed",
"gpu" and "cost" are read from benchmarks/results, "both" compares BERT with LTR & No NSP in all
tables.
docs/images/gaps.svg is README's figure (`docs.gaps`).
"""

import functools
import json
import re
from pathlib import Path

import numpy as np

from docs import gaps, gpu_figures
from experiments import report
from experiments.tables.judging.other_methods import paired_t
from experiments.tables.judging.results import CellResult, ColumnResult, Results, read
from experiments.tables.judging.verdicts import (
    NOT_DECIDED,
    NOT_REPRODUCED,
    NOT_TESTED,
    PARTLY,
    REPRODUCED,
)
from experiments.tables.reporting import overview
from experiments.tables.reporting.implied_claims import drop_implied
from experiments.tables.reporting.number_words import interval, number
from experiments.tables.reporting.wording import split_exploratory
from official_bert.common.errors import UserError
from official_bert.common.files import write_text
from official_bert.common.markdown import markdown_table

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "experiments" / "results"
GAPS = ROOT / "docs" / "images" / "gaps.svg"
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
_BLOCK = re.compile(
    r"(<!-- (verdicts|speed|gpu|cost|both|[\w/]+/[\w.]+)(?:: (.*?))? -->\n).*?(<!-- end -->)", re.S
)
_TABLE = re.compile(r"(?:^\|.*\n)*^\|.*", re.M)
_TOGETHER = re.compile(r"\S+ on average of \d+ comparisons in all tables .*?;")
_REPORT = re.compile(r"\| (\[[^|]*\]\([^|]*?(\w+/\w+)/report\.md\)[^|]*) \| [^|]* \|")


def main():
    for path in sorted(RESULTS.glob("*/*/results.json")):
        report.rejudge(path.parent)
    write_text(RESULTS / "claims.md", overview.of_folder(RESULTS), own=True)
    write_text(GAPS, gaps.draw(RESULTS / "table5"), own=True)
    for page in PAGES:
        new = page.with_name(f".{page.name}.new")  # a page is whole at every moment
        new.write_text(fill(page.read_text(encoding="utf-8"), page.name), encoding="utf-8")
        new.replace(page)


def fill(text: str, name: str = "") -> str:
    """Return a page with its blocks written from results; `name` is for errors.

    Raises:
      UserError: there are no such results, or no such column in them.
    """

    def block(match):
        begin, kind, columns, end = match.groups()
        if kind == "verdicts":
            table = _REPORT.sub(_counted, match[0][len(begin) : -len(end)].strip())
            table = _TOGETHER.sub(next_sentence_on_squad(), table)
        elif kind in _RULED:
            table = "\n".join(markdown_table(_RULED[kind]()))
        elif kind.endswith(".md"):
            table = _TABLE.findall((RESULTS / kind).read_text("utf-8"))[int(columns) - 1]
        else:
            results = _read(kind, name)
            chosen = columns.split(", ") if columns else [c.label for c in results.columns]
            table = "\n".join(markdown_table(means(results, chosen, name)))
        return f"{begin}\n{table}\n\n{end}"

    return _BLOCK.sub(block, text)


def means(results: Results, columns: list[str], name: str = "") -> list[list[str]]:
    """Return a header and a line for each row: our mean and, behind a slash, the paper's number;
    the paper's own rows without one of ours are left out."""
    known = {column.label: column for column in results.columns}
    for label in columns:
        if label not in known:
            raise UserError(f"{name}: {results.name} has no column {label}; {', '.join(known)}")
    lines = [["", *columns]]
    for row in results.rows:
        cells = [_mean(row.cells[label], known[label]) for label in columns]
        lines.append([row.label, *cells])
    alone = results.baselines
    cells = [_shown(alone[label], known[label]) if label in alone else "" for label in columns]
    return [*lines, ["trivial baseline", *cells]]


def both_tasks() -> list[list[str]]:
    """BERT less LTR & No NSP, where a table of Table 5 decides it: a line a comparison, with the
    paper's and whether the interval holds it."""
    rows = [["table", "column", "BERT less LTR & No NSP [95 %]", "the paper's"]]
    for path in sorted((RESULTS / "table5").glob("*/results.json")):
        asked = [v for v in read(path).verdicts if v.claim.name.startswith("both tasks")]
        for verdict in asked:
            for f in verdict.findings:
                if f.verdict in (NOT_DECIDED, NOT_TESTED):
                    continue
                place = f"../experiments/results/table5/{path.parent.name}/report.md"
                after = f.comparison.better.partition(", ")[2]
                scale = f"[{path.parent.name}]({place})" + (f", {after}" if after else "")
                paper = "" if f.paper_effect is None else number(f.paper_effect)
                held = {True: ", inside", False: ", outside", None: ""}[f.size_agrees]
                rows.append([scale, f.comparison.column, interval(f.effect, 1), paper + held])
    return rows


def next_sentence_on_squad() -> str:
    """Return the mean effect of all comparisons of BERT with No NSP on SQuAD (F1) in Table 5, with
    Student's interval: each counts as one number."""
    found = {}
    for path in (RESULTS / "table5").glob("*/results.json"):
        for finding in (finding for verdict in read(path).verdicts for finding in verdict.findings):
            asked = finding.comparison
            (better, _, size), worse = asked.better.partition(", "), asked.worse.partition(", ")[0]
            if (asked.column, better, worse) == ("SQuAD", "BERT", "No NSP") and finding.effect:
                found[path, size] = finding.effect.mean
    effects = np.array([found[key] for key in sorted(found)])
    low, high = paired_t(effects)
    told = f"{effects.mean():.1f} on average of {len(found)} comparisons in all tables"
    return f"{told} (interval {low:.1f} to {high:.1f};"


def speed() -> list[list[str]]:
    """Return the times of this project and others for the same work on two CPU cores."""

    def read(name):
        return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text("utf-8"))

    steps = read("pretraining")["runs"]
    runs = steps["base float32 TensorFlow"]["rows"] + steps["base float32 PyTorch"]["rows"]
    took: dict[str, float] = {}
    for run in runs:
        name = re.split(r"[,(]", run["contestant"])[0].strip()
        took[name] = min(took.get(name, run["median_ms"]), run["median_ms"])  # of its ways the best
    ours = took.pop("official_bert")
    theirs = ", ".join(f"{name} {took[name] / 1000:.2f}" for name in sorted(took, key=took.get))
    tuned: dict[str, list[float]] = {}
    for name, one in read("finetune_scores").items():
        task, _, contestant = name.split()
        if task == "mrpc":
            tuned.setdefault(contestant, []).append(one["seconds"])
    tuning = {name: sum(seconds) / len(seconds) for name, seconds in tuned.items()}
    made = [read("data_prep")["create"][f"{who}, dupe 5"] for who in ("official_bert", "original")]
    rates = [f"{m['sequences/s']:,.0f} sequences/s, {m['peak MB'] / 1000:.1f} GB" for m in made]
    return [
        ["", "this project", "others"],
        ["a pre-training step, BERT base, float32, 8 x 128 tokens", f"{ours / 1000:.2f} s", theirs],
        [
            "fine-tuning MiniLM on MRPC, float32",
            f"{tuning['official_bert']:.0f} s",
            f"transformers {tuning['transformers']:.0f}",
        ],
        ["text to records, one core, duplication 5", rates[0], f"the original {rates[1]}"],
    ]


_RULED = {
    "speed": speed,
    "both": both_tasks,
    "gpu": functools.partial(gpu_figures.steps, ROOT),
    "cost": functools.partial(gpu_figures.costs, ROOT),
}


def _mean(cell: CellResult, column: ColumnResult) -> str:
    if not cell.scores:
        return ""
    shown = _shown(cell.scores.mean, column)
    return shown if cell.paper is None else f"{shown} / {number(cell.paper)}"


def _shown(value: float, column: ColumnResult) -> str:
    return number(value, 1 if column.percent or value >= 100 else 2)


def _counted(row: re.Match) -> str:
    link, table = row.groups()
    planned, _ = split_exploratory(_read(table).verdicts)
    verdicts = [v.verdict for v in drop_implied([v for v in planned if not v.claim.own])]
    counts = [verdicts.count(kind) for kind in (REPRODUCED, PARTLY, NOT_REPRODUCED, NOT_DECIDED)]
    return f"| {link} | {' / '.join(map(str, counts))} |"


def _read(table: str, name: str = "") -> Results:
    path = RESULTS / table / "results.json"
    if not path.exists():
        raise UserError(f"{name}: a table is to be written from {path}, which is missing")
    return read(path)


if __name__ == "__main__":
    main()
