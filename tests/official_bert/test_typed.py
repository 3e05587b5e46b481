"""Values of the types that settings declare."""

from typing import Any

import pytest

from official_bert.common.typed import fits, parsed, type_words, typed


@pytest.mark.parametrize(
    ("value", "hint", "found"),
    [
        (3, float, 3.0), (3, int | float, 3), (3, float | int, 3), (True, bool, True),
        ([1, 2], tuple[int, ...], (1, 2)), ((1, 2), list[int], [1, 2]), ([1], list, [1]),
        ([[1, 2]], tuple[tuple[int, int], ...], ((1, 2),)), (None, int | None, None),
        ({"a": 1}, dict[str, int], {"a": 1}), ("a", str | dict, "a"), (1.5, Any, 1.5),
    ],
)  # fmt: skip
def test_a_value_stands_for_what_is_declared(value, hint, found):
    made = typed(value, hint)
    assert (made, type(made)) == (found, type(found)) and fits(value, hint)


@pytest.mark.parametrize(
    ("value", "hint", "message"),
    [
        (True, int, "a whole number"), (True, float, "a number"), (1, bool, "true or false"),
        (1, str, "a text"), ("1", int, "a whole number"), (1.5, int, "a whole number"),
        ([1, "a"], tuple[int, ...], "a list, each a whole number"),
        ([1], tuple[int, int], "a list of 2, each a whole number"),
        (None, int | str, "a whole number or a text"), ("a", dict, "a JSON object"),
    ],
)  # fmt: skip
def test_another_type_is_named(value, hint, message):
    with pytest.raises(TypeError, match=f"^expected {message}$"):
        typed(value, hint)
    assert not fits(value, hint)


def test_digits_may_stand_for_a_text():
    assert typed(7, str, digits=True) == "7" and typed(7, str | int, digits=True) == 7
    assert typed([0, 1], list[str], digits=True) == ["0", "1"]
    for value in (True, 1.5):
        with pytest.raises(TypeError):
            typed(value, str, digits=True)


@pytest.mark.parametrize(
    ("text", "hint", "value"),
    [
        ("1e3", int, 1000), ("-2", int, -2), ("3e-5", float, 3e-5), ("FALSE", bool, False),
        ("1", bool, True), ("none", float | None, None), ("", int | None, None),
        ("none", str, "none"), ("a, b", tuple[str, ...], ("a", "b")), ("x", dict | str, "x"),
        ("(5,2)", tuple[int, ...], (5, 2)), ("", tuple[str, ...], ()), ("a", list, ["a"]),
    ],
)  # fmt: skip
def test_text_is_read_as_what_is_declared(text, hint, value):
    assert parsed(text, hint) == value


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("1.5", int), ("1e999", int), ("maybe", bool), ("fast", float), ("1,2,3", tuple[int, int]),
        ("1,a", tuple[int, ...]), ("{}", dict), ("", int),
    ],
)  # fmt: skip
def test_text_that_stands_for_nothing_of_the_type_is_refused(text, hint):
    with pytest.raises(TypeError, match="expected "):
        parsed(text, hint)


def test_types_are_said_in_words():
    assert type_words((int, float)) == type_words(int | float) == "a whole number or a number"
    assert type_words(tuple[str, ...] | None) == "a list, each a text or nothing"
    assert type_words(set) == "set"
