"""Rows of tables from files, with errors that name file and line; `formats` detects formats.

TSV files are read without quoting, as all GLUE files must be (MRPC holds bare `"`), unless they are
quoted throughout, as pandas writes them. CSV files have the usual quoting. JSON is an object a
line, an array of objects, {"data": array}, or columns, {name: values}, as Hugging Face's `datasets`
and pandas write it. Packed files are unpacked.
"""

import csv
import hashlib
import itertools
import json
import re
import sys
from collections.abc import Iterable, Iterator

from data_prep.corpus.packed_files import plain_stream
from data_prep.corpus.text_files import decode_lines, text_lines
from official_bert.common.errors import UserError, first_of
from official_bert.common.json_files import parse_json, shorten, whole_characters

_FIRST = 200  # lines that are looked at


class Lines:
    """The lines of a UTF-8 file, or of standard input ("-"): (number from 1, line without its end).

    Attributes:
      name: the file's name in errors.
      begun: the first lines with their numbers, which may be looked at before all are read.
      first: the first lines alone.

    Raises:
      UserError: the file does not exist, is empty, or a line is not UTF-8.
    """

    def __init__(self, path: str):
        self._path, self.name = path, "standard input" if path == "-" else path
        # A stream is read once, so the lines that were looked at are kept and come first.
        self._stream = (
            decode_lines(plain_stream(sys.stdin.buffer), self.name) if path == "-" else None
        )
        self.begun = list(itertools.islice(self._stream or read_lines(path), _FIRST))
        self.first = [line for _, line in self.begun]
        if not self.first:
            raise UserError(f"{self.name} is empty")

    def __iter__(self) -> Iterator[tuple[int, str]]:
        if self._stream is None:
            return read_lines(self._path)
        return itertools.chain(self.begun, self._stream)

    @property
    def is_stream(self) -> bool:
        return self._stream is not None


def read_lines(path: str) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, line without its end) of a UTF-8 file, by `text_files.text_lines`.

    Raises:
      UserError: the file does not exist, is empty, or a line is not UTF-8.
    """
    number = 0
    for number, line in enumerate(text_lines(path), 1):
        yield number, line
    if not number:
        raise UserError(f"{path} is empty")


def check_texts(row: dict, columns: Iterable[str], where: str) -> None:
    """Check that columns of a row are texts: JSON may hold other types.

    Raises:
      UserError: one of the columns is not a string; `where` names the row.
    """
    for column in columns:
        if not isinstance(row[column], str):
            raise UserError(f"{where}: {column} is {shorten(row[column])}, expected a text")


def is_held_out(key: str, fraction: float) -> bool:
    """Return whether a row is held out: a function of its text alone.

    So equal texts stay together, and neither order nor number of rows moves one.
    """
    return int.from_bytes(text_hash(key)[:8], "big") < fraction * 2**64


def text_hash(text: str) -> bytes:
    """Return the hash of a text that decides in place of chance."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def split_values(lines: Iterable[tuple[int, str]], name: str, delimiter: str, quoted: bool):
    """Yield (line number, values) of each row of delimited text.

    Raises:
      UserError: the quoting is broken.
    """
    if not quoted:
        for number, line in lines:
            yield number, line.split(delimiter)
        return
    csv.field_size_limit(2**31 - 1)  # its default is 131,072 characters; a document may have more
    # The csv module joins quoted fields over lines, so it needs line ends.
    reader = csv.reader((line + "\n" for _, line in lines), delimiter=delimiter, strict=True)
    try:
        for values in reader:
            yield reader.line_num, values
    except csv.Error as error:
        raise UserError(f"{name} line {reader.line_num}: not valid CSV ({error})") from None


def named_rows(rows, names: list[str], name: str, short_rows: str = "error"):
    """Yield (line number, {column: value}) of rows of values.

    Args:
      short_rows: a row with too few columns is an "error", or is None ("none").

    Raises:
      UserError: a row has a wrong number of columns.
    """
    for number, values in rows:
        values = values or [""]  # of a blank line, usually the last
        if values == [""] and len(names) > 1:
            continue
        if len(values) < len(names) and short_rows == "none":
            yield number, None
            continue
        if len(values) != len(names):
            raise UserError(
                f"{name} line {number}: {len(values)} column{'s' * (len(values) != 1)}, "
                f"expected {len(names)} ({first_of(names, 30)})"
            )
        yield number, dict(zip(names, values, strict=True))


