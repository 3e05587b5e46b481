"""Claims as forest plots, as SVG text: our intervals, the paper's effects, single pre-trainings."""

from experiments.tables.judging.results import Results
from experiments.tables.judging.verdicts import NOT_DECIDED, NOT_REPRODUCED, NOT_TESTED, REPRODUCED
from experiments.tables.planning.claims import GREATER
from experiments.tables.reporting import plots, wording

_COLOURS = {REPRODUCED: "#1a7f4e", NOT_REPRODUCED: "#b3401f", NOT_DECIDED: "#7a6a2b"}
_COLOURS[NOT_TESTED] = "#8a8a85"
_LINE_INCHES = 0.46  # narrow and with labels above the bars: readable on a phone


def of_claims(results: Results) -> dict[str, str]:
    """Return {"claimN": SVG} of every claim that has an effect."""
    found = {}
    for number, verdict in enumerate(results.verdicts, 1):
        if any(finding.effect for finding in verdict.findings):
            found[f"claim{number}"] = _forest(verdict.findings)
    return found


def beside_the_paper(results: Results) -> dict[str, tuple[str, str]]:
    """Return {"paper": (caption, SVG)} of the differences in points that the paper prints too."""
    found = wording.distinct_findings(results.verdicts)
    shown = [f for f in found if f.paper_effect is not None and f.unit == "points" and f.effect]
    caption = (
        "Differences that the paper prints too. Dots are ours, with their 95 % intervals; circles "
        "are single pre-trainings; ticks are the paper's. Green: reproduced, red: not reproduced, "
        "brown: open, grey: not tested."
    )
    return {"paper": (caption, _forest(shown))} if shown else {}


def _forest(findings) -> str:
    plt = plots.pyplot()
    figure, axes = plt.subplots(figsize=(5.4, _LINE_INCHES * len(findings) + 0.55))
    axes.grid(False, axis="y")
    axes.axvline(0, color="#6a6a65", linewidth=1)
    for line, finding in enumerate(findings):
        label = wording.comparison_text(finding.comparison)
        if not finding.effect:
            label += " (no result)"
        else:
            _draw(axes, finding, -line)
        axes.annotate(
            label, (0, -line), (0, 6), xycoords=("axes fraction", "data"),
            textcoords="offset points", fontsize=9,
            bbox={"facecolor": plots.PAPER, "edgecolor": "none", "pad": 1},
        )  # fmt: skip
    axes.set_ylim(0.35 - len(findings), 0.75)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.margins(x=0.06)
    axes.set_xlabel(_axis(findings[0]))
    return plots.svg(figure)


def _draw(axes, finding, height) -> None:
    colour, effect = _COLOURS[finding.verdict], finding.effect
    if effect.low is not None:
        axes.plot(
            [effect.low, effect.high], [height, height], color=colour, alpha=0.45,
            linewidth=4.5, solid_capstyle="butt",
        )  # fmt: skip
    seeds = effect.by_pretrain_seed if effect.pretrain_seeds > 1 else ()
    axes.plot(seeds, [height] * len(seeds), "o", markersize=4, fillstyle="none", color=colour,
              markeredgewidth=0.8)  # fmt: skip
    axes.plot(effect.mean, height, "o", markersize=6, color=colour)
    paper = finding.paper_effect
    if paper is not None:
        axes.plot(paper, height, "|", markersize=12, markeredgewidth=2, color="#1f1e1b")
    asked = finding.comparison
    if asked.margin or asked.kind != GREATER:
        bound = [asked.margin] * 2
        axes.plot(bound, [height - 0.3, height + 0.3], color="#6a6a65", linestyle=(0, (3, 2)),
                  linewidth=1)  # fmt: skip


def _axis(finding) -> str:
    if finding.comparison.whole:
        return "percent of the way"
    return f"{finding.unit} by which the first row is better"
