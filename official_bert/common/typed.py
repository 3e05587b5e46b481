"""Checks and conversions of values to the types that settings declare.

Configurations, options of tasks, model files and requests come in as JSON, as Python or as text of
a command line. A type is an annotation: a class, `list[X]`, `tuple[X, ...]`, or a union of these. A
whole number is a number too, a bool is neither; a list of JSON stands for a tuple.
"""

import contextlib
import types
import typing
from typing import Any

_WORDS = {
    dict: "a JSON object",
    list: "a list",
    tuple: "a list",
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    type(None): "nothing",
}
OF_JSON = tuple(_WORDS)
_TRUTHS = {"true": True, "1": True, "false": False, "0": False}


def type_words(hint: Any) -> str:
    """Name a type in words for a message."""
    return " or ".join(dict.fromkeys(map(_words_of, _union(hint))))


def fits(value: Any, hint: Any) -> bool:
    """Return whether a value, with its elements, is of a type."""
    # A plain class says nothing of elements, of which a vocabulary has 250,000.
    if type(value) in (hint if isinstance(hint, tuple) else (hint,)):
        return True
    with contextlib.suppress(TypeError):
        typed(value, hint)
        return True
    return False


def typed(value: Any, hint: Any, digits: bool = False) -> Any:
    """Convert a value to a type: whole numbers to floats, lists to tuples, elements alike.

    Args:
      digits: whether a whole number may stand for a text, as on a command line read as JSON.

    Raises:
      TypeError: it is of another type.
    """
    kinds = _union(hint)
    for one in sorted(kinds, key=lambda one: type(value) is not _plain(one)):
        plain = _plain(one)
        if plain in (list, tuple) and isinstance(value, list | tuple):
            element, length = _elements(one)
            with contextlib.suppress(TypeError):
                if length in (None, len(value)):
                    return plain(typed(each, element, digits) for each in value)
        elif plain is Any or isinstance(value, bool) and plain is bool:
            return value
        elif isinstance(value, bool):
            continue
        elif isinstance(value, plain):
            return value
        elif plain is float and isinstance(value, int):
            return float(value)
    if digits and str in kinds and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise TypeError(f"expected {type_words(hint)}")


def as_tuple(value: Any, hint: Any) -> Any:
    """Return a list as a tuple where the type has no list but a tuple; other values as they are."""
    kinds = outer(hint)
    return tuple(value) if type(value) is list and tuple in kinds and list not in kinds else value


def outer(hint: Any) -> tuple[type, ...]:
    """Return the classes of a type, without the types of their elements."""
    return tuple(map(_plain, _union(hint)))


def parsed(text: str, hint: Any) -> Any:
    """Return the value of a type that text of a command line stands for; not for JSON objects.

    Raises:
      TypeError: it stands for none.
    """
    kinds = _union(hint)
    if str in kinds:
        return text
    if type(None) in kinds and text.lower() in ("", "none"):
        return None
    for one in kinds:
        with contextlib.suppress(KeyError, ValueError, OverflowError, TypeError):
            return _parsed(text, one)
    raise TypeError(f"expected {type_words(hint)}")


def _parsed(text, kind):
    if kind is bool:
        return _TRUTHS[text.lower()]
    if kind is int:
        number = int(text) if "e" not in text.lower() else float(text)
        if number != int(number):
            raise ValueError(text)
        return int(number)
    if kind is float:
        return float(text)
    if _plain(kind) in (list, tuple):
        element, length = _elements(kind, str)
        parts = [part.strip() for part in text.strip("()[] ").split(",") if part.strip()]
        if length not in (None, len(parts)):
            raise ValueError(text)
        return _plain(kind)(parsed(part, element) for part in parts)
    raise ValueError(text)


def _elements(kind, otherwise=Any):
    """Return the type of a list's or tuple's elements, and how many it must have; None: any."""
    element, *more = typing.get_args(kind) or (otherwise, ...)
    return element, None if _plain(kind) is list or more == [...] else 1 + len(more)


def _words_of(kind):
    name = _WORDS.get(_plain(kind)) or getattr(kind, "__name__", str(kind))
    if _plain(kind) not in (list, tuple) or not typing.get_args(kind):
        return name
    element, length = _elements(kind)
    return f"{name}{f' of {length}' if length else ''}, each {type_words(element)}"


def _union(hint):
    """Return the types that a hint allows: members of a union or tuple, or the hint itself."""
    if isinstance(hint, tuple):
        return hint
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return typing.get_args(hint) if is_union else (hint,)


def _plain(kind):
    return typing.get_origin(kind) or kind
