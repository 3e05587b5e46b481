"""The report of an ablation: three lines, the scores beside the paper's, the claims, the plots.

`write` makes report.md with plots/ from results, and wraps it as report.html (one file, nothing to
load from elsewhere); `experiments.ablate` calls it at its end, `experiments.report` draws it again.
"""

import string
from pathlib import Path

from data_prep.jobs import storage
from experiments.tables import origins, wording
from experiments.tables import score_tables as tables
from experiments.tables.claims import NOT_DECIDED, NOT_REPRODUCED, REPRODUCED
from official_bert.common.files import write_text

FILES = ("results.json", "report.html", "report.md", "plots")
TEMPLATE = Path(__file__).with_name("report_template.html")
CLASSES = {REPRODUCED: "yes", NOT_REPRODUCED: "no", NOT_DECIDED: "open", "open": "open"}
OURS = (
    "Ours: mean \N{PLUS-MINUS SIGN} standard deviation (number of runs); "
    f"{tables.BASELINE_MARK}: not clearly above the trivial baseline; "
    f"{tables.MASKS_MARK}: a loss in predicting other pieces than the first row's, not to be "
    "compared with it."
)
KEY = (
    "An effect is a difference of means, counted in the direction that the comparison names: above "
    "0 its first row is better. p is of the effect's being the claim's bound. Detectable is what "
    "lies so far beyond the bound that this design shows it four times of five. Behind the paper's "
    "effect stands whether our interval holds it. In the drawings a dot is our effect, its bar the "
    "95 % interval, a small circle one pre-training, a black tick the paper's effect, a dashed "
    "line the bound."
)


def write(results: dict, folder: str | Path) -> dict[str, str]:
    """Writes results.json, report.html, report.md and plots/*.svg; returns their paths."""
    from experiments.tables import forest_plots, plots

    folder = Path(folder)
    figures = forest_plots.beside_the_paper(results) | plots.figures(results)
    drawings = {name: svg for name, (_, svg) in figures.items()} | forest_plots.forests(results)
    text = markdown(results, {name: caption for name, (caption, _) in figures.items()})
    paths = {"json": folder / "results.json", "html": folder / "report.html"}
    paths["markdown"] = folder / "report.md"
    made_of = f"<!-- results.json {storage.write_json(paths['json'], results)} -->\n"
    files = {folder / "plots" / f"{name}.svg": svg + made_of for name, svg in drawings.items()}
    files[paths["markdown"]] = text
    files[paths["html"]] = html(text, drawings)
    for path, content in files.items():
        write_text(path, content)
    return {name: str(path) for name, path in paths.items()}


def html(text: str, drawings: dict[str, str]) -> str:
    """The Markdown report as one page.

    Args:
      drawings: name -> SVG of "plots/NAME.svg", which are put into the page.
    """
    from markdown_it import MarkdownIt
    from markdown_it.common.utils import escapeHtml

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule(
        "image", lambda self, tokens, index, *_: drawings[Path(tokens[index].attrs["src"]).stem]
    )
    body = parser.render(text)
    for verdict, name in CLASSES.items():
        plain = f"<strong>{verdict}</strong>"
        body = body.replace(plain, plain.replace("<strong", f'<strong class="{name}"'))
    body = body.replace("<table>", '<div class="scroll"><table>')
    body = body.replace("</table>", "</table></div>")
    title = escapeHtml(text.partition("\n")[0].removeprefix("# "))
    template = string.Template(TEMPLATE.read_text(encoding="utf-8"))
    return template.substitute(title=title, body=body)


