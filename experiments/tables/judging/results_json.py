"""JSON values of a table's results (`results`), and back.

A field that has its default may be left out (`optional`). A dataclass may be written among the
fields of its owner (`inline`). The finding of a comparison is one flat object.
"""

import dataclasses
import typing
from typing import Any

from experiments.tables.judging.intervals import Effect
from experiments.tables.judging.verdicts import Finding, Verdict
from experiments.tables.planning.claims import Claim, Comparison
from official_bert.common.errors import UserError
from official_bert.common.typed import typed


def optional(default: Any = None) -> Any:
    """Declare a field that is not written while it has its default."""
    return dataclasses.field(default=default, metadata={"optional": True})


def inline() -> Any:
    """Declare a dataclass whose fields are written among its owner's; None writes no field."""
    return dataclasses.field(default=None, metadata={"inline": True})


def to_json(value: Any) -> Any:
    """Return the JSON values of results."""
    if isinstance(value, (list, tuple)):
        return [to_json(each) for each in value]
    if isinstance(value, dict):
        return {name: to_json(each) for name, each in value.items()}
    if isinstance(value, Verdict):
        return _of_verdict(value)
    if not dataclasses.is_dataclass(value):
        return value
    found = {}
    for field in dataclasses.fields(value):
        part = getattr(value, field.name)
        if field.metadata.get("inline"):
            found |= {} if part is None else to_json(part)
        elif not field.metadata.get("optional") or part != field.default:
            found[field.name] = to_json(part)
    return found


def of_json(kind: Any, values: Any, where: str) -> Any:
    """Return JSON values as a type: a dataclass, a list or dict of these, or a plain type.

    Raises:
      UserError: a field is missing or of another type.
    """
    if kind is Verdict:
        return _verdict(values)
    parts = typing.get_args(kind)
    if type(None) in parts and (values is None or dataclasses.is_dataclass(parts[0])):
        return None if values is None else of_json(parts[0], values, where)
    if typing.get_origin(kind) is list:
        return [of_json(parts[0], each, where) for each in _checked(values, list, where)]
    if typing.get_origin(kind) is dict:
        named = _checked(values, dict, where)
        return {name: of_json(parts[1], each, f"{where}: {name}") for name, each in named.items()}
    return (
        _of_fields(kind, values, where)
        if dataclasses.is_dataclass(kind)
        else _checked(values, kind, where)
    )


def _of_fields(kind: Any, values: Any, where: str) -> Any:
    hints, found = typing.get_type_hints(kind), {}
    for field in dataclasses.fields(kind):
        hint, inner = hints[field.name], f"{where}: {field.name}"
        if field.metadata.get("inline"):
            inline = typing.get_args(hint)[0]
            if dataclasses.fields(inline)[0].name in values:
                found[field.name] = of_json(inline, values, where)
        elif field.name in values:
            found[field.name] = of_json(hint, values[field.name], inner)
        elif not field.metadata.get("optional"):
            raise UserError(
                f"{inner} is missing; a table's results.json is what experiments.ablate writes"
            )
    return kind(**found)


def _checked(values: Any, hint: Any, where: str) -> Any:
    try:
        return typed(values, hint)
    except TypeError as error:
        raise UserError(f"{where}: {error}") from None


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
    values = {name: to_json(effect and getattr(effect, name)) for name in names}
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
