"""Verdicts as JSON values, and back. The finding of a comparison is one flat object."""

import dataclasses
from typing import Any

from experiments.tables.judging.intervals import Effect
from experiments.tables.judging.verdicts import Finding, Verdict
from experiments.training.folder import dataclass_json
from official_bert.common.json_files import field, list_of

_DEFAULTS = {
    one.name: one.default
    for one in dataclasses.fields(Finding)
    if one.default is not dataclasses.MISSING
}


def to_json(verdicts: list[Verdict]) -> list[dict]:
    """Return the JSON values of verdicts."""
    return [_of_verdict(verdict) for verdict in verdicts]


def of_json(values: list[dict], where: str) -> list[Verdict]:
    """Return the verdicts that `to_json` wrote.

    Raises:
      UserError: a field is missing or of another type.
    """
    values = list_of({"verdicts": values}, "verdicts", dict, where)
    return dataclass_json.of_json(list[Verdict], [_nested(each, where) for each in values], where)


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


def _nested(values: dict, where: str) -> dict:
    """Return a verdict's values with those of its parts in objects of their own."""
    findings = list_of(values, "findings", dict, where)
    mean = field(values, "mean_effect", (dict, type(None)), where)
    return {
        "extent": None,
        **values,
        "claim": {"exploratory": False, **values, "comparisons": findings},
        "mean_effect": mean and _effect(mean, where),
        "findings": [
            {**_DEFAULTS, **each, "comparison": each, "effect": _effect(each, where)}
            for each in findings
        ],
    }


def _effect(values: dict, where: str) -> dict | None:
    mean = field(values, "effect", (float, type(None)), where)
    return None if mean is None else {**values, "mean": mean}
