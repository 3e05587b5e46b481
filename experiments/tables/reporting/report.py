"""The report of an ablation: three lines, the scores beside the paper's, the claims, the plots.

`write` makes report.md with plots/ from results, and the same as report.html (one file, which loads
nothing from elsewhere). `experiments.ablate` calls it at its end, `experiments.report` calls it
again later.
"""

import re
import string
from collections.abc import Sequence
from pathlib import Path

from data_prep.jobs import checked_json
from experiments.tables.judging.results import Results
from experiments.tables.judging.verdicts import NOT_DECIDED, NOT_REPRODUCED, REPRODUCED, Verdict
from experiments.tables.reporting import number_words, wording
from experiments.tables.reporting import score_tables as tables
from experiments.tables.run import origins
from experiments.training.folder.dataclass_json import to_json
from official_bert.common.files import write_text
from official_bert.common.markdown import markdown_table

FILES = ("results.json", "report.html", "report.md", "plots", "constraints.txt")
TEMPLATE = Path(__file__).with_name("report_template.html")
CLASSES = {REPRODUCED: "yes", NOT_REPRODUCED: "no", NOT_DECIDED: "open", "open": "open"}
_VERDICT = re.compile(f"<strong>({'|'.join(CLASSES)})\\b")
SCORES_LEGEND = (
    "Ours: mean \N{PLUS-MINUS SIGN} standard deviation (number of runs); "
    f"{tables.BASELINE_MARK}: not clearly above the trivial baseline; {tables.BELOW_MARK}: below "
    "it; "
    f"{tables.MASKS_MARK}: a loss in predicting other pieces than the first row's, not to be "
    "compared with it."
)
CLAIMS_LEGEND = (
    "An effect is a difference of means, counted in the direction that the comparison names: above "
    "0 its first row is better. p is of the effect's being the claim's bound, or, where it is "
    'refuted, of its being as large as the claim needs. An interval that says "examples only" is '
    "of a single run a row: it says nothing of other runs. Behind the interval of a decided claim "
    "stand those of Student's paired t over pre-training seeds and of the multi-bootstrap of seeds "
    "and examples (Sellam et al., 2022). Detectable is what "
    "lies so far beyond the bound that this design shows it four times of five. Behind the paper's "
    "effect stands whether our interval holds it. In the drawings a dot is our effect, its bar the "
    "95 % interval, a small circle one pre-training, a black tick the paper's effect, a dashed "
    "line the bound."
)


def write(results: Results, folder: str | Path) -> dict[str, str]:
    """Write results.json, report.html, report.md, plots/*.svg and constraints.txt; return the paths
    of the first three.

    Args:
      folder: of a table, locked by the command; earlier files in it are replaced.
    """
    from experiments.tables.reporting import forest_plots, plots

    folder = Path(folder)
    figures = forest_plots.beside_the_paper(results) | plots.figures(results)
    drawings = {name: svg for name, (_, svg) in figures.items()} | forest_plots.of_claims(results)
    text = markdown(results, {name: caption for name, (caption, _) in figures.items()})
    paths = {"json": folder / "results.json", "html": folder / "report.html"}
    paths["markdown"] = folder / "report.md"
    names = [folder / "plots" / f"{name}.svg" for name in drawings]
    made_of = f"<!-- results.json {checked_json.write(paths['json'], to_json(results))} -->\n"
    files = {path: svg + made_of for path, svg in zip(names, drawings.values(), strict=True)}
    files[paths["markdown"]] = text
    files[paths["html"]] = html(text, drawings)
    if made_with := origins.constraints(results.made_by):
        files[folder / "constraints.txt"] = made_with
    for path, content in files.items():
        write_text(path, content, own=True)
    return {name: str(path) for name, path in paths.items()}


def html(text: str, drawings: dict[str, str]) -> str:
    """Return the Markdown report as one page.

    Args:
      drawings: name -> SVG of "plots/NAME.svg"; the page contains them.
    """
    from markdown_it import MarkdownIt
    from markdown_it.common.utils import escapeHtml

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule(
        "image", lambda self, tokens, index, *_: drawings[Path(tokens[index].attrs["src"]).stem]
    )
    body = parser.render(text)
    body = _VERDICT.sub(lambda m: f'<strong class="{CLASSES[m[1]]}">{m[1]}', body)
    body = body.replace("<table>", '<div class="scroll"><table>')
    body = body.replace("</table>", "</table></div>")
    title = escapeHtml(text.partition("\n")[0].removeprefix("# "))
    template = string.Template(TEMPLATE.read_text(encoding="utf-8"))
    return template.substitute(title=title, body=body)


