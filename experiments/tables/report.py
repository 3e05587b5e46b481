"""The report of an ablation: verdicts first, then the table beside the paper's, then the plots.

`write` makes report.md with plots/ from results, and wraps it as report.html (one file, nothing to
load from elsewhere); `experiments.ablate` calls it at its end, `experiments.report` draws it again.
"""

import json
import string
from pathlib import Path

from experiments.tables.claims import NOT_DECIDED, NOT_REPRODUCED, REPRODUCED
from official_bert.files import atomic_write

TEMPLATE = Path(__file__).with_name("report_template.html")
CLASSES = {REPRODUCED: "yes", NOT_REPRODUCED: "no", NOT_DECIDED: "open"}
MINUS = "\N{MINUS SIGN}"


def write(results: dict, folder: str | Path) -> dict[str, str]:
    """Writes results.json, report.html, report.md and plots/*.svg; returns their paths."""
    from experiments.tables import plots

    folder = Path(folder)
    figures = plots.figures(results)
    paths = {"json": folder / "results.json", "html": folder / "report.html"}
    paths["markdown"] = folder / "report.md"
    with atomic_write(paths["json"]) as file:
        json.dump(results, file, indent=1)
        file.write("\n")
    for name, (_, svg) in figures.items():
        with atomic_write(folder / "plots" / f"{name}.svg") as file:
            file.write(svg)
    text = markdown(results, figures)
    with atomic_write(paths["markdown"]) as file:
        file.write(text)
    with atomic_write(paths["html"]) as file:
        file.write(html(text, figures))
    return {name: str(path) for name, path in paths.items()}


