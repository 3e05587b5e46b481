"""The tables of a report, as rows of text with a header: scores, differences, findings, runs."""

import itertools

from experiments.tables.judging.other_methods import METHODS
from experiments.tables.judging.results import Results, RowResult
from experiments.tables.judging.verdicts import NOT_DECIDED, NOT_TESTED, Finding, Verdict
from experiments.tables.reporting import number_words, wording
from experiments.tables.reporting.number_words import interval, number, signed
from experiments.training.pretraining.heldout import main_loss

BASELINE_MARK = "\N{DEGREE SIGN}"
BELOW_MARK = "\N{WHITE DOWN-POINTING SMALL TRIANGLE}"
MASKS_MARK = "\N{DAGGER}"


def yardstick(results: Results) -> RowResult:
    """Return the row that the others are compared with: the first one, as in the paper's tables."""
    rows = results.rows
    return next((row for row in rows if not row.reference), rows[0])


def scores(results: Results, with_differences: bool = False) -> list[list[str]]:
    """List our scores, a line a row, with the paper's line below where it has one.

    Args:
      with_differences: also a line of differences from the first row, the paper's in brackets.
    """
    columns = results.columns
    rows = [["", *(_header(column) for column in columns)]]
    first = yardstick(results)
    for row in results.rows:
        cells = [row.cells[c.label] for c in columns]
        rows.append([row.label, *(_ours(row, column, results) for column in columns)])
        if any(cell.paper is not None for cell in cells):
            paper = ["" if cell.paper is None else number(cell.paper) for cell in cells]
            rows.append([f"  the paper's {row.paper_row}", *paper])
        if with_differences and row is not first:
            found = [_difference(results, row, column) for column in columns]
            if any(paper is not None for _, paper in found):
                rows.append([f"  less {first.label}", *(_beside(*pair) for pair in found)])
    baselines = results.baselines
    shown = [number(baselines[c.label], _digits(c)) if c.label in baselines else ""
             for c in columns]  # fmt: skip
    rows.append(["trivial baseline", *shown])
    used = {row.paper_row for row in results.rows}
    for label, numbers in (results.paper.rows if results.paper else {}).items():
        cells = [numbers.get(c.paper_column) for c in columns]
        if label not in used and any(cell is not None for cell in cells):
            shown = ["" if cell is None else number(cell) for cell in cells]
            rows.append([f"(paper) {label}", *shown])
    return rows


def differences(results: Results) -> list[list[str]]:
    """Return each row less the first, ours beside the paper's; empty where the paper has none."""
    first = yardstick(results)
    others = [row for row in results.rows if row is not first]
    columns = [
        column
        for column in results.columns
        if any(_difference(results, row, column)[1] is not None for row in others)
    ]
    if not columns:
        return []
    found = [[_difference(results, row, column) for column in columns] for row in others]
    header = [""]
    for column in columns:
        header += [f"{_header(column)}: ours less {first.label}",
                   f"the paper's less {first.paper_row}"]  # fmt: skip
    rows = [header]
    for row, line in zip(others, found, strict=True):
        shown = ["" if value is None else signed(value) for pair in line for value in pair]
        rows.append([row.label, *shown])
    return rows


def claims(results: Results) -> list[list[str]]:
    """List the claims, a line each: verdict, whose it is and mean effect."""
    rows = [["", "claim", "whose", "verdict", "mean effect [95 %]"]]
    paper = "the paper's" if results.paper else ""
    for index, verdict in enumerate(results.verdicts, 1):
        text, whose = wording.claim_text(verdict), "ours" if verdict.claim.own else paper
        outcome = f"**{wording.outcome(verdict)}**{wording.dependence(verdict)}"
        tested = [f for f in verdict.findings if f.verdict != NOT_TESTED]
        if len(tested) < len(verdict.findings) and not verdict.extent:
            outcome += f", {len(tested)} of {len(verdict.findings)} comparisons tested"
        rows.append([str(index), text, whose, outcome, interval(verdict.mean_effect, 1)])
    return _without_empty_columns(rows)


def findings(verdict: Verdict) -> list[list[str]]:
    """List the comparisons of a claim: our effect, the paper's, the detectable one, the verdict.

    Empty columns are left out.
    """
    others = METHODS if verdict.verdict != NOT_DECIDED else ()
    rows = [["comparison", "ours [95 %]", *others, "the paper's", "detectable", "p", "verdict"]]
    for f in verdict.findings:
        by_method = f.effect.others if f.effect else {}
        numbers = [
            interval(f.effect),
            *(_optional(by_method.get(method), number_words.bounds) for method in others),
            _papers(f),
            _optional(f.detectable, number),
            _optional(wording.p_of(f), lambda p: "<0.001" if p < 0.001 else f"{p:.3f}"),
        ]
        verdict_text = f"{wording.SHORT[f.verdict]}: {f.reason}"
        rows.append([wording.comparison_text(f.comparison), *numbers, verdict_text])
    return _without_empty_columns(rows)