def markdown(results: Results, figures: dict[str, str]) -> str:
    """Return the whole report; `figures`: name -> caption of plots/NAME.svg."""
    lines = [f"# {wording.heading(results)}", ""]
    if line := _differences(results):
        lines += [f"**{line}**", ""]
    if results.verdicts:
        lines += ["\n\n".join(wording.summarize(results)), ""]
    lines += ["## Scores", "", *markdown_table(tables.scores(results)), "", SCORES_LEGEND, ""]
    missing = wording.holes(results)
    if missing:
        lines += ["Holes:", "", *_list(missing), ""]
    if results.verdicts:
        lines += ["## Claims", "", *markdown_table(tables.claims(results)), "", CLAIMS_LEGEND, ""]
    for number, verdict in enumerate(results.verdicts, 1):
        lines += _claim(number, verdict)
    first = tables.yardstick(results).label
    differences = tables.differences(results)
    if differences:
        lines += [f"## Differences from {first}", "", *markdown_table(differences), ""]
    for name in figures:
        if name != "pretraining":
            lines += _figure(name, figures[name])
    lines += ["## What was run", "", *_list(wording.facts(results)), ""]
    others = [row for row in results.rows if row.differs and row.label != first]
    if others:
        differ = [f"{row.label}: {'; '.join(row.differs)}" for row in others]
        lines += [f"## How the rows differ from {first}", "", *_list(differ), ""]
    lines += ["## Every run", "", *markdown_table(tables.every_run(results)), ""]
    trained = tables.pretrainings(results)
    if len(trained) > 1:
        lines += ["## Pre-training", ""]
        if "pretraining" in figures:
            lines += _figure("pretraining", figures["pretraining"])
        lines += [*markdown_table(trained), ""]
    for export in results.exports:
        rows = [["text", "answer", "probability"]]
        rows += [[a["text"], a["label"], f"{a['probability']:.2f}"] for a in export["answers"]]
        lines += ["## The exported classifier's answers", "", *markdown_table(rows), ""]
        lines += [f"SavedModel: {export['saved_model']}", ""]
    lines += ["## How to run it again", "", f"    {results.command}", ""]
    lines += [wording.footer(results), ""]
    return "\n".join(lines)


def _differences(results) -> str:
    """Return the warning of a table whose runs are of different code, versions or machines."""
    warnings = origins.warnings(results.made_by) if results.origins else []
    return f"The runs behind this table differ: {'; '.join(warnings)}." if warnings else ""


def _where(verdict: Verdict) -> str:
    """Return the section where the paper makes a claim, in brackets; "" if it does not."""
    return f" (section {verdict.claim.section})" if verdict.claim.section else ""


def _claim(number: int, verdict: Verdict) -> list[str]:
    """Return a claim with its verdict, its drawing and its comparisons."""
    lines = [f"### {number}. {wording.claim_text(verdict)}.", ""]
    outcome = f"**{wording.outcome(verdict)}**{_where(verdict)}{wording.dependence(verdict)}"
    if mean := verdict.mean_effect:
        outcome += f"; mean effect over its tested columns {number_words.interval(mean)}"
    lines += [outcome, ""]
    if any(finding.effect for finding in verdict.findings):
        lines += _figure(f"claim{number}")
    if verdict.findings:
        lines += [*markdown_table(tables.findings(verdict)), ""]
    if verdict.footnotes:
        lines += [*_list(verdict.footnotes), ""]
    return lines


def text(results: Results, folder: str | Path = "") -> str:
    """Return the table, the verdicts and the paths, for a terminal."""
    rows = tables.scores(results, with_differences=True)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [wording.heading(results), ""]
    if line := _differences(results):
        lines.append(line)
    for index, row in enumerate(rows):
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
        if index == 0:
            lines.append("-" * (sum(widths) + 2 * len(widths) - 2))
    lines += [
        "",
        f"{SCORES_LEGEND} Lines of differences: ours (the paper's). Behind a claim stand its "
        "comparisons: the effect, above 0 where the first row is better, and its 95 % interval.",
    ]
    lines += ["", *_list(wording.facts(results)), "", *wording.holes(results)]
    for verdict in results.verdicts:
        line = f"{wording.claim_text(verdict)}{_where(verdict)}"
        lines.append(f"{wording.SHORT[verdict.verdict].upper():<26} {line}")
        lines += [f"{'':<26}   {wording.finding_text(f)}" for f in verdict.findings]
    for export in results.exports:
        lines += ["", "The exported classifier's answers:"]
        lines += [
            f"  {a['label']:<6} {a['probability']:.2f}  {a['text']}" for a in export["answers"]
        ]
        lines.append(f"SavedModel: {export['saved_model']}")
    lines += ["", *wording.list_outcomes(results)] if results.verdicts else []
    if folder:
        lines.append(f"Report:     {Path(folder) / 'report.html'}")
    return "\n".join(lines)


def _figure(name: str, caption: str = "") -> list[str]:
    return [f"![{name}](plots/{name}.svg)", "", *([f"*{caption}*", ""] if caption else [])]


def _list(items: Sequence[str]) -> list[str]:
    return [f"- {item}" for item in items]
