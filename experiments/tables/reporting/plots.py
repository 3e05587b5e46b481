"""The curves of a report, as SVG text: learning curves, Figure 5, perplexity against scores."""

import io

from experiments.tables.judging.results import Results
from experiments.tables.judging.verdicts import Finding
from experiments.training.pretraining.heldout import main_loss

# Okabe and Ito's colours, which readers with any colour vision can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#6B6B6B", "#1B1B1B")
PAPER = "#fdfcf9"  # the page's background


def figures(results: Results) -> dict[str, tuple[str, str]]:
    """Return {name: (caption, SVG)} of every figure that the results have data for."""
    found = {}
    gaps = [curve for curve in results.curves if any(point.less for point in curve.points)]
    scores = [curve for curve in results.curves if curve not in gaps]
    if any(curve.points for curve in scores):
        found["steps"] = (
            "Score after fine-tuning against pre-training steps; bars are one standard deviation "
            "over seeds.",
            _figure5(scores),
        )
    if any(_gaps_of(curve, results) for curve in gaps):
        found["gaps"] = (
            "Differences of two rows, fine-tuned, against pre-training steps: bars are 95 % "
            "intervals, dashed lines the paper's differences.",
            _gaps(gaps, results),
        )
    scatter = _perplexity_against_scores(results)
    if scatter:
        found["perplexity"] = (
            "Scores against the held-out perplexity of the pre-trained model, one colour a task.",
            scatter,
        )
    if results.pretraining_curves:
        found["pretraining"] = (
            "Pre-training loss by step (masked-LM or left-to-right loss, without the next-sentence "
            "loss): training, smoothed, as lines and held-out text as dots. The dashed lines are "
            "what a model reaches that knows only how frequent each word piece is.",
            _pretraining(results),
        )
    return found


