"""A claim's effects as a forest plot: our intervals, the paper's effects, single pre-trainings."""

from experiments.tables.claims import GREATER, NOT_DECIDED, NOT_REPRODUCED, NOT_TESTED, REPRODUCED
from experiments.tables.plots import PAPER, pyplot, svg
from experiments.tables.wording import comparison

_COLOURS = {REPRODUCED: "#1a7f4e", NOT_REPRODUCED: "#b3401f", NOT_DECIDED: "#7a6a2b"}
_COLOURS[NOT_TESTED] = "#8a8a85"
_LINE_INCHES = 0.46  # narrow and with labels above the bars: readable on a phone


def forests(results: dict) -> dict[str, str]:
    """ "claimN" -> SVG of every claim that has an effect."""
    found = {}
    for number, verdict in enumerate(results["verdicts"], 1):
        if any(finding["effect"] is not None for finding in verdict["findings"]):
            found[f"claim{number}"] = _forest(results, verdict["findings"])
    return found


def beside_the_paper(results: dict) -> dict[str, tuple[str, str]]:
    """ "paper" -> (caption, SVG) of the differences in points that the paper prints too."""
    found = {comparison(f): f for v in results["verdicts"] for f in v["findings"]}.values()
    shown = [f for f in found if f["paper_effect"] is not None and f["unit"] == "points"]
    shown = [f for f in shown if f["effect"] is not None]
    caption = (
        "Differences that the paper prints too. Dots are ours, with their 95 % intervals; circles "
        "are single pre-trainings; ticks are the paper's. Green: reproduced, red: not reproduced, "
        "brown: open, grey: not tested."
    )
    return {"paper": (caption, _forest(results, shown))} if shown else {}


def _forest(results, findings) -> str:
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(5.4, _LINE_INCHES * len(findings) + 0.55))
    axes.grid(False, axis="y")
    axes.axvline(0, color="#6a6a65", linewidth=1)
    for line, finding in enumerate(findings):
        label = comparison(finding)
        if finding["effect"] is None:
            label += " (no result)"
        else:
            _draw(axes, results, finding, -line)
        axes.annotate(
            label, (0, -line), (0, 6), xycoords=("axes fraction", "data"),
            textcoords="offset points", fontsize=9, bbox={"facecolor": PAPER, "edgecolor": "none",
            "pad": 1},
        )  # fmt: skip
    axes.set_ylim(0.35 - len(findings), 0.75)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.margins(x=0.06)
    axes.set_xlabel(_axis(findings[0]))
    return svg(figure)


def _draw(axes, results, finding, height) -> None:
    colour = _COLOURS[finding["verdict"]]
    if finding["low"] is not None:
        axes.plot(
            [finding["low"], finding["high"]], [height, height], color=colour, alpha=0.45,
            linewidth=4.5, solid_capstyle="butt",
        )  # fmt: skip
    seeds = _by_pretraining(results, finding)
    axes.plot(seeds, [height] * len(seeds), "o", markersize=4, fillstyle="none", color=colour,
              markeredgewidth=0.8)  # fmt: skip
    axes.plot(finding["effect"], height, "o", markersize=6, color=colour)
    paper = finding["paper_effect"]
    if paper is not None:
        axes.plot(paper, height, "|", markersize=12, markeredgewidth=2, color="#1f1e1b")
    if finding["margin"] or finding["kind"] != GREATER:
        bound = [finding["margin"]] * 2
        axes.plot(bound, [height - 0.3, height + 0.3], color="#6a6a65", linestyle=(0, (3, 2)),
                  linewidth=1)  # fmt: skip


def _by_pretraining(results, finding) -> list[float]:
    """The effect of each pre-training seed alone, where there are several; differences of scores.

    A row with one seed, such as a checkpoint, stands beside each of the other's.
    """
    if finding.get("whole") or not _column(results, finding)["percent"]:
        return []
    cells = {row["label"]: row["cells"] for row in results["rows"]}
    better, worse = (
        _means(cells[finding[side]][finding["column"]]) for side in ("better", "worse")
    )
    if len(worse) == 1:
        worse = dict.fromkeys(better, *worse.values())
    seeds = sorted(set(better) & set(worse))
    return [better[seed] - worse[seed] for seed in seeds] if len(seeds) > 1 else []


def _means(cell) -> dict[int, float]:
    """Pre-training seed -> mean over the restarts of fine-tuning."""
    runs: dict[int, list[float]] = {}
    for seed, _, value in cell["values"]:
        runs.setdefault(seed, []).append(value)
    return {seed: sum(values) / len(values) for seed, values in runs.items()}


def _axis(finding) -> str:
    if finding.get("whole"):
        return "percent of the way"
    return f"{finding['unit']} by which the first row is better"


def _column(results, finding) -> dict:
    return next(c for c in results["columns"] if c["label"] == finding["column"])
