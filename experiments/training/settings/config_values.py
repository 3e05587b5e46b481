"""Configurations as plain values: typed overrides by name, and JSON.

Overrides are those of the command line (`--config.learning_rate=3e-5`). The JSON stands in the
folders of runs and in the keys of a table's cells."""

import dataclasses
import json
import typing

from data_prep.jobs.output_folder import differing
from experiments.training.settings.config import Phase
from experiments.training.settings.options import (
    by_class,
    changes,
    class_of,
    flat,
    names_for,
    replaced,
    unknown_field,
)
from official_bert.common.errors import UserError
from official_bert.common.json_files import fields_of, parse_json, shorten
from official_bert.common.typed import parsed, typed
from official_bert.config import BertConfig, named_config
from official_bert.extension import find, names


def override(config, overrides):
    """Return a configuration with fields replaced.

    Args:
      config: a configuration, a dataclass.
      overrides: dict {"learning_rate": 3e-5, "bert.hidden_size": 64} or list of
        "learning_rate=3e-5"; strings are read as the field's type.

    Raises: UserError for an unknown field or a wrong type.
    """
    if not isinstance(overrides, dict):
        pairs = [text.partition("=") for text in overrides]
        for name, equals, _ in pairs:
            if not equals:
                raise UserError(f'configuration: "{name}" has no value; write {name}=VALUE')
        overrides = {name: value for name, _, value in pairs}
    parts = {}
    for name, value in overrides.items():
        inner = parts
        for key in name.split("."):
            inner = inner.setdefault(key, {})
        inner[None] = value
    return _with(config, parts)


def _with(node, parts, hint=None, path="--config"):
    """Return a node of a configuration with parts replaced.

    Args:
      node: a dataclass, tuple, dict or single value.
      parts: {key of a part: its parts}; the key None holds a value that replaces the node.
      hint: type of the node; None where it has none.
      path: of the node, as the user wrote it.
    """
    inner = {key: value for key, value in parts.items() if key is not None}
    if None in parts:
        node = _typed(parts[None], hint, path) if hint else guess(parts[None])
    if not inner:
        return node
    node = _opened(node, typing.get_args(hint))
    if isinstance(node, dict):
        return node | _made(inner, node, {}, path)
    if isinstance(node, tuple):
        return _with_items(node, inner, hint, path)
    if isinstance(node, BertConfig):
        return _with_sizes(node, inner, path)
    if dataclasses.is_dataclass(node):  # all fields at once, since its checks need all
        known, hints = _known(node, inner)
        return replaced(node, **_made_fields(node, inner, known, hints, path))
    raise UserError(f"{path}.{next(iter(inner))}: {path}={node} has no parts")


def _opened(node, kinds):
    """Return what a name stands for, as one of `kinds`; other nodes as they are."""
    if isinstance(node, str) and node and BertConfig in kinds:
        return named_config(node)
    return {"name": node} if isinstance(node, str) and dict in kinds else node


def _made(inner, known, hints, path):
    """Return {key: part with its own parts replaced}; a part that is not known begins empty."""
    return {
        key: _with(known.get(key, {}), parts, hints.get(key), f"{path}.{key}")
        for key, parts in inner.items()
    }


def _with_items(items, inner, hint, path):
    """Return a tuple with items replaced; keys are positions."""
    known = {str(index): item for index, item in enumerate(items)}
    if unknown := [key for key in inner if key not in known]:
        raise UserError(
            f"{path}.{unknown[0]}: {unknown[0]} is not a position among {len(items)} entries"
        )
    of_item = typing.get_args(hint)[0] if typing.get_origin(hint) is tuple else None
    return tuple((known | _made(inner, known, dict.fromkeys(known, of_item), path)).values())


def _with_sizes(bert, inner, path):
    """Return a BertConfig with fields replaced; a field may make it a subclass."""
    known, hints = dict(vars(bert)), typing.get_type_hints(type(bert))
    for key in {*names("configs")} & inner.keys() - known.keys():
        of_kind = typing.get_type_hints(find("configs", key))
        if key in of_kind:
            known[key], hints[key] = bert.value(key), of_kind[key]
    made = _made_fields(bert, inner, known, hints, path)
    return BertConfig.from_dict({**bert.to_dict(), **made}, "configuration: bert")