def is_quoted(lines: Iterable[tuple[int, str]]) -> bool:
    """Return whether tab-separated lines were written with quoting.

    They were if every field with a quotation mark is a quoted field, and one of them needs its
    quotes, since it holds a doubled mark, a tab or a line end; or if all fields of the header are
    quoted.
    """
    quoted, row = False, ""
    for number, line in lines:
        row += line
        if '"' not in row or (row.count('"') % 2 and len(row) < 1 << 20):
            row = f"{row}\n" if '"' in row else ""
            continue  # no quotation mark, or one that a later line may close
        if not _QUOTED_ROW.fullmatch(row):
            return False
        quoted |= (number == 1 and _ALL_QUOTED.fullmatch(row) is not None) or any(
            mark in field[1:-1] for field in _QUOTED.findall(row) for mark in ('""', "\t", "\n")
        )
        row = ""
    return quoted and not row


_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_FIELD = rf'(?:{_QUOTED.pattern}|[^"\t\n]*)'
_QUOTED_ROW = re.compile(rf"{_FIELD}(?:\t{_FIELD})*")
_ALL_QUOTED = re.compile(rf"{_QUOTED.pattern}(?:\t{_QUOTED.pattern})*")


def json_lines(lines: Lines, beginning: bool = False) -> Iterator[tuple[int, dict | None]]:
    """Yield (line number, object) of each line, None for a blank one.

    Halves of surrogate pairs become U+FFFD.

    Args:
      beginning: read the first lines only.

    Raises:
      UserError: a line is not a JSON object.
    """
    for number, line in lines.begun if beginning else lines:
        where, row = f"{lines.name} line {number}", None
        if line.strip():
            row = _object(parse_json(line, where, None), where)
        yield number, whole_characters(row, line)


def json_document(lines: Lines) -> Iterator[tuple[int, dict]]:
    """Yield (number from 1, object) of each row of one JSON value, in any of its forms.

    Raises:
      UserError: it is not JSON, or not rows.
    """
    text = "\n".join(line for _, line in lines)
    value = whole_characters(parse_json(text, lines.name, None), text)
    rows = _rows_of(value, lines.name)
    if rows and all(isinstance(row, dict) and {"context", "qas"} <= row.keys() for row in rows):
        rows = [{"paragraphs": rows}]  # of SQuAD's JSON the paragraphs alone
    for number, row in enumerate(rows, 1):
        yield number, _object(row, f"{lines.name} object {number}")


def _object(row, where: str) -> dict:
    match row:
        case [str() as text, dict() as entities]:  # as spaCy's training data
            return {"text": text, **entities}
        case dict():
            return row
    raise UserError(f"{where}: expected a JSON object, not {shorten(row)}")


def _rows_of(value, name: str) -> list:
    if isinstance(value, list):
        return value
    if not isinstance(value, dict):
        raise UserError(f"{name}: expected a JSON object or a list of them, not {shorten(value)}")
    data = value.get("data")
    if isinstance(data, list):
        names = value.get("columns")  # of pandas' orient="split"
        if isinstance(names, list) and all(isinstance(row, list) for row in data):
            rows = named_rows(enumerate(data, 1), list(map(str, names)), f"{name}: data")
            return [row for _, row in rows]
        return data
    if "classes" in value and isinstance(value.get("annotations"), list):  # of spaCy's annotators
        return [row for row in value["annotations"] if row is not None]
    kinds = {type(each) for each in value.values()}
    words = value.get("tokens", value.get("words", [[]]))
    if isinstance(words, list) and all(isinstance(word, str) for word in words):
        return [value]  # a sentence, not a column of them
    if kinds == {list} and "paragraphs" not in value:
        if all(isinstance(row, dict) for rows in value.values() for row in rows):
            if len(value) == 1:
                return next(iter(value.values()))
            raise UserError(
                f"{name}: it holds {', '.join(value)}, each a list of objects; write each of them "
                "into a file of its own"
            )
        return _rows_of_columns(value, name)
    if kinds == {dict}:  # of pandas: {column: {row: value}}, or {row: {column: value}}
        if all(key.isdigit() for key in value):
            return list(value.values())
        keys = [list(column) for column in value.values()]
        if all(other == keys[0] for other in keys) and all(key.isdigit() for key in keys[0]):
            return _rows_of_columns({k: list(v.values()) for k, v in value.items()}, name)
    return [value]


def _rows_of_columns(columns: dict[str, list], name: str) -> list[dict]:
    lengths = {column: len(values) for column, values in columns.items()}
    if len(set(lengths.values())) > 1:
        described = ", ".join(f"{column} {length}" for column, length in lengths.items())
        raise UserError(f"{name}: its columns have different numbers of rows ({described})")
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def cell(value) -> str:
    """Return a value of a row as a field of a table, in its original form."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, (list, dict, bool)):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)