def _without_empty_columns(rows: list[list[str]]) -> list[list[str]]:
    kept = [any(row[i] for row in rows[1:]) for i in range(len(rows[0]))]
    return [list(itertools.compress(row, kept)) for row in rows]


def _papers(finding: Finding) -> str:
    """Return the paper's effect, and whether our interval holds it."""
    shown = _optional(finding.paper_effect, signed)
    agrees = finding.size_agrees
    return shown if agrees is None else f"{shown}, {'inside' if agrees else 'outside'}"


def pretrainings(results: Results) -> list[list[str]]:
    """List every pre-training: its shape, steps and minutes, and its scores on held-out text."""
    rows = [[
        "", "L / H / A", "steps", "tokens", "minutes", "held-out loss (frequencies alone)",
        "perplexity", "NSP accuracy (majority)",
    ]]  # fmt: skip
    for model in results.scale_facts.models:
        made, shape = model.pretraining, model.shape
        if not made or not made.heldout_baseline:
            continue
        main = main_loss(made.heldout_baseline)
        alone = number(made.heldout_baseline[main], 2)
        curves = [c for c in results.pretraining_curves if c.label == model.name]
        for curve, heldout, minutes in zip(curves, made.heldout, made.minutes, strict=True):
            loss = _optional(heldout.get(main), lambda x: number(x, 3))
            accuracy = _optional(heldout.get("next_sentence_accuracy"), lambda x: number(100 * x))
            majority = number(100 * heldout.get("next_sentence_majority", 0))
            rows.append([
                f"{model.name}, {curve.seed}",
                f"{shape.layers} / {shape.hidden} / {shape.heads or '–'}",
                f"{made.steps:,}",
                f"{made.tokens / 1e6:.1f} M",
                f"{minutes:.1f}",
                loss and f"{loss} ({alone})",
                _optional(heldout.get("masked_lm_perplexity"), number),
                accuracy and f"{accuracy} ({majority})",
            ])  # fmt: skip
    return rows


def every_run(results: Results) -> list[list[str]]:
    """List the score of every run: a line a row and pre-training seed, fine-tuning seeds in
    order."""
    columns = results.columns
    rows = [["pre-training seed", *(column.label for column in columns)]]
    for row in results.rows:
        cells = {c.label: row.cells[c.label].scores for c in columns}
        runs = {label: scores.values if scores else [] for label, scores in cells.items()}
        for seed in sorted({pretrain for values in runs.values() for pretrain, _, _ in values}):
            shown = [
                " ".join(number(v, _digits(c)) for p, _, v in runs[c.label] if p == seed)
                for c in columns
            ]
            rows.append([f"{row.label}, {seed}", *shown])
    return rows


def _difference(results, row, column) -> tuple[float | None, float | None]:
    """Return (ours, the paper's) of the row's number less that of the first row.

    The paper's number on another data set does not compare, so it is None.
    """
    cell, base = (r.cells[column.label] for r in (row, yardstick(results)))
    ours = cell.scores.mean - base.scores.mean if cell.scores and base.scores else None
    papers = (cell.paper, base.paper)
    if None in papers or column.label != column.paper_column:
        return ours, None
    return ours, papers[0] - papers[1]


def _beside(ours, paper) -> str:
    if ours is None:
        return ""
    return signed(ours) + ("" if paper is None else f" ({signed(paper)})")


def _header(column) -> str:
    paper = column.paper_column
    return column.label + (f" (paper: {paper})" if paper and paper != column.label else "")


def _ours(row, column, results) -> str:
    cell, digits = row.cells[column.label], _digits(column)
    scores = cell.scores
    if not scores:
        return "-" if cell.hole in ("", "not finished") else "failed"
    shown = number(scores.mean, digits)
    if scores.deviation is not None:
        shown += f" \N{PLUS-MINUS SIGN} {number(scores.deviation, digits)}"
    if column.heldout and _masks(results, row) != _masks(results, yardstick(results)):
        shown += MASKS_MARK
    return f"{shown} ({len(scores.values)}){_beside_baseline(cell, column, results)}"


def _beside_baseline(cell, column, results) -> str:
    """Return the mark of a score that is not above the trivial baseline."""
    if column.label not in results.baselines or cell.standing.above_baseline:
        return ""
    gain = cell.scores.mean - results.baselines[column.label]
    is_below = (-gain if column.lower_is_better else gain) < 0
    return BELOW_MARK if is_below else BASELINE_MARK


def _masks(results, row) -> tuple:
    """Return (records, name of the loss) of a row's held-out loss: equal for rows that compare."""
    made = results.model(row).pretraining
    return (made.records, next(iter(made.heldout_baseline or [""]))) if made else ()


def _digits(column) -> int:
    return 1 if column.percent else 2


def _optional(value, show) -> str:
    return "" if value is None else show(value)
