"""Verdicts as JSON values, and back. The finding of a comparison is one flat object."""

import dataclasses
from typing import Any

from experiments.tables.judging.intervals import Effect
from experiments.tables.judging.verdicts import Finding, Verdict
from experiments.tables.planning.claims import Claim, Comparison
from experiments.training.folder import dataclass_json


def to_json(verdicts: list[Verdict]) -> list[dict]:
    """Return the JSON values of verdicts."""
    return [_of_verdict(verdict) for verdict in verdicts]


def of_json(values: list[dict]) -> list[Verdict]:
    """Return the verdicts that `to_json` wrote."""
    return [_verdict(each) for each in values]


def _of_verdict(verdict: Verdict) -> dict[str, Any]:
    claim = verdict.claim
    return {
        "name": claim.name,
        "text": claim.text,
        "section": claim.section,
        "own": claim.own,
        **({"exploratory": True} if claim.exploratory else {}),
        "left_out": list(claim.left_out),
        "verdict": verdict.verdict,
        **({"extent": list(verdict.extent)} if verdict.extent else {}),
        "depends_on": list(verdict.depends_on),
        "mean_effect": verdict.mean_effect and of_effect(verdict.mean_effect),
        "footnotes": list(verdict.footnotes),
        "findings": [_of_finding(finding) for finding in verdict.findings],
    }


def _of_finding(finding: Finding) -> dict[str, Any]:
    """Return a finding without its footnotes, which its verdict has."""
    values = dict(vars(finding))
    del values["footnotes"]
    first = {name: values.pop(name) for name in ("unit", "verdict", "reason")}
    comparison, effect = vars(values.pop("comparison")), of_effect(values.pop("effect"))
    return comparison | first | effect | values


def of_effect(effect: Effect | None) -> dict[str, Any]:
    """Return the fields of an effect; every value is None where there is no effect."""
    names = [field.name for field in dataclasses.fields(Effect)]
    values = {name: dataclass_json.to_json(effect and getattr(effect, name)) for name in names}
    return {"effect": values.pop("mean"), **values}


def _verdict(values: dict) -> Verdict:
    findings = tuple(map(_finding, values["findings"]))
    claim = Claim(
        values["name"],
        values["text"],
        values["section"],
        tuple(finding.comparison for finding in findings),
        tuple(values["left_out"]),
        values["own"],
        values.get("exploratory", False),
    )
    extent = values.get("extent")
    return Verdict(
        claim,
        values["verdict"],
        findings,
        values["mean_effect"] and _effect(values["mean_effect"]),
        tuple(values["footnotes"]),
        extent and tuple(extent),
        tuple(values["depends_on"]),
    )


def _finding(values: dict) -> Finding:
    comparison = Comparison(**{f.name: values[f.name] for f in dataclasses.fields(Comparison)})
    known = {f.name for f in dataclasses.fields(Finding)} & values.keys() - {"effect"}
    effect = None if values["effect"] is None else _effect(values)
    return Finding(comparison, effect=effect, **{name: values[name] for name in known})


def _effect(values: dict) -> Effect:
    return Effect(
        values["effect"], **{f.name: values[f.name] for f in dataclasses.fields(Effect)[1:]}
    )
