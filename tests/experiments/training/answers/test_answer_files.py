"""Files of answers hold every row and every column of what was asked."""

import csv
import datetime
import decimal
import json

import pytest

from data_prep.tasks.files.table import Table
from experiments.training.answers.answer_files import open_answers
from official_bert.common.errors import UserError

HEAD = {"head": "classification", "problem": "single_label"}
ROWS = [
    {"id": 7, "text": 'one, "two"\nthree', "label": "x", "note": None},
    {"id": 8, "text": " ", "label": "y", "note": "n"},
    {"id": 9, "text": "four", "label": "y", "note": "a\tb"},
]
ANSWERS = [
    {"id": "7", "label": "x", "probabilities": [0.75, 0.25]},
    None,
    {"id": "9", "label": "x", "probabilities": [1.0, 0.0]},
]
TABLE = Table("a.jsonl", "jsonl", ("id",), ("text",))


def written(path, rows=ROWS, answers=ANSWERS, source=TABLE):
    with open_answers(str(path), source, HEAD, ["x", "y"]) as write:
        write(rows[:2], answers[:2])
        write(rows[2:], answers[2:])
    return path


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.parquet"])
def test_rows_with_all_their_columns(tmp_path, name):
    path = written(tmp_path / name)
    if name.endswith("parquet"):
        found = pytest.importorskip("pyarrow.parquet").read_table(path).to_pylist()
    else:
        text = path.read_text()
        found = json.loads(text) if name == "a.json" else list(map(json.loads, text.splitlines()))
    assert [row["text"] for row in found] == [row["text"] for row in ROWS]
    assert [row["id"] for row in found] == [7, 8, 9]
    assert [row["input_label"] for row in found] == ["x", "y", "y"]
    assert [row.get("label") for row in found] == ["x", None, "x"]
    assert found[2]["probabilities"] == [1.0, 0.0]


def test_a_csv_file_is_one_row_a_row(tmp_path):
    with open(written(tmp_path / "a.csv"), newline="") as file:
        header, *rows = csv.reader(file)
    assert header == [
        "id", "text", "input_label", "note", "label", "probability_x", "probability_y"
    ]  # fmt: skip
    assert rows[0] == ["7", 'one, "two"\nthree', "x", "", "x", "0.75", "0.25"]
    assert rows[1] == ["8", " ", "y", "n", "", "", ""] and len(rows) == 3


def test_a_tsv_file_is_one_line_a_row(tmp_path):
    lines = written(tmp_path / "a.tsv").read_text().splitlines()
    assert lines[1].split("\t") == ["7", 'one, "two" three', "x", "", "x", "0.75", "0.25"]
    assert lines[3].split("\t")[3] == "a b" and len(lines) == 4


TOLD = [
    (10004567.0, "10004567.0"), (52.5200066, "52.5200066"), (20240100017.0, "20240100017.0"),
    (1e-7, "1e-07"), (2**63, str(2**63)), (True, "true"), (False, "false"), ("1.10", "1.10"),
    (None, ""), ([1.23456789, None], "[1.23456789, null]"), ({"a": 1.0}, '{"a": 1.0}'),
    (decimal.Decimal("1.10"), "1.10"), (datetime.date(2024, 1, 2), "2024-01-02"),
    (datetime.datetime(2024, 1, 2, 3, 4, 5, 678), "2024-01-02 03:04:05.000678"),
    (datetime.time(3, 4), "03:04:00"), (b"\xff", r"b'\xff'"),
    ({"at": datetime.time(3, 4), "of": [decimal.Decimal("1.10")]},
     '{"at": "03:04:00", "of": ["1.10"]}'),
]  # fmt: skip


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_columns_of_the_input_come_out_as_they_went_in(tmp_path, name):
    """Issue: users' numbers had the six digits of ours, and times ended the command."""
    rows = [{"text": "a", "mine": value} for value, _ in TOLD]
    answers = [{"label": "x", "probabilities": [0.123456789, 1e-9]}] * len(rows)
    with open(written(tmp_path / name, rows, answers), newline="") as file:
        _, *found = csv.reader(
            file, delimiter="," if name == "a.csv" else "\t", quoting=3 * (name == "a.tsv")
        )
    assert [row[1] for row in found] == [shown for _, shown in TOLD]
    assert {tuple(row[3:]) for row in found} == {("0.123457", "1e-09")}
    assert len(written(tmp_path / "a.jsonl", rows, answers).read_text().splitlines()) == len(rows)


def test_an_empty_line_stays_one(tmp_path):
    lines = Table("a.txt", "lines", ("text",), ("text",))
    rows = [{"text": "one"}, {"text": ""}, {"text": "four"}]
    found = written(tmp_path / "a.tsv", rows, ANSWERS, lines).read_text().splitlines()
    assert found[2] == "" and found[3].startswith("four\tx\t")
    found = written(tmp_path / "a.jsonl", rows, ANSWERS, lines).read_text().splitlines()
    assert found[1] == "{}"


def test_no_field_is_lost(tmp_path):
    rows = [*ROWS[:2], {**ROWS[2], "more": 1}]
    with pytest.raises(UserError, match="a row has the field more, which the first rows have not"):
        written(tmp_path / "a.tsv", rows)
    assert not (tmp_path / "a.tsv").exists()
