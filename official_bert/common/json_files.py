"""Reads JSON that may be damaged, huge, deeply nested, or of another kind than expected.

Every JSON file of the project is read by `read_json`; requests and remote files are read by
`parse_json`. Size, depth and kind are checked, and the message says which file and, with `field`,
which field is wrong.
"""

import collections
import contextlib
import dataclasses
import json
import math
import os
import re
from typing import Any

from official_bert.common.errors import UserError, meant
from official_bert.common.outside_files import read_bytes
from official_bert.common.typed import OF_JSON, as_tuple, fits, outer, type_words

MOST_BYTES = 64_000_000
MOST_DEPTH = 64
_HALVES = re.compile("[\ud800-\udfff]")


def read_json(
    path: str | os.PathLike, kind: type | None = dict, finite: bool = True, missing: str = ""
) -> Any:
    """Return the contents of a JSON file of at most `MOST_BYTES`.

    Halves of surrogate pairs become U+FFFD.

    Args:
      kind: dict or list, what the file must hold; None for any value.
      finite: whether NaN and infinite numbers are refused.
      missing: what to add to the message where the file cannot be read.

    Raises:
      UserError: the file cannot be read, is too large, is not JSON, is nested too deeply, or holds
        something else. The message starts with the path.
    """
    content = read_bytes(path, MOST_BYTES, missing)
    value = parse_json(content, str(path), kind, finite)
    return whole_characters(value, content.decode("utf-8-sig"))


def parse_json(
    content: bytes | str, where: str, kind: type | None = dict, finite: bool = True
) -> Any:
    """Return the value that JSON text holds; `where` starts the message of an error.

    Raises:
      UserError: as `read_json`.
    """
    try:
        text = content if isinstance(content, str) else content.decode("utf-8-sig")
        checks = {"parse_constant": _refuse, "parse_float": _finite} if finite else {}
        value = json.loads(text, object_pairs_hook=_each_once, **checks)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        reason = f"not UTF-8: {error.reason} at byte {error.start}, line {line}"
        raise UserError(f"{where}: not valid JSON ({reason})") from error
    except RecursionError:
        raise UserError(f"{where}: nested too deeply") from None
    except ValueError as error:
        raise UserError(f"{where}: not valid JSON ({error})") from error
    if _is_deeper(value, MOST_DEPTH):
        raise UserError(f"{where}: nested too deeply; at most {MOST_DEPTH} levels are read")
    if kind is not None and not isinstance(value, kind):
        raise UserError(f"{where}: expected {type_words(kind)}, not {shorten(value)}")
    return value


def whole_characters(value: Any, text: str) -> Any:
    """Return `value`, parsed from `text`; U+FFFD stands for halves of surrogate pairs, which files
    cannot hold."""
    if "\\ud" not in text and "\\uD" not in text:  # the escape is the only way to one
        return value
    return json.loads(_HALVES.sub("\ufffd", json.dumps(value, ensure_ascii=False)))


def field(
    fields: dict[str, Any], name: str, kind: type | tuple[type, ...], where: str | os.PathLike
) -> Any:
    """Return `fields[name]`, of the expected kind; a bool is not a number.

    Raises:
      UserError: the field is missing or of another kind; the message names file and field.
    """
    if name not in fields:
        raise UserError(f"{where}: the field {name} is missing; it must be {type_words(kind)}")
    if not fits(fields[name], kind):
        raise UserError(f"{where}: {name} must be {type_words(kind)}, not {shorten(fields[name])}")
    return fields[name]


def list_of(
    fields: dict[str, Any], name: str, kind: type | tuple[type, ...], where: str | os.PathLike
) -> list[Any]:
    """Return `fields[name]`, a list of values of one kind.

    Raises:
      UserError: as `field`.
    """
    values = field(fields, name, list, where)
    for index, value in enumerate(values):
        if not fits(value, kind):
            field({f"{name}[{index}]": value}, f"{name}[{index}]", kind, where)
    return values


def fields_of(kind: type, values: dict[str, Any], where: str | os.PathLike) -> dict[str, Any]:
    """Return values as arguments of a dataclass, each of its field's type, lists as tuples.

    The dataclass itself checks elements.

    Raises:
      UserError: there is no such field, or a value is of another type.
    """
    hints = {one.name: one.type for one in dataclasses.fields(kind)}
    if unknown := sorted(values.keys() - hints.keys()):
        wrong = ", ".join(name + meant(name, hints) for name in unknown)
        raise UserError(f"{where}: unknown field {wrong}; the fields are {', '.join(hints)}")
    return {
        name: as_tuple(field(values, name, outer(hint), where), hint)
        for name, hint in hints.items()
        if name in values
    }


def shorten(value: Any, most: int = 80) -> str:
    """Return the value as JSON, cut to one short line for a message.

    Values that JSON does not have (bytes, dates, decimals of Parquet) are written as in Python.
    """
    if _is_deeper(value, MOST_DEPTH):
        return f"{type_words(type(value))} nested too deeply"
    is_json = isinstance(value, OF_JSON)
    text = json.dumps(value, ensure_ascii=False, default=repr) if is_json else repr(value)
    return text if len(text) <= most else text[:most] + "..."


def _is_deeper(value: Any, depth: int) -> bool:
    if not isinstance(value, (dict, list)):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return depth == 0 or any(_is_deeper(each, depth - 1) for each in inner)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        ((twice, _),) = collections.Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"the field {shorten(twice)} is there twice")
    return found


def _refuse(name: str):
    raise ValueError(f"{name} is not a number of JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is beyond the numbers of a computer")
    return value


def is_json_object(path: str | os.PathLike, *names: str) -> bool:
    """Return whether a file is a JSON object with one of these fields; False if unreadable."""
    with contextlib.suppress(UserError):
        return not read_json(path).keys().isdisjoint(names)
    return False