def pyplot():
    """Return matplotlib.pyplot with the look of the reports."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams.update(
        {
            "svg.fonttype": "none",  # text stays text: sharp, searchable, small
            "svg.hashsalt": "official_bert",  # the same figure gives the same file
            "font.family": "sans-serif",
            "font.sans-serif": ["Inter", "Helvetica Neue", "Arial", "DejaVu Sans"],
            "font.size": 9.5,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.edgecolor": "#9a9a94",
            "axes.labelcolor": "#3d3d3a",
            "axes.titlesize": 10,
            "axes.titlelocation": "left",
            "axes.grid": True,
            "axes.axisbelow": True,
            "grid.color": "#e9e7e0",
            "grid.linewidth": 0.8,
            "xtick.color": "#6a6a65",
            "ytick.color": "#6a6a65",
            "legend.frameon": False,
            "figure.facecolor": PAPER,
            "axes.facecolor": PAPER,
        }
    )
    return pyplot


def svg(figure) -> str:
    """Return the figure as SVG and close it."""
    file = io.StringIO()
    figure.savefig(file, format="svg", bbox_inches="tight", metadata={"Date": None})
    pyplot().close(figure)
    text = file.getvalue()
    return text[text.index("<svg") :]


def _colour(labels: list[str], label: str) -> str:
    return COLOURS[labels.index(label) % len(COLOURS)]


def _pretraining(results) -> str:
    plt = pyplot()
    labels = [model.name for model in results.scale_facts.models]
    figure, axes = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
    named = set()
    baselines = {
        model.name: alone[main_loss(alone)]
        for model in results.scale_facts.models
        if model.pretraining and (alone := model.pretraining.heldout_baseline)
    }
    for line in results.pretraining_curves:
        colour = _colour(labels, line.label)
        label = None if line.label in named else line.label
        named.add(line.label)
        if line.training:
            steps, losses = zip(*line.training, strict=True)
            axes.plot(steps, _smooth(losses), color=colour, linewidth=1.5, label=label)
        if line.heldout:
            axes.plot(*zip(*line.heldout, strict=True), "o", color=colour, markersize=4.5)
    for loss in sorted(set(baselines.values())):
        axes.axhline(loss, color="#9a9a94", linestyle=(0, (4, 3)), linewidth=1)
    axes.set_xlabel("step")
    axes.set_ylabel("loss, nats a piece")
    figure.legend(loc="outside lower left", ncols=3)
    return svg(figure)


def _gaps_of(curve, results) -> list[tuple[int, Finding]]:
    """Return (steps, the claim's finding) of those points of a curve of gaps that were judged."""
    judged = {
        (asked.column, asked.better, asked.worse): finding
        for verdict in results.verdicts
        for finding, asked in zip(verdict.findings, verdict.claim.comparisons, strict=True)
        if finding.effect
    }
    keys = [(p.steps, (curve.column, p.row, p.less)) for p in curve.points]
    return [(steps, judged[key]) for steps, key in keys if key in judged]


def _gaps(curves, results) -> str:
    """Draw differences of rows against steps: a panel for each column, a line for each two rows."""
    plt = pyplot()
    labels = list(dict.fromkeys(curve.label for curve in curves))
    columns = list(dict.fromkeys(curve.column for curve in curves))
    steps = sorted({point.steps for curve in curves for point in curve.points})
    lines = -(-len(columns) // 2)
    figure, panels = plt.subplots(
        lines, 2, figsize=(7.0, 2.1 * lines + 0.5), squeeze=False, sharex=True, layout="constrained"
    )
    panels = dict(zip(columns, panels.flat, strict=False))
    for curve in curves:
        axes, colour = panels[curve.column], _colour(labels, curve.label)
        found = _gaps_of(curve, results)
        shift = 1 + 0.05 * labels.index(curve.label)  # bars side by side
        for step, finding in found:
            if finding.effect.low is not None:
                ends = finding.effect.low, finding.effect.high
                axes.plot([shift * step] * 2, ends, color=colour, linewidth=2, alpha=0.5)
            if finding.paper_effect is not None:
                axes.axhline(finding.paper_effect, color=colour, linestyle=(0, (4, 3)),
                             linewidth=1)  # fmt: skip
        axes.plot(
            [shift * step for step, _ in found],
            [finding.effect.mean for _, finding in found],
            "o-", color=colour, markersize=4.5, linewidth=1.4, label=curve.label,
        )  # fmt: skip
    for column, axes in panels.items():
        axes.axhline(0, color="#6a6a65", linewidth=1)
        axes.set_title(column)
        axes.set_xscale("log")
        axes.set_xticks(steps, [f"{step:,}" for step in steps])
        axes.minorticks_off()
    figure.supxlabel("pre-training steps", fontsize=9.5)
    figure.supylabel("points", fontsize=9.5)
    handles = {label: line for axes in panels.values()
               for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}  # fmt: skip
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=2)
    return svg(figure)


def _figure5(curves) -> str:
    """Draw scores against steps: a panel for each column, a line for each way to pre-train."""
    plt = pyplot()
    labels = list(dict.fromkeys(curve.label for curve in curves))
    columns = list(dict.fromkeys(curve.column for curve in curves))
    figure, panels = plt.subplots(
        len(columns), figsize=(5.6, 2.9 * len(columns) + 0.6), squeeze=False, sharex=True
    )
    panels = dict(zip(columns, panels[:, 0], strict=True))
    for curve in curves:
        points = curve.points
        if not points:
            continue
        panels[curve.column].errorbar(
            [p.steps for p in points],
            [p.mean for p in points],
            yerr=[p.deviation or 0 for p in points],
            color=_colour(labels, curve.label),
            marker="o",
            markersize=4.5,
            capsize=3,
            linewidth=1.6,
            label=curve.label,
        )
    for column, axes in panels.items():
        axes.set_ylabel(column)
    axes.set_xlabel("pre-training steps")
    panels[columns[0]].legend(loc="best")
    return svg(figure)


def _perplexity_against_scores(results) -> str | None:
    """Draw Table 6: one point for each model and task; None without data."""
    heldout = next(
        (c.label for c in results.columns if "perplexity" in c.metric and c.heldout),
        None,
    )
    tasks = [c.label for c in results.columns if not c.heldout]
    if results.name != "table6" or heldout is None or not tasks:
        return None
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(5.6, 3.6))
    drawn = False
    for task in tasks:
        points = [
            (losses.mean, scores.mean, row.label)
            for row in results.rows
            if (losses := row.cells[heldout].scores) and (scores := row.cells[task].scores)
        ]
        if not points:
            continue
        drawn = True
        points.sort()
        xs, ys, names = zip(*points, strict=True)
        colour = _colour(tasks, task)
        axes.plot(xs, ys, "o-", color=colour, linewidth=1, markersize=5, label=task)
        if task == tasks[0]:
            for x, y, name in points:
                axes.annotate(name, (x, y), (4, 5), textcoords="offset points", fontsize=8)
    if not drawn:
        plt.close(figure)
        return None
    axes.set_xlabel("held-out perplexity (lower is better)")
    axes.set_ylabel("score on dev")
    axes.invert_xaxis()
    axes.legend(loc="best", ncols=len(tasks))
    return svg(figure)


def _smooth(values: list[float], weight: float = 0.6) -> list[float]:
    """Return the exponential moving average, without bias at its start."""
    smoothed, average, total = [], 0.0, 0.0
    for value in values:
        average = weight * average + (1 - weight) * value
        total = weight * total + (1 - weight)
        smoothed.append(average / total)
    return smoothed
