"""README's figure: the gaps of Table 5 against what pre-training is worth.

A point is a table of experiments/results/table5. Above, SQuAD: across what its column gains from
pre-training (No NSP less random weights), up how far left-to-right falls behind, with its interval.
Below, QNLI: what next sentence prediction is worth, against pre-training tokens.
"""

from pathlib import Path

from experiments.tables.judging.results import Results, read
from experiments.tables.planning.claims import Comparison
from experiments.tables.reporting.plots import COLOURS, pyplot, svg

RANDOM, MASKED, LEFT_TO_RIGHT, BERT = (
    "random initialisation", "No NSP", "LTR & No NSP", "BERT",
)  # fmt: skip
WORTH, TOKENS = "worth", "tokens"  # what stands across
# Title, column, the rows whose difference is drawn, what stands across, the paper's difference.
PANELS = (
    (
        "Left-to-right on SQuAD, exact match",
        "SQuAD exact match",
        MASKED,
        LEFT_TO_RIGHT,
        WORTH,
        None,
    ),
    ("Next sentence prediction on QNLI", "QNLI", BERT, MASKED, TOKENS, 3.5),
)
NOTE = (
    "NSP: next sentence prediction. LTR: the model reads from left to right only.\n"
    "8M to 131M: tokens of pre-training. Bars are 95 % intervals.\n"
    "Exploratory: drawn after the tables' claims were judged."
)


def points(results: Results, column: str, better: str, worse: str) -> list[dict]:
    """Return the points of a table: "worth", "effect", "low", "high", "size" and "tokens", those
    with an interval."""
    rows = {row.label: row for row in results.rows}
    judged = {
        Comparison(f.comparison.column, f.comparison.better, f.comparison.worse): f.effect
        for verdict in results.verdicts
        for f in verdict.findings
        if f.effect and f.effect.low is not None
    }
    found = []
    for label, row in rows.items():
        name, comma, size = label.partition(", ")
        gap = judged.get(Comparison(column, f"{better}{comma}{size}", f"{worse}{comma}{size}"))
        cells = [rows[one].cells.get(column) for one in (label, RANDOM) if one in rows]
        means = [cell.scores.mean for cell in cells if cell and cell.scores]
        if name != MASKED or not gap or len(means) < 2:
            continue
        model = results.model(row)
        tokens, millions = model.pretraining.tokens, size.removesuffix("M")
        if not tokens and millions.isdigit():  # a kept model: its label says it
            tokens = int(millions) * 1e6
        found.append(
            {
                "worth": means[0] - means[1],
                "size": f"{model.shape.layers} layers, {model.shape.hidden} wide",
                "tokens": tokens and tokens / 1e6,
                **{"effect": gap.mean, "low": gap.low, "high": gap.high},
            }
        )
    return found


def draw(folder: Path) -> str:
    """Draw the figure of the tables in a folder, as SVG."""
    tables = [read(p) for p in sorted(folder.glob("*/results.json"))]
    plt = pyplot()
    figure, panels = plt.subplots(2, 1, figsize=(5, 6), layout="constrained")  # readable on a phone
    drawn = [[p for t in tables for p in points(t, *panel[1:4])] for panel in PANELS]
    sizes = sorted({p["size"] for found in drawn for p in found})
    for axes, found, (title, _, better, worse, across, paper) in zip(
        panels, drawn, PANELS, strict=True
    ):
        axes.axhline(0, color="#6a6a65", linewidth=1)
        if paper:
            axes.axhline(paper, color="#1b1b1b", linestyle=(0, (4, 3)), linewidth=1,
                         label=f"the paper's {paper}")  # fmt: skip
        for size in sizes:
            mine = [p for p in found if p["size"] == size and p[across] is not None]
            if not mine:
                continue
            effects = [p["effect"] for p in mine]
            bars = [[e - p["low"] for e, p in zip(effects, mine, strict=True)],
                    [p["high"] - e for e, p in zip(effects, mine, strict=True)]]  # fmt: skip
            axes.errorbar(
                [p[across] for p in mine], effects, bars, fmt="os^D"[sizes.index(size)],
                color=COLOURS[sizes.index(size)], label=size, capsize=2, markersize=6,
                elinewidth=1.4,
            )  # fmt: skip
        if across == WORTH:
            for point in found:
                axes.annotate(f"{point['tokens']:.0f}M", (point["worth"], point["effect"]),
                              (6, -10), textcoords="offset points", fontsize=8)  # fmt: skip
            axes.set_xlabel("what pre-training is worth: No NSP less random weights, points")
        else:
            axes.set_xscale("log")
            axes.set_xticks([8, 33, 131], ["8", "33", "131"])
            axes.minorticks_off()
            axes.set_xlabel("pre-training tokens, millions")
        axes.set_title(title)
        axes.set_ylabel(f"{better} less {worse}, points")
        axes.legend(loc="upper left", fontsize=8)
    figure.supxlabel(NOTE, fontsize=8)
    return svg(figure)
