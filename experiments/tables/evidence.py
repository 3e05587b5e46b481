"""What the claims of a table are judged by, from its finished cells; and the verdicts as JSON.

results.json keeps every effect with its standard error, by source, and degrees of freedom: enough
to compute its interval, p value and verdict again.
"""

import math
from dataclasses import fields
from typing import Any

from experiments.tables.intervals import Effect
from experiments.tables.paper import TABLES
from experiments.tables.verdicts import Evidence, Finding, Verdict, row_effect
from experiments.training.config import resolve_bert
from experiments.training.heldout import main_loss

# Masked-LM loss rests for thousands of steps a little below that of word frequencies alone, then
# breaks. A model is taken to have left when it is this many nats below them.
_PLATEAU_DEPTH = 1.0


def gather(ablation, plan, statuses, runs, holes) -> Evidence:
    """The evidence in an ablation's cells.

    Args:
      statuses: of the plan's cells.
      runs: (row, column) -> runs.
      holes: (row, column) -> why there are none, or not all.
    """
    paper = TABLES.get(ablation.name)
    perplexities = frozenset(c.label for c in ablation.columns if c.metric.endswith("perplexity"))
    return Evidence(
        runs,
        _baselines(ablation, plan, statuses),
        lower_is_better=frozenset(c.label for c in ablation.columns if c.lower_is_better),
        in_logs=perplexities,
        in_nats=frozenset(c.label for c in ablation.columns if not c.percent) - perplexities,
        holes=holes,
        random_rows=tuple(
            r.label for r in ablation.rows if ablation.variant(r.variant).random_init
        ),
        plateau=_plateau(ablation, plan, statuses),
        samples={
            c.label: f"{c.finetune.task} {c.finetune.data_dir}"
            for c in ablation.columns
            if c.finetune
        },
        paper={
            (row.label, column.label): number
            for row in ablation.rows
            for column in ablation.columns
            # With another data set's number there is nothing to compare.
            if column.label == column.paper_column
            and (number := paper and paper.number(row.paper_row, column.paper_column)) is not None
        },
    )


def verdict_values(verdict: Verdict) -> dict[str, Any]:
    return {
        "name": verdict.claim.name,
        "text": verdict.claim.text,
        "section": verdict.claim.section,
        "verdict": verdict.verdict,
        "mean_effect": verdict.mean_effect and _effect(verdict.mean_effect),
        "footnotes": list(verdict.footnotes),
        "findings": [_finding(finding) for finding in verdict.findings],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    comparison = finding.comparison
    return {
        "column": comparison.column,
        "better": comparison.better,
        "worse": comparison.worse,
        "whole": comparison.whole,
        "kind": comparison.kind,
        "margin": comparison.margin,
        "unit": finding.unit,
        "verdict": finding.verdict,
        "reason": finding.reason,
        **_effect(finding.effect),
        "detectable": finding.detectable,
        "paper_effect": finding.paper_effect,
        "p": finding.p,
        "refutation": finding.refutation,
        "holm": finding.holm,
    }


def _effect(effect: Effect | None) -> dict[str, Any]:
    """An effect and what its interval was computed from; None throughout where there is none."""
    values = {field.name: effect and getattr(effect, field.name) for field in fields(Effect)}
    return {"effect": values.pop("mean"), **values}


def interval_values(row: str, column: str, evidence: Evidence) -> dict[str, Any]:
    """A row's own mean with its interval; a perplexity's is that of its logarithm, whose standard
    error and variances are in nats."""
    values = _effect(row_effect(row, column, evidence))
    if column in evidence.in_logs:
        for name in ("effect", "low", "high"):
            values[name] = None if values[name] is None else math.exp(values[name])
    return values


def _baselines(ablation, plan, statuses) -> dict[str, float]:
    found = {}
    for (_, label), planned in plan.runs.items():
        column = ablation.column(label)
        for one in planned:
            result = statuses[one.cell].result
            if not result or label in found:
                continue
            key = column.metric or result.get("main_metric")
            if key in result["baseline"]:
                found[label] = (100 if column.percent else 1) * result["baseline"][key]
    return found


def _plateau(ablation, plan, statuses) -> dict[str, str]:
    """Rows still on the masked-LM plateau, where those that read one way never are, and why."""
    stuck = {}
    for row in ablation.rows:
        variant = ablation.variant(row.variant)
        if variant.random_init or not variant.pretrain:
            continue
        if resolve_bert(variant.pretrain.bert).attention_direction != "bidirectional":
            continue
        for (name, _), cell in plan.pretrains.items():
            result = statuses[cell].result
            if name != variant.name or not result or not result["heldout"]:
                continue
            if not result["baseline"]:
                continue
            name = main_loss(result["baseline"])  # ELECTRA's is its generator's
            loss, alone = result["heldout"][name], result["baseline"][name]
            if loss > alone - _PLATEAU_DEPTH:
                stuck[row.label] = f"held-out loss {loss:.2f}, word frequencies alone {alone:.2f}"
    return stuck
