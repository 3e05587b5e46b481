import csv
import gzip
import io

import pytest

from data_prep.corpus import text_files
from data_prep.tasks.files import formats, reading
from official_bert.common.errors import UserError


def rows(path, *columns):
    return list(formats.detect_format(path, (columns,)).rows())


def test_tsv_has_no_quoting_and_loses_its_byte_order_mark(write):
    path = write("a.tsv", '\ufefftext\tlabel\n"bare " quote\t1\n'.encode())
    assert rows(path, "text") == [(2, {"text": '"bare " quote', "label": "1"})]


def as_pandas_writes(rows, quoting):
    buffer = io.StringIO()
    csv.writer(buffer, delimiter="\t", quoting=quoting, lineterminator="\n").writerows(rows)
    return buffer.getvalue()


ROWS = [("text", "label"), ('He said "no".', "1"), ("two\tcolumns", "0"), ("two\nlines", "1"),
        ("plain", "0"), ('"all"', "1")]  # fmt: skip


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@pytest.mark.parametrize("last", range(2, len(ROWS) + 1))
def test_tsv_that_was_written_with_quoting_is_read_with_it(write, quoting, last):
    path = write("a.tsv", as_pandas_writes(ROWS[:last], quoting))
    assert [(row["text"], row["label"]) for _, row in rows(path)] == ROWS[1:last]


@pytest.mark.parametrize(
    "line",
    ['"Quoted", he said.', '5" disk', 'He said "no".', '"', '"whole sentence"', 'a "b" ""c"" d'],
)
def test_tsv_with_bare_quotation_marks_is_read_as_it_stands(write, line):
    others = '"He came.\t1\nShe said ""no"".\t0\n' if line != '"whole sentence"' else ""
    path = write("a.tsv", f"text\tlabel\n{line}\t1\n{others}")
    assert rows(path)[0][1] == {"text": line, "label": "1"}
    assert len(rows(path)) == 1 + 2 * bool(others)


def test_jsonl_and_gzip(write):
    content = gzip.compress(b'{"text": "x", "labels": ["a"]}\n\n{"text": "y", "labels": []}\n')
    path = write("a.jsonl.gz", content)
    assert [row["labels"] for _, row in rows(path, "text")] == [["a"], []]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", "text\tlabel\nx\n", r"a\.tsv line 2: 1 column, expected 2 \(text, label\)"),
        ("a.tsv", "text\tlabel\nx\t1\t2\n", r"a\.tsv line 2: 3 columns, expected 2"),
        ("a.tsv", b"text\tlabel\nok\t1\nna\xefve\t1\n", r"a\.tsv line 3: byte 0xef at column 3"),
        ("a.tsv", "", r"a\.tsv is empty"),
        ("a.tsv", "text\tlabel\n", r"a\.tsv has no rows below its header"),
        ("a.jsonl", '{"text": "x"}\n{"text"\n', r"a\.jsonl line 2: not valid JSON"),
        ("a.jsonl", "1\n", r"line 1: expected a JSON object"),
        ("a.csv", 'text,label\n"x,1\n', r"not valid CSV"),
        ("a.jsonl", "1" * 5000, r"line 1: not valid JSON"),
        ("a.json", '{"columns": [["a", "b"]], "data": [[1]]}', r"columns are \['a', 'b'\]"),
        ("a.json", '[{"text": 1},\n{]', r"a\.json: not valid JSON \(.*line 2"),
        ("a.json", '[{"text": "x"}, 3]', r"a\.json object 2: expected a JSON object"),
        ("a.json", "[]", "has no rows"),
    ],
)
def test_errors_name_the_file_and_the_line(write, name, content, message):
    path = write(name, content)
    with pytest.raises(UserError, match=message):
        rows(path, "text")


def test_long_fields_of_csv(write):
    text = "word " * 100_000
    assert rows(write("a.csv", f"text,label\n{text},1\n")) == [(2, {"text": text, "label": "1"})]


def test_halves_of_surrogate_pairs_become_the_replacement_character(write):
    content = r'{"a \udE00": ["\uD83d", {"b": "x\ud83dy"}], "c": "\ud83d\ude00", "d": 0.1}'
    ((_, row),) = rows(write("a.jsonl", content))
    assert row == {"a \ufffd": ["\ufffd", {"b": "x\ufffdy"}], "c": "\U0001f600", "d": 0.1}


def test_lines_of_a_stream_are_those_of_a_file(write):
    content = "\ufeff\ufeffcafé\r\n\nend".encode()
    expected = [(1, "café"), (2, ""), (3, "end")]
    assert list(text_files.decode_lines(io.BytesIO(content), "standard input")) == expected
    assert list(reading.read_lines(write("a.txt", content))) == expected
    with pytest.raises(UserError, match="standard input line 2: byte 0xe9 at column 4"):
        list(text_files.decode_lines(io.BytesIO(b"x\ncaf\xe9\n"), "standard input"))


def test_missing_file():
    with pytest.raises(UserError, match="No such file"):
        rows("/nowhere/a.tsv")


def test_blank_lines_at_the_end_are_no_rows(write):
    assert len(rows(write("a.tsv", "text\tlabel\nx\t1\n\n"))) == 1


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_a_blank_line_of_a_single_column_is_an_empty_text(write, name):
    found = rows(write(name, "text\none more\n\nlast one\n"), "text")
    assert [row["text"] for _, row in found] == ["one more", "", "last one"]


def test_held_out_part_is_a_fraction_that_only_the_text_decides():
    held = [reading.is_held_out(f"text {i}", 0.2) for i in range(5000)]
    assert 0.17 < sum(held) / len(held) < 0.23
    assert all(reading.is_held_out(f"text {i}", 0.3) for i in range(5000) if held[i])
