"""Dataclasses as JSON values, and back.

A field that has its default may be left out (`optional`). A dataclass may be written among the
fields of its owner (`inline`), a dict among them too (`rest`). Some have a form of their own
(`in_form`).
"""

import dataclasses
import typing
from collections.abc import Callable
from typing import Any

from official_bert.common.errors import UserError
from official_bert.common.typed import typed


def optional(default: Any = None, **how: Any) -> Any:
    """Declare a field that is not written while it has its default; `how`: as of
    `dataclasses.field`."""
    how = how or {"default": default}
    return dataclasses.field(metadata={"optional": True}, **how)


def inline() -> Any:
    """Declare a dataclass whose fields are written among its owner's; None writes no field."""
    return dataclasses.field(default=None, metadata={"inline": True})


def rest() -> Any:
    """Declare a dict {name: JSON value} that is written among its owner's fields: what no other
    field is named after."""
    return dataclasses.field(default_factory=dict, metadata={"rest": True})


def in_form(to_json: Callable, of_json: Callable, **how: Any) -> Any:
    """Declare a field with a form of its own; `how`: as of `dataclasses.field`.

    Args:
      to_json: function of the value.
      of_json: function of its JSON values and the beginning of an error's message.
    """
    return dataclasses.field(metadata={"form": (to_json, of_json)}, **how)


def to_json(value: Any) -> Any:
    """Return the JSON values of a dataclass, or of a list or dict of these."""
    if isinstance(value, (list, tuple)):
        return [to_json(each) for each in value]
    if isinstance(value, dict):
        return {name: to_json(each) for name, each in value.items()}
    if not dataclasses.is_dataclass(value):
        return value
    found, fields = {}, dataclasses.fields(value)
    for field in fields:
        part, how = getattr(value, field.name), field.metadata
        if taken := how.get("rest") and part.keys() & {one.name for one in fields}:
            raise ValueError(f"{type(value).__name__}.{field.name}: {min(taken)} is a field's name")
        if how.get("inline") or how.get("rest"):
            found |= to_json(part or {})
        elif not how.get("optional") or part != _default(field):
            found[field.name] = how["form"][0](part) if "form" in how else to_json(part)
    return found


def of_json(kind: Any, values: Any, where: str) -> Any:
    """Return JSON values as a type: a dataclass, a list, tuple or dict of types, a plain type, or
    one of these `| None`.

    Raises:
      UserError: a field is missing or of another type.
    """
    parts, origin = typing.get_args(kind), typing.get_origin(kind)
    if type(None) in parts:
        return None if values is None else of_json(parts[0], values, where)
    if origin in (list, tuple):
        several = _checked(values, list, where)
        kinds = parts[:1] * len(several) if origin is list or parts[1] is ... else parts
        if len(kinds) != len(several):
            raise UserError(f"{where}: expected a list of {len(kinds)}")
        return origin(of_json(*pair, where) for pair in zip(kinds, several, strict=True))
    if origin is dict:
        named = _checked(values, dict, where)
        return {name: of_json(parts[1], each, f"{where}: {name}") for name, each in named.items()}
    if dataclasses.is_dataclass(kind):
        return _of_fields(kind, values, where)
    return _checked(values, kind, where)


def _of_fields(kind: Any, values: Any, where: str) -> Any:
    hints, fields, found = typing.get_type_hints(kind), dataclasses.fields(kind), {}
    others = {*_checked(values, dict, where)} - {field.name for field in fields}
    for field in fields:
        hint, how = hints[field.name], field.metadata
        if how.get("inline"):
            inline = typing.get_args(hint)[0]
            if {one.name for one in dataclasses.fields(inline)} & values.keys():
                found[field.name] = of_json(inline, values, where)
        elif how.get("rest"):
            found[field.name] = {name: values[name] for name in values if name in others}
        elif field.name not in values:
            if not how.get("optional"):
                raise UserError(f"{where}: {field.name} is missing")
        elif "form" in how:
            found[field.name] = how["form"][1](values[field.name], where)
        else:
            found[field.name] = of_json(hint, values[field.name], f"{where}: {field.name}")
    return kind(**found)


def _checked(values: Any, hint: Any, where: str) -> Any:
    try:
        return typed(values, hint)
    except TypeError as error:
        raise UserError(f"{where}: {error}") from None


def _default(field: dataclasses.Field) -> Any:
    made = field.default_factory
    return field.default if made is dataclasses.MISSING else made()