def markdown(results: dict, figures: dict[str, str]) -> str:
    """The whole report; `figures`: name -> caption of plots/NAME.svg."""
    lines = [f"# {wording.heading(results)}", ""]
    lines += [line for said in _differences(results) for line in (f"**{said}**", "")]
    if results["verdicts"]:
        lines += ["\n\n".join(wording.lead(results)), ""]
    lines += ["## Scores", "", *markdown_table(tables.scores(results)), "", OURS, ""]
    missing = wording.holes(results)
    if missing:
        lines += ["Holes:", "", *_list(missing), ""]
    if results["verdicts"]:
        lines += ["## Claims", "", *markdown_table(tables.claims(results)), "", KEY, ""]
    for number, verdict in enumerate(results["verdicts"], 1):
        lines += _claim(number, verdict)
    differences = tables.differences(results)
    if differences:
        first = tables.yardstick(results)["label"]
        lines += [f"## Differences from {first}", "", *markdown_table(differences), ""]
    for name in figures:
        if name != "pretraining":
            lines += _figure(name, figures[name])
    lines += ["## What was run", "", *_list(wording.facts(results)), ""]
    differ = [f"{r['label']}: {'; '.join(r['differs'])}" for r in results["rows"] if r["differs"]]
    if differ:
        first = tables.yardstick(results)["label"]
        lines += [f"## How the rows differ from {first}", "", *_list(differ), ""]
    lines += ["## Every run", "", *markdown_table(tables.every_run(results)), ""]
    trained = tables.pretrainings(results)
    if len(trained) > 1:
        lines += ["## Pre-training", ""]
        if "pretraining" in figures:
            lines += _figure("pretraining", figures["pretraining"])
        lines += [*markdown_table(trained), ""]
    for export in results["exports"]:
        rows = [["text", "answer", "probability"]]
        rows += [[a["text"], a["label"], f"{a['probability']:.2f}"] for a in export["answers"]]
        lines += ["## The exported classifier's answers", "", *markdown_table(rows), ""]
        lines += [f"SavedModel: {export['saved_model']}", ""]
    lines += ["## How to run it again", "", f"    {results['command']}", ""]
    lines += [wording.footer(results), ""]
    return "\n".join(lines)


def _differences(results) -> list[str]:
    """Warnings of a table whose runs are of different code, versions or machines."""
    told = origins.warnings(origins.of_results(results)) if "origins" in results else []
    return [f"The runs behind this table differ: {line}." for line in told]


def _claim(number: int, verdict: dict) -> list[str]:
    """A claim with its verdict, its drawing and its comparisons."""
    lines = [f"### {number}. {verdict['text'].rstrip('.')}.", ""]
    said = f"**{verdict['verdict']}** (section {verdict['section']})"
    mean = verdict["mean_effect"]
    if mean:
        said += f"; mean effect over its columns {wording.interval(mean)}"
    lines += [said, ""]
    if any(finding["effect"] is not None for finding in verdict["findings"]):
        lines += _figure(f"claim{number}")
    lines += [*markdown_table(tables.findings(verdict)), ""]
    if verdict["footnotes"]:
        lines += [*_list(verdict["footnotes"]), ""]
    return lines


def text(results: dict, folder: str | Path = "") -> str:
    """The table, the verdicts and the paths, for a terminal."""
    rows = tables.scores(results, with_differences=True)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [wording.heading(results), "", *_differences(results)]
    for index, row in enumerate(rows):
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
        if index == 0:
            lines.append("-" * (sum(widths) + 2 * len(widths) - 2))
    lines += [
        "",
        f"{OURS} Lines of differences: ours (the paper's). Behind a claim stand its comparisons: "
        "the effect, above 0 where the first row is better, and its 95 % interval.",
    ]
    lines += ["", *_list(wording.facts(results)), "", *wording.holes(results)]
    for verdict in results["verdicts"]:
        lines.append(f"{verdict['verdict'].upper():<26} {verdict['text']} (section "
                     f"{verdict['section']})")  # fmt: skip
        lines += [f"{'':<26}   {wording.finding(f)}" for f in verdict["findings"]]
    for export in results["exports"]:
        lines += ["", "The exported classifier's answers:"]
        lines += [
            f"  {a['label']:<6} {a['probability']:.2f}  {a['text']}" for a in export["answers"]
        ]
        lines.append(f"SavedModel: {export['saved_model']}")
    lines += ["", *wording.shown(results)] if results["verdicts"] else []
    if folder:
        lines.append(f"Report:     {Path(folder) / 'report.html'}")
    return "\n".join(lines)


def _figure(name: str, caption: str = "") -> list[str]:
    return [f"![{name}](plots/{name}.svg)", "", *([f"*{caption}*", ""] if caption else [])]


def _list(items: list[str]) -> list[str]:
    return [f"- {item}" for item in items]


def markdown_table(rows: list[list[str]]) -> list[str]:
    """Markdown of a table, its first row the header; columns of numbers stand to the right.

    A row whose label is indented belongs to the one above it and is set in italics.
    """
    shown = [[cell.strip().replace("|", "\\|") for cell in row] for row in rows]
    _, *columns = zip(*(shown[1:] or shown), strict=True)
    right = [False, *(all(cell[:1] in "-+−0123456789" for cell in c) for c in columns)]
    for row, cells in zip(rows, shown, strict=True):
        if row[0].startswith(" "):
            cells[:] = [f"*{cell}*" if cell else "" for cell in cells]
    lines = ["| " + " | ".join(cells) + " |" for cells in shown]
    lines.insert(1, "|" + "|".join("---:" if is_right else "---" for is_right in right) + "|")
    return lines