def _made_fields(node, inner, known, hints, path):
    """Return `_made` of a dataclass's fields, all of which have to be known."""
    for key in inner:
        if key not in known:
            raise UserError(f"{path}.{key}: {unknown_field(type(node), key)}")
    return _made(inner, known, hints, path)


def _known(node, keys):
    """Return ({name: value}, {name: type}) of a dataclass and of the options among `keys`."""
    kinds = {class_of(type(node), name) for name in {*keys} & {*names_for(type(node))}}
    known = {name: value for name, (_, value) in flat(node).items()}
    hints = typing.get_type_hints(type(node))
    for kind in kinds:
        known = vars(kind()) | known
        hints = typing.get_type_hints(kind) | hints
    return known, hints


def _typed(value, hint, name):
    """Return a value as the type `hint`; text of a command line is parsed."""
    try:
        if not isinstance(value, str):
            return typed(value, hint)
        return parse_json(value, name) if hint is dict else parsed(value, hint)
    except TypeError as error:
        raise UserError(f"{name}={value}: {error}") from None


def guess(value):
    """Return the value of a command line's string for a field without a type: JSON, or the
    string."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads({"True": "true", "False": "false"}.get(value, value))
    except ValueError:
        return value


def to_dict(config):
    """Return the JSON values of a configuration, nested dataclasses included."""
    if isinstance(config, BertConfig):
        return config.to_dict()
    if dataclasses.is_dataclass(config):
        return {name: to_dict(value) for name, (_, value) in flat(config).items()}
    if isinstance(config, dict):
        return {str(key): to_dict(value) for key, value in config.items()}
    if isinstance(config, (list, tuple)):
        return [to_dict(value) for value in config]
    return config


def changes_dict(config):
    """Return `to_dict` without fields that have their defaults; `from_dict` reads it back equal."""
    if isinstance(config, (list, tuple)):
        return [changes_dict(value) for value in config]
    if hasattr(config, "changes"):  # a model's
        return to_dict(config.changes())
    if not dataclasses.is_dataclass(config):
        return to_dict(config)
    found = changes(config)
    for options in found.pop("model_options", ()):
        found |= changes(options)
    return {name: changes_dict(value) for name, value in found.items()}


def from_dict(kind, values, where="configuration"):
    """Return the configuration of the values of `to_dict` or `changes_dict`.

    Args:
      kind: the dataclass, for example PretrainConfig.
      values: JSON values; fields that are missing have their defaults.
      where: begins the message of an error.

    Raises:
      UserError: an unknown field, or a value of another kind.
    """
    if not isinstance(values, dict):
        raise UserError(f"{where}: a {kind.__name__} must be a JSON object, not {shorten(values)}")
    nested, hints = {}, typing.get_type_hints(kind)
    bert, phases = (values.get(name) if name in hints else None for name in ("bert", "phases"))
    if isinstance(bert, dict):
        marks = (find("configs", name) for name in bert.keys() & {*names("configs")})
        others = (one for one in marks if not issubclass(one, BertConfig))
        nested["bert"] = next(others, BertConfig).from_dict(bert)
    if isinstance(phases, (list, tuple)):
        nested["phases"] = tuple(from_dict(Phase, phase, where) for phase in phases)
    given = by_class(kind, values)
    if given:
        made = (one(**fields_of(one, fields, where)) for one, fields in given.items())
        nested["model_options"] = tuple(made)
    others = {*nested, *names_for(kind)}
    plain = {name: value for name, value in values.items() if name not in others}
    return kind(**fields_of(kind, plain, where), **nested)


def result_dict(config):
    """Return the options that determine a run's result: `to_dict` without bookkeeping and
    paths."""
    values = _without(to_dict(config), config, "bookkeeping", "path")
    if "phases" in values:
        phases = zip(values["phases"], config.phases, strict=True)
        values["phases"] = [_without(values, phase, "path") for values, phase in phases]
    if values["bert"] and isinstance(values["bert"], str):
        values["bert"] = named_config(values["bert"]).to_dict()
    return values


def _without(values, config, *kinds):
    fields = {name: field.metadata for name, (field, _) in flat(config).items()}
    return {n: v for n, v in values.items() if not any(fields[n].get(kind) for kind in kinds)}


def differences(old, new):
    """Return lines "field: old -> new" for two dicts of JSON values, nested ones included."""
    return [f"{n}: {json.dumps(a)} -> {json.dumps(b)}" for n, a, b in differing(old, new)]