def html(text: str, figures: dict) -> str:
    """The Markdown report as one page, with its figures in it and nothing to fetch."""
    from markdown_it import MarkdownIt
    from markdown_it.common.utils import escapeHtml

    drawings = {f"plots/{name}.svg": svg for name, (_, svg) in figures.items()}
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule(
        "image", lambda self, tokens, index, *_: drawings[tokens[index].attrs["src"]]
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


def markdown(results: dict, figures: dict) -> str:
    """The whole report."""
    lines = [f"# {heading(results)}", "", *_verdict_lines(results), ""]
    lines += ["## Results", "", *_table(_rows(results)), "", caption(results), ""]
    missing = holes(results)
    if missing:
        lines += ["**Holes.** " + " ".join(missing), ""]
    for name, (text, _) in figures.items():
        lines += [f"![{name}](plots/{name}.svg)", "", f"*{text}*", ""]
    trained = _pretraining_rows(results)
    if len(trained) > 1:
        lines += ["## Pre-training", "", *_table(trained), ""]
    for export in results["exports"]:
        rows = [["text", "answer", "probability"]]
        rows += [[a["text"], a["label"], f"{a['probability']:.2f}"] for a in export["answers"]]
        lines += ["## The exported classifier's answers", "", *_table(rows), ""]
        lines += [f"SavedModel: {export['saved_model']}", ""]
    lines += ["## How to run it again", "", f"    {results['command']}", "", footer(results), ""]
    return "\n".join(lines)


def text(results: dict, folder: str | Path = "") -> str:
    """The table, the verdicts and the paths, for a terminal."""
    rows = _rows(results)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [heading(results), ""]
    for index, row in enumerate(rows):
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
        if index == 0:
            lines.append("-" * (sum(widths) + 2 * len(widths) - 2))
    lines += ["", "Ours: mean, standard deviation (number of runs). " + caption(results), ""]
    lines += holes(results)
    for verdict in results["verdicts"]:
        lines.append(f"{verdict['verdict'].upper():<26} {verdict['text']} (section "
                     f"{verdict['section']})")  # fmt: skip
        lines += [f"{'':<26}   {_finding(f)}" for f in verdict["findings"]]
    for export in results["exports"]:
        lines += ["", "The exported classifier's answers:"]
        lines += [
            f"  {a['label']:<6} {a['probability']:.2f}  {a['text']}" for a in export["answers"]
        ]
        lines.append(f"SavedModel: {export['saved_model']}")
    if folder:
        lines.append(f"Report:     {Path(folder) / 'report.html'}")
    return "\n".join(lines)


def heading(results: dict) -> str:
    name = results["name"].replace("table", "Table ").replace("figure", "Figure ").strip()
    return f"{name}: {results['title']} ({results['scale']} scale)"


def caption(results: dict) -> str:
    """The scale of the numbers, in one paragraph: models, steps, tokens, text, substitutions."""
    facts = results["scale_facts"]
    sentences = []
    shapes: dict[tuple, list[str]] = {}
    for model in facts["models"]:
        if model.get("checkpoint"):
            sentences.append(f"{model['name']} is the checkpoint {model['checkpoint']}.")
        elif "steps" in model:
            shapes.setdefault(_training(model), []).append(model["name"])
    for training, names in shapes.items():
        sentences.append(f"{_join(names)}: {training}.")
    if facts["corpus"]:
        sentences.append(f"Corpus: {facts['corpus']}.")
    for records in list(facts["records"].values())[:1]:
        counts = records["counts"]
        sentences.append(
            f"{counts['corpus_tokens']:,} tokens in {counts['corpus_documents']:,} documents; "
            f"held out: {records['heldout_counts']['corpus_documents']:,} documents."
        )
    for column in results["columns"]:
        if column["note"]:
            sentences.append(f"{column['label']}: {column['note']}.")
    examples = [
        f"{c['label']} {c['train_examples']:,} / {c['dev_examples']:,}"
        for c in results["columns"]
        if not c["heldout"]
    ]
    if examples:
        sentences.append(f"Examples (training / dev): {', '.join(examples)}.")
    return " ".join(sentences + [note.rstrip(".") + "." for note in results["notes"]])


def footer(results: dict) -> str:
    machine = results["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    return (
        f"Made on {results['date']} with Python {machine['python']}, {versions}, on "
        f"{machine['processor']} with {machine['cores']} cores; {results['cells']['finished']} "
        f"cells of together {results['seconds'] / 60:.0f} minutes, at least one of them at work "
        f"for {results['wall_seconds'] / 60:.0f} minutes."
    )


def holes(results: dict) -> list[str]:
    """Why a cell of the table is empty or short of runs."""
    return [
        f"{row['label']}, {label}: {cell['hole']}."
        for row in results["rows"]
        for label, cell in row["cells"].items()
        if "hole" in cell
    ]


def _training(model: dict) -> str:
    heads, lengths = model["heads"], "/".join(map(str, model["lengths"]))
    size = model["parameters"]
    words = (
        f"{model['layers']} layers, {model['hidden']} wide, {heads} heads, "
        f"{size / 1e6:.1f} M parameters, {model['vocabulary']:,} word pieces, "
        f"{model['steps']:,} steps of {model['batch_size']} sequences of {lengths}"
    )
    if model["tokens"]:
        words += f" ({model['tokens'] / 1e6:.1f} M tokens)"
    return words + f", {model['seeds']} pre-training{'s' if model['seeds'] > 1 else ''}"


def _join(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _verdict_lines(results) -> list[str]:
    lines = ["## What the numbers say about the paper's claims", ""]
    if not results["verdicts"]:
        return []
    for verdict in results["verdicts"]:
        lines.append(
            f"- **{verdict['verdict']}**: {verdict['text']} (section {verdict['section']})"
        )
        lines += [f"  - {_finding(finding)}" for finding in verdict["findings"]]
    return lines


def _finding(finding: dict) -> str:
    """ "QNLI: BERT over No NSP +3.5 [1.2, 5.8]: the interval lies above 0"."""
    effect = ""
    if finding["effect"] is not None:
        effect = f" {_signed(finding['effect'], 2)}"
        if finding["low"] is not None:
            effect += f" [{_format(finding['low'], 2)}, {_format(finding['high'], 2)}]"
    return (
        f"{finding['column']}: {finding['better']} over {finding['worse']}{effect}: "
        f"{finding['reason']}"
    )


def _rows(results) -> list[list[str]]:
    """The table as text: a line of ours for each row, and one of the paper's below where it has."""
    columns = results["columns"]
    header = ["", *(_header(column) for column in columns)]
    rows = [header]
    for row in results["rows"]:
        cells = [row["cells"][c["label"]] for c in columns]
        rows.append(
            [row["label"], *(_ours(cell, c) for cell, c in zip(cells, columns, strict=True))]
        )
        if any(cell["paper"] is not None for cell in cells):
            paper = [
                _format(cell["paper"], 1) if cell["paper"] is not None else "" for cell in cells
            ]
            rows.append([f"  the paper's {row['paper_row']}", *paper])
            differences = [
                _signed(cell["difference"], 1) if cell.get("difference") is not None else ""
                for cell in cells
            ]
            if any(differences):
                rows.append(["  difference", *differences])
    baseline = [
        _format(results["baselines"][c["label"]], _digits(c))
        if c["label"] in results["baselines"]
        else ""
        for c in columns
    ]
    rows.append(["trivial baseline", *baseline])
    used = {row["paper_row"] for row in results["rows"]}
    paper = results["paper"]
    for label, numbers in (paper["rows"] if paper else {}).items():
        if label not in used:
            cells = [numbers.get(c["paper_column"]) for c in columns]
            if any(cell is not None for cell in cells):
                shown = ["" if cell is None else _format(cell, 1) for cell in cells]
                rows.append([f"(paper) {label}", *shown])
    return rows


def _pretraining_rows(results) -> list[list[str]]:
    """Every pre-training: its shape, steps and minutes, and what it reached on held-out text."""
    rows = [
        [
            "pre-training",
            "L / H / A",
            "steps",
            "tokens",
            "minutes",
            "held-out loss (frequencies alone)",
            "perplexity",
            "NSP accuracy (majority)",
        ]
    ]
    for model in results["scale_facts"]["models"]:
        if not model.get("heldout_baseline"):
            continue
        alone = _format(model["heldout_baseline"]["masked_lm_loss"], 2)
        for seed, heldout in enumerate(model["heldout"], 1):
            loss, accuracy = heldout.get("masked_lm_loss"), heldout.get("next_sentence_accuracy")
            perplexity = heldout.get("masked_lm_perplexity")
            majority = heldout.get("next_sentence_majority", 0)
            rows.append(
                [
                    f"{model['name']}, seed {seed}",
                    f"{model['layers']} / {model['hidden']} / {model['heads']}",
                    f"{model['steps']:,}",
                    f"{model['tokens'] / 1e6:.1f} M",
                    f"{model['minutes'][seed - 1]:.1f}",
                    "" if loss is None else f"{_format(loss, 3)} ({alone})",
                    "" if perplexity is None else _format(perplexity),
                    ""
                    if accuracy is None
                    else f"{_format(100 * accuracy)} ({_format(100 * majority)})",
                ]
            )
    return rows


def _table(rows: list[list[str]]) -> list[str]:
    """Markdown of a table, its first row the header; all columns but the first to the right."""
    shown = [[cell.strip().replace("|", "\\|") for cell in row] for row in rows]
    lines = ["| " + " | ".join(row) + " |" for row in shown]
    lines.insert(1, "|---|" + "---:|" * (len(rows[0]) - 1))
    return lines


def _header(column) -> str:
    paper = column["paper_column"]
    return column["label"] + (f" (paper: {paper})" if paper and paper != column["label"] else "")


def _ours(cell, column) -> str:
    if "mean" not in cell:
        return "failed" if cell.get("hole", "not finished") != "not finished" else "-"
    return _format(cell["mean"], _digits(column)) + _spread(cell, column)


def _spread(cell, column) -> str:
    count = len(cell["values"])
    if cell["deviation"] is None:
        return f" ({count})"
    return f" \N{PLUS-MINUS SIGN} {_format(cell['deviation'], _digits(column))} ({count})"


def _digits(column) -> int:
    return 1 if column["percent"] else 2


def _format(value: float, digits: int = 1) -> str:
    shown = f"{value:,.{digits}f}"
    if float(shown.replace(",", "")) == 0:
        shown = shown.lstrip("-")
    return shown.replace("-", MINUS)


def _signed(value: float, digits: int = 1) -> str:
    shown = _format(value, digits)
    return shown if shown.startswith(MINUS) else f"+{shown}"
