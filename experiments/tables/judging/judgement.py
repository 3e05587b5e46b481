"""The judgement of a table's claims, from its results.

`gather` reads nothing but the results (results.json) and the scores by example of its runs: when a
table has just been run, and years later from what is committed of it
(`experiments.tables.judging.archives`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from experiments.tables.judging.evidence import Evidence
from experiments.tables.judging.intervals import Effect
from experiments.tables.judging.verdicts import (
    Finding,
    Verdict,
    above_baseline,
    judge,
    row_effect,
)
from experiments.tables.planning.claims import Claim, Comparison
from experiments.training.pretraining.heldout import main_loss

# Masked-LM loss rests for thousands of steps a little below that of word frequencies alone, then
# breaks. A model is taken to have left when it is this many nats below them.
_PLATEAU_DEPTH = 1.0


def judge_results(results: dict, claims: Sequence[Claim], runs: Mapping) -> None:
    """Put into the results of a table the verdicts on claims and every row's own interval.

    Args:
      runs: (row, column) -> `intervals.Run`s with the influence of each example.
    """
    evidence = gather(results, runs)
    for row in results["rows"]:
        for column, cell in row["cells"].items():
            if (row["label"], column) in evidence.runs:
                cell["above_baseline"] = above_baseline(row["label"], column, evidence)
                cell["interval"] = _interval_values(row["label"], column, evidence)
    results["verdicts"] = [_verdict_values(judge(claim, evidence)) for claim in claims]


def claims_of(results: dict) -> tuple[Claim, ...]:
    """Return the claims that results were judged by."""
    names = [field.name for field in fields(Comparison)]
    return tuple(
        Claim(
            verdict["name"],
            verdict["text"],
            verdict["section"],
            tuple(Comparison(**{n: finding[n] for n in names}) for finding in verdict["findings"]),
            tuple(verdict["left_out"]),
            verdict["own"],
            verdict.get("exploratory", False),
        )
        for verdict in results["verdicts"]
    )


def gather(results: dict, runs: Mapping) -> Evidence:
    """Return the evidence in a table's results; `runs` as for `judge_results`."""
    columns, rows = results["columns"], results["rows"]
    models = {model["name"]: model for model in results["scale_facts"]["models"]}
    perplexities = frozenset(c["label"] for c in columns if c["metric"].endswith("perplexity"))
    of_rows = {row["label"]: models[row["variant"]] for row in rows}
    return Evidence(
        runs,
        results["baselines"],
        lower_is_better=frozenset(c["label"] for c in columns if c["lower_is_better"]),
        in_logs=perplexities,
        in_nats=frozenset(c["label"] for c in columns if not c["percent"]) - perplexities,
        holes={
            (row["label"], column): cell["hole"]
            for row in rows
            for column, cell in row["cells"].items()
            if "hole" in cell
        },
        random_rows=tuple(
            row["label"]
            for row in rows
            if row["reference"] and of_rows[row["label"]].get("random_init")
        ),
        pretrained={label: model["name"] for label, model in of_rows.items() if "steps" in model},
        plateau={label: why for label, model in of_rows.items() if (why := _plateau(model))},
        samples={c["label"]: c.get("sample", c["label"]) for c in columns},
        paper={
            (row["label"], c["label"]): row["cells"][c["label"]]["paper"]
            for row in rows
            for c in columns
            # With another data set's number there is nothing to compare.
            if c["label"] == c["paper_column"] and row["cells"][c["label"]]["paper"] is not None
        },
    )


def _plateau(model: dict) -> str:
    """Say why a model's pre-trainings are taken to be on the masked-LM plateau, all or some of
    them; "" where none is. A model that reads one way never is."""
    alone = model.get("heldout_baseline")
    if not alone or model["direction"] != "bidirectional":
        return ""
    name = main_loss(alone)
    losses = [heldout[name] for heldout in model["heldout"] if heldout]
    stuck = [loss for loss in losses if loss > alone[name] - _PLATEAU_DEPTH]
    if not stuck:
        return ""
    said = f"held-out loss {max(stuck):.2f}, word frequencies alone {alone[name]:.2f}"
    return said if len(stuck) == len(losses) else f"{len(stuck)} of {len(losses)} seeds; {said}"


def _verdict_values(verdict: Verdict) -> dict[str, Any]:
    return {
        "name": verdict.claim.name,
        "text": verdict.claim.text,
        "section": verdict.claim.section,
        "own": verdict.claim.own,
        **({"exploratory": True} if verdict.claim.exploratory else {}),
        "left_out": list(verdict.claim.left_out),
        "verdict": verdict.verdict,
        **({"extent": list(verdict.extent)} if verdict.extent else {}),
        "depends_on": list(verdict.depends_on),
        "mean_effect": verdict.mean_effect and _effect(verdict.mean_effect),
        "footnotes": list(verdict.footnotes),
        "findings": [_finding(finding) for finding in verdict.findings],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    comparison = finding.comparison
    return {
        **{field.name: getattr(comparison, field.name) for field in fields(Comparison)},
        "unit": finding.unit,
        "verdict": finding.verdict,
        "reason": finding.reason,
        **_effect(finding.effect),
        "detectable": finding.detectable,
        "paper_effect": finding.paper_effect,
        "size_agrees": finding.size_agrees,
        "p": finding.p,
        "refutation": finding.refutation,
        "holm": finding.holm,
    }


def _effect(effect: Effect | None) -> dict[str, Any]:
    """Return an effect and what its interval was computed from; None throughout where there is
    none."""
    values = {field.name: effect and getattr(effect, field.name) for field in fields(Effect)}
    return {"effect": values.pop("mean"), **values}


def _interval_values(row: str, column: str, evidence: Evidence) -> dict[str, Any]:
    """Return a row's own mean with its interval; a perplexity's is that of its logarithm, whose
    standard error and variances are in nats."""
    values = _effect(row_effect(row, column, evidence))
    del values["others"]
    if column in evidence.in_logs:
        for name in ("effect", "low", "high"):
            values[name] = None if values[name] is None else math.exp(values[name])
    return values
