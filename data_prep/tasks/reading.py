"""Tables and lines from disk, with errors that name file and line.

TSV files are read without quoting, as all GLUE files must be (MRPC holds bare `"`), unless they are
quoted throughout, as pandas writes them; CSV files with the usual quoting; JSON files hold one
object a line, or one array of objects. Packed files are unpacked on the way.
"""

import csv
import hashlib
import json
import re
from collections.abc import Iterable, Iterator

from data_prep.corpus.text_files import text_lines
from official_bert.errors import UserError
from official_bert.json_files import parse_json, whole_characters


def read_lines(path: str) -> Iterator[tuple[int, str]]:
    """(line number from 1, line without its end) of a UTF-8 file, as `text_files.text_lines`.

    Raises:
      UserError: the file does not exist, is empty, or a line is not UTF-8.
    """
    number = 0
    for number, line in enumerate(text_lines(path), 1):
        yield number, line
    if not number:
        raise UserError(f"{path} is empty")


def read_table(
    path: str,
    columns: tuple[str, ...] = (),
    header: bool = True,
    what_to_do: str = "",
    short_rows: str = "error",
) -> Iterator[tuple[int, dict] | None]:
    """(line number, {column name: value}) of a .tsv, .csv or .jsonl file, also gzipped.

    Args:
      columns: names that must be there; with `header=False`, the names of all columns in order.
      header: whether the first line names the columns. JSONL names them itself.
      what_to_do: appended to the message about a missing column.
      short_rows: of a row with too few columns, "error" or "none": None in its place.

    Raises:
      UserError: a column is missing, a line has another number of columns than the first, or there
        is no row at all.
    """
    plain = path.removesuffix(".gz")
    if plain.endswith((".jsonl", ".json")):
        rows = _json_rows(path)
    else:
        rows = _delimited_rows(path, columns, header, plain.endswith(".csv"), short_rows)
    count = 0
    for number, row in rows:
        if row is None:
            yield None
            continue
        missing = [name for name in columns if name not in row]
        if missing:
            raise UserError(
                f"{path} line {number}: no column {', '.join(missing)}; "
                f"the columns are {', '.join(map(str, row))}" + what_to_do
            )
        count += 1
        yield number, row
    if not count:
        raise UserError(f"{path} has no rows" + (" below its header" if header else ""))


def column_names(path: str) -> list[str]:
    """The names in the first line of a table (of a JSONL file: of the first object)."""
    for _, row in read_table(path):
        return list(row)
    return []


def json_object(line: str, where: str) -> dict:
    """The object of a line of a JSONL file; halves of surrogate pairs become U+FFFD.

    Raises:
      UserError: the line is not JSON, or no object; `where` names it.
    """
    return whole_characters(parse_json(line, where), line)


def check_texts(row: dict, columns: Iterable[str], where: str) -> None:
    """JSONL rows hold any type; a text must be one.

    Raises:
      UserError: one of the columns is no string; `where` names the row.
    """
    for column in columns:
        if not isinstance(row[column], str):
            value = json.dumps(row[column], ensure_ascii=False)
            raise UserError(f"{where}: {column} is {value[:80]}, expected a text in quotes")


def is_held_out(key: str, fraction: float) -> bool:
    """Whether a row belongs to the held-out part: a function of its text alone, so equal texts stay
    together and neither order nor number of rows moves one."""
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") < fraction * 2**64


def _delimited_rows(path: str, columns, header: bool, is_csv: bool, short_rows: str):
    names = None if header else list(columns)
    for number, values in _csv_values(path) if is_csv else _tsv_values(path):
        if names is None:
            names = values
            repeated = sorted({name for name in names if names.count(name) > 1})
            if repeated:
                raise UserError(f"{path} line 1: the column {', '.join(repeated)} is there twice")
            continue
        if values in ([], [""]) and len(names) > 1:
            continue  # a blank line, usually the last
        if len(values) < len(names) and short_rows == "none":
            yield number, None
            continue
        if len(values) != len(names):
            raise UserError(
                f"{path} line {number}: {len(values)} column{'s' * (len(values) != 1)}, "
                f"expected {len(names)} ({', '.join(names)})"
            )
        yield number, dict(zip(names, values, strict=True))


def _tsv_values(path: str):
    if _is_quoted(path):
        yield from _csv_values(path, "\t")
        return
    for number, line in read_lines(path):
        yield number, line.split("\t")


def _is_quoted(path: str) -> bool:
    """Whether a TSV file was written with quoting: every field with a quotation mark is a quoted
    one, and one at least could not stand as it is, for it holds a doubled mark, a tab or a line
    end; or the header's fields are all quoted."""
    quoted, row = False, ""
    for number, line in read_lines(path):
        row += line
        if '"' not in row or (row.count('"') % 2 and len(row) < 1 << 20):
            row = f"{row}\n" if '"' in row else ""
            continue  # no quotation mark, or one that may close in a line to come
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


def _csv_values(path: str, delimiter: str = ","):
    csv.field_size_limit(2**31 - 1)  # 131,072 characters by default; a document may have more
    # The csv module joins quoted fields over lines, so it needs the line ends back.
    lines = (line + "\n" for _, line in read_lines(path))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        for values in reader:
            yield reader.line_num, values
    except csv.Error as error:
        raise UserError(f"{path} line {reader.line_num}: not valid CSV ({error})") from None


def _json_rows(path: str):
    first = next((line.lstrip() for _, line in read_lines(path) if line.strip()), "")
    if first.startswith("["):
        yield from _json_array(path)
        return
    for number, line in read_lines(path):
        if line.strip():
            yield number, json_object(line, f"{path} line {number}")


def _json_array(path: str):
    """The objects of one array; their numbers, counted from 1, stand for lines."""
    text = "\n".join(line for _, line in read_lines(path))
    for number, row in enumerate(parse_json(text, path, list), 1):
        yield number, json_object(json.dumps(row), f"{path} object {number}")
