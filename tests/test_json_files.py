"""One function reads JSON: size, depth and kind are checked; messages name file and field."""

import ast
import dataclasses
import datetime
import decimal
import json
import os
from pathlib import Path

import pytest

from official_bert.common import json_files
from official_bert.common.errors import UserError
from official_bert.common.json_files import field, fields_of, list_of, parse_json, read_json

ROOT = Path(__file__).parent.parent
# Lines of our own logs, words of a command line, a pipe, keys of our own, what a
# library has just written and the first line of a file that is looked at may be read directly.
DIRECT = {
    "official_bert/common/json_files.py": 2,
    "official_bert/checkpoints/files/safetensors_files.py": 1,
    "official_bert/tokenization/graph/foreign_tables.py": 2,
    "official_bert/tokenization/library/tokenizer_json.py": 1,
    "data_prep/corpus/sources.py": 1,
    "data_prep/tasks/files/formats.py": 1,
    "experiments/ablate.py": 2,
    "experiments/tables/run/pool.py": 1,
    "experiments/training/folder/checkpointing.py": 1,
    "experiments/training/folder/inputs.py": 1,
    "experiments/training/step/strategies.py": 1,
    "experiments/training/pretraining/heldout.py": 1,
    "experiments/training/settings/config_values.py": 1,
    "experiments/training/folder/run_folder.py": 1,
}


def test_everything_else_goes_through_it():
    found = {}
    for package in ("official_bert", "data_prep", "experiments"):
        for path in sorted((ROOT / package).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            nodes = ast.walk(ast.parse(text)) if "json.load" in text else ()
            names = [ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute)]
            if calls := sum(name in ("json.load", "json.loads") for name in names):
                found[str(path.relative_to(ROOT))] = calls
    assert found == DIRECT


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "not valid JSON"),
        (b"", "not valid JSON"),
        (b'{"a": NaN}', "NaN is not a number of JSON"),
        (b'{"a": -Infinity}', "-Infinity is not a number"),
        (b'{"a": 1e999}', "1e999 is beyond"),
        (b'{"a": 1' + b"0" * 5000 + b"}", "not valid JSON"),
        (b'{"a":\n "\xff"}', "not UTF-8: invalid start byte at byte 8, line 2"),
        (b"[1]", r"expected a JSON object, not \[1\]"),
        (b'"' + b"x" * 500 + b'"', 'expected a JSON object, not "xxx.{0,80}\\.\\.\\.$'),
        (b"null", "expected a JSON object, not null"),
        *((b'{"a":' * n + b"1" + b"}" * n, "nested too deeply") for n in (65, 500, 990, 50_000)),
        *((b"[" * n + b"]" * n, "nested too deeply") for n in (65, 900, 995, 1000, 50_000)),
    ],
)
def test_what_is_wrong_is_said(tmp_path, content, message):
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(UserError, match=f"(?s)^{path}: .*{message}"):
        read_json(path)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b"\xff", r"b'\xff'"), (datetime.date(2024, 1, 2), "datetime.date(2024, 1, 2)"),
        (datetime.time(1), "datetime.time(1, 0)"), (decimal.Decimal("1.10"), "Decimal('1.10')"),
        ({"a": [decimal.Decimal(2)]}, """{"a": ["Decimal('2')"]}"""), ({1}, "{1}"),
        ([b"\xff"], """["b'\\\\xff'"]"""), (datetime.timedelta(1), "datetime.timedelta(days=1)"),
        ((1, "é"), '[1, "é"]'), (float("nan"), "NaN"), (b"x" * 99, f"b'{'x' * 78}..."),
    ],
)  # fmt: skip
def test_every_value_can_be_shown(value, shown):
    assert json_files.shorten(value) == shown


@pytest.mark.parametrize("text", ['{"a": 1, "a": 1}', '[{"b": {"é": 1, "c": 2, "é": 3}}]'])
def test_a_field_is_there_once(text):
    with pytest.raises(UserError, match=r'here: not valid JSON \(the field "[aé]" is there twice'):
        parse_json(text, "here", None)


def test_what_is_fine_is_read(tmp_path):
    value = {"a": [1, 2.5, "ä", None, True], "b": {"c": []}}
    deep = []
    for _ in range(json_files.MOST_DEPTH - 2):
        deep = [deep]
    path = tmp_path / "file.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(value | {"deep": deep}).encode())
    assert read_json(path) == value | {"deep": deep}
    assert parse_json("[NaN]", "here", list, finite=False)[0] != 0
    assert parse_json("3", "here", None) == 3


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(UserError, match=r"absent.json: cannot be read \(No such.*; look there"):
        read_json(tmp_path / "absent.json", missing="look there")
    with pytest.raises(UserError, match="is not a file"):
        read_json(tmp_path)
    with pytest.raises(UserError, match="is not a file"):
        read_json("/dev/zero")
    os.mkfifo(tmp_path / "pipe.json")  # whose opening would wait for a writer
    with pytest.raises(UserError, match="pipe.json: is not a file"):
        read_json(tmp_path / "pipe.json")
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(UserError, match="large.json: 1,099,511,627,776 bytes; at most 64,000,000"):
        read_json(path)


def test_half_a_character_becomes_one_that_can_be_written(tmp_path):
    path = tmp_path / "file.json"
    path.write_text(r'{"a": ["\ud800b", "\uDFFF", "\ud83d\ude00"], "\ud800": 1}')
    assert read_json(path) == {"a": ["\ufffdb", "\ufffd", "\U0001f600"], "\ufffd": 1}


def test_fields():
    fields = {"n": 3, "b": True, "s": ["a", 4], "x": 1.5}
    assert field(fields, "n", int, "f") == 3 and field(fields, "x", (int, float), "f") == 1.5
    for name, kind, message in (
        ("m", int, "f: the field m is missing; it must be a whole number"),
        ("n", str, "f: n must be a text, not 3"),
        ("b", int, "f: b must be a whole number, not true"),
        ("b", (int, float), "f: b must be a whole number or a number, not true"),
        ("s", dict, r'f: s must be a JSON object, not \["a", 4\]'),
    ):
        with pytest.raises(UserError, match=message):
            field(fields, name, kind, "f")
    with pytest.raises(UserError, match=r"f: s\[1\] must be a text, not 4"):
        list_of(fields, "s", str, "f")


@dataclasses.dataclass
class Settings:
    name: str = ""
    rate: float = 0.0
    sizes: tuple = ()
    prompts: dict = dataclasses.field(default_factory=dict)
    accents: bool | None = None


def test_fields_of_a_dataclass_are_of_its_kinds():
    written = {"name": "a", "rate": 1, "sizes": [1, 2], "prompts": {"b": "c"}, "accents": True}
    expected = Settings("a", 1, (1, 2), {"b": "c"}, True)
    assert Settings(**fields_of(Settings, written, "here")) == expected
    assert fields_of(Settings, {}, "here") == {}
    for wrong, message in (
        (
            {"nmae": "a"},
            r"here: unknown field nmae \(did you mean \"name\"\?\); the fields are name",
        ),
        ({"rate": "1"}, "here: rate must be a number"),
        ({"name": True}, "here: name must be a text, not true"),
        ({"sizes": "12"}, "here: sizes must be a list"),
        ({"prompts": []}, "here: prompts must be a JSON object"),
        ({"accents": "no"}, "here: accents must be true or false or nothing"),
    ):
        with pytest.raises(UserError, match=message):
            fields_of(Settings, written | wrong, "here")
