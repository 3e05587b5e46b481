"""The detection of a file's format and columns, before the file is read.

Every file for finetune, evaluate, predict and the tasks goes through `detect_format`. From the
file's beginning, not from its name alone, it decides the format, whether the first line is a
header, and which columns are wanted. One line says what it decided. Where it cannot decide, the
error names the option that does.
"""

import dataclasses
import itertools
import json
import re
import sys
from collections.abc import Sequence

from data_prep.corpus import parquet_files
from data_prep.corpus.packed_files import unpacked_name
from data_prep.tasks.files import reading
from data_prep.tasks.files.table import MOST_LISTED, NAMES, Table
from official_bert.common.errors import UserError, check_once, first_of
from official_bert.common.json_files import shorten

TOKENS = ("conll", "conllu", "conllup", "iob", "iob2", "bio", "bioes", "bmes")  # endings
_DELIMITERS = {"tsv": "\t,;|", "csv": ",;\t|"}
_MOST_ABOVE = 20  # lines in which a header is looked for
# Beginnings of files that are not tables -> what they are.
_NO_TABLE = {
    **dict.fromkeys(
        ("<!doctype html", "<html", "<table"),
        "a web page, as where a link leads to a page about a file; get the file",
    ),
    "<?xml": "XML; write a table of it, with named columns",
    "__label__": "fastText's (labels and a text a line); write a table of it, whose first line is "
    "label and text, with a tab between",
}
_LABEL_STUDIO = "; it is Label Studio's JSON: export JSON-MIN or CSV, whose columns have names"
_announced: set[str] = set()


def detect_format(
    path: str,
    wanted: Sequence[tuple[str, ...]],
    *,
    also: tuple[str, ...] = (),
    optional: tuple[str, ...] | None = None,
    names: tuple[str, ...] = (),
    texts: bool = False,
    format: str = "",
    question: str = "which column is the text?",
    hint: str = "",
    lines: reading.Lines | None = None,
) -> Table:
    """Detect by a file's beginning what it is, and which of its columns are wanted.

    Args:
      path: a file; "-" is standard input.
      wanted: alternatives of columns; the first tuple whose names all exist counts.
      also: further columns that must exist.
      optional: all other columns that are read if they exist, beside "id"; None: any may be read.
      names: names of the columns if the first line is not a header.
      texts: whether the file may hold the wanted texts alone, without a header: a text a line, or
        several with tabs between.
      format: of FORMATS but "conll", if the user says it.
      question: for the message if no alternative exists.
      hint: advice for files whose columns have other names, for the messages.
      lines: the file's, if they are open already.

    Raises:
      UserError: there is no such file, it cannot be read, or the wanted columns do not exist or
        cannot be told.
    """
    read = {"also": also, "optional": optional}
    search = _ColumnSearch(wanted, also, question, hint)
    if path != "-" and parquet_files.is_parquet(path):
        _check_format("parquet", format, path)
        columns = tuple(parquet_files.column_names(path))
        found = search.found_in(columns, path)
        names_of = parquet_files.class_names(path)
        return announce(Table(path, "parquet", columns, found, **read, class_names=names_of))
    lines = lines or reading.Lines(path)
    shown = json_format(lines, path) if format in ("", "json", "jsonl") else ""
    if format in ("json", "jsonl") and not shown:
        raise UserError(f"{lines.name}: --format={format}, but its first line is not JSON")
    if shown:
        _check_format(shown, format, lines.name)
        kept = list(reading.json_document(lines)) if shown == "json" else None
        columns = _columns_of(lines, kept)
        if not columns:
            raise UserError(f"{lines.name} has no rows")
        found = search.found_in(columns, f"{lines.name} line 1")
        return announce(Table(path, shown, columns, found, lines, **read, kept=kept))
    _check_format("text", format, lines.name)
    found = _delimited(path, lines, search, names=names, texts=texts, format=format)
    return announce(dataclasses.replace(found, **read))


def announce(table: Table | str):
    """Print a table's description, or a line about one, once a process; return the argument."""
    if str(table) not in _announced:
        _announced.add(str(table))
        print(table, file=sys.stderr)
    return table


def ending(path: str) -> str:
    """Return the ending of a file name, such as "tsv", without that of packed files."""
    path = unpacked_name(path)
    return path.rpartition(".")[2].lower() if "." in path else ""


def json_format(lines: reading.Lines, path: str) -> str:
    """Return "jsonl" (an object a line), "json" (one value) or "", by first lines and name."""
    given = [line.strip() for line in lines.first if line.strip()]
    first, named = given[0] if given else "", ending(path)
    if named in ("jsonl", "ndjson"):
        whole = first.startswith("[") and (len(given) == 1 or not first.endswith("]"))
        return "json" if whole else "jsonl"
    if named != "json" and not re.match(r'\[\s*(\{|\]|$)|\{\s*("|\}|$)', first):
        return ""
    if len(given) == 1 and not lines.is_stream:
        return "json"
    try:
        value = json.loads(first)
    except RecursionError:
        return "jsonl"
    except ValueError:
        # The first line of a longer value, or a damaged row.
        return "jsonl" if named != "json" and first.endswith("}") else "json"
    if not isinstance(value, dict):
        return "json"
    return "json" if len(given) == 1 and "data" in value else "jsonl"


def _check_format(found: str, given: str, name: str) -> None:
    text = ("", "lines", "tsv", "csv")
    if given not in (text if found == "text" else ("", found)):
        raise UserError(f"{name}: --format={given}, but it is {NAMES.get(found, 'text')}")


def _columns_of(lines: reading.Lines, kept) -> tuple[str, ...]:
    """Return the fields of a JSON file's rows: `kept`, or those of its first lines."""
    rows = reading.json_lines(lines, beginning=True) if kept is None else kept
    return tuple(dict.fromkeys(name for _, row in rows for name in row or ()))


@dataclasses.dataclass(frozen=True)
class _ColumnSearch:
    """The search for the wanted columns; the fields are arguments of `detect_format`."""

    wanted: Sequence[tuple[str, ...]]
    also: tuple[str, ...]
    question: str
    hint: str

    def found_in(self, columns, where: str) -> tuple[str, ...]:
        """Return the first alternative whose columns all exist, those of `also` too."""
        found, hint = _first_there(columns, self.wanted), self.hint
        if "data" in columns and {"annotations", "predictions", "completions"} & set(columns):
            hint = _LABEL_STUDIO
        there = first_of(columns, MOST_LISTED)
        if found is None and len(self.wanted) > 1:
            raise UserError(f"{where}: {self.question} The columns are {there}{hint}")
        if missing := [n for n in (*(found or self.wanted[0]), *self.also) if n not in columns]:
            raise UserError(
                f"{where}: no column {', '.join(missing)}; the columns are {there}{hint}"
            )
        return found


def _first_there(columns, wanted) -> tuple[str, ...] | None:
    return next((each for each in wanted if set(each) <= set(columns)), None)


def _delimited(path, lines, search: _ColumnSearch, *, names, texts, format) -> Table:
    """Detect the delimiter and header of text lines; arguments are those of `detect_format`."""
    wanted, line_1 = search.wanted, f"{lines.name} line 1"
    lines_too = "; --format=lines takes every line for a text" * texts
    first = next(filter(str.strip, lines.first), "")
    _check_is_table(lines, first, names, {} if format == "lines" else _NO_TABLE, lines_too)
    kind = format or ending(path)

    def table(delimiter, columns, header, found=None):
        check_once(filter(None, columns), f"{line_1}: the header")
        found = found or search.found_in(columns, line_1)
        named = "tsv" if delimiter == "\t" else "csv"
        return Table(path, named, tuple(columns), found, lines, header, delimiter)

    if kind != "lines":
        for delimiter in _DELIMITERS.get(kind, "\t,;|"):
            header = _first_values(lines, delimiter)
            if header and (
                _first_there(header, wanted) or set(names) and set(header) == set(names)
            ):
                return table(delimiter, header, True)
        if not names and (not texts or kind in _DELIMITERS):
            _check_above(lines, _DELIMITERS.get(kind, "\t,;|"), wanted)
        # In a file of texts alone a comma is text.
        likely = {"csv": ",;"}.get(kind, "\t") if texts else _DELIMITERS.get(kind, "\t,;|")
        for delimiter in likely if names else "":
            if len(_first_values(lines, delimiter)) == len(names):
                return table(delimiter, names, False)
    # No line names the wanted columns: the delimiter is the one that gives the most columns.
    cut = {delimiter: _first_values(lines, delimiter) for delimiter in _DELIMITERS.get(kind, "\t")}
    delimiter, values = max(cut.items(), key=lambda item: len(item[1]))
    if texts:
        (*_, fields) = wanted
        if len(fields) > 1 and len(first.split("\t")) == len(fields):
            cells = _first_values(lines, "\t")
            if set(cells) & set(itertools.chain(*wanted)):  # a header with a wrong name
                dataclasses.replace(search, wanted=(fields,), also=()).found_in(cells, line_1)
            return table("\t", fields, False, fields)
        if len(fields) == 1 and (kind == "lines" or not _looks_like_a_table(lines, kind)):
            return Table(path, "lines", fields, fields, lines)
        if len(fields) == 1:
            search = dataclasses.replace(search, hint=search.hint + lines_too)
    if names and not texts:
        raise UserError(
            f"{line_1}: {len(values)} columns, expected {len(names)} "
            f"({', '.join(names)}){search.hint}"
        )
    if texts or len(wanted) == 1:
        dataclasses.replace(search, wanted=wanted[:1]).found_in(values, line_1)
    return table(delimiter, values, True)


def _check_is_table(lines: reading.Lines, first: str, names, others, advice: str) -> None:
    """Raise UserError where the first line shows that a text file is not a table.

    Args:
      names: of columns; where they are known, Excel's "sep=;" has no header below it.
      others: beginning of a file -> what it is.
      advice: ends the message about one of `others`.
    """
    for start, what in others.items():
        if first.lstrip().lower().startswith(start):
            raise UserError(f"{lines.name} is {what}{advice}")
    if "\r" in first and len(lines.first) == 1:
        raise UserError(
            f"{lines.name}: lines end with carriage returns alone; convert it: tr '\\r' '\\n'"
        )
    if names and first.lstrip('"').lower().startswith("sep="):
        raise UserError(f"{lines.name} line 1 is Excel's {shorten(first, 40)}; delete it")


def _check_above(lines: reading.Lines, delimiters: str, wanted) -> None:
    """Raise UserError where a title, or Excel's "sep=;", is above the header."""
    above = next(filter(str.strip, lines.first), "")
    for place in range(1, min(_MOST_ABOVE, len(lines.first))):
        values = (_first_values(lines, one, place) for one in delimiters)
        if lines.first[place].strip() and any(_first_there(each, wanted) for each in values):
            kind = "Excel's" if above.lstrip('"').lower().startswith("sep=") else "no header:"
            raise UserError(
                f"{lines.name}: line {place + 1} names the columns, and above it stands {kind} "
                f"{shorten(above, 40)}; delete what is above line {place + 1}"
            )


def _first_values(lines: reading.Lines, delimiter: str, begin: int = 0) -> list[str]:
    """Return the values of the first row from a line on; [] where they cannot be read."""
    begin = next((i for i, line in enumerate(lines.first) if i >= begin and line.strip()), 0)
    quoted = delimiter != "\t" or lines.first[begin].startswith('"')
    numbered = list(enumerate(lines.first[begin:], begin + 1))
    try:
        values = next(reading.split_values(numbered, lines.name, delimiter, quoted))[1]
    except (UserError, StopIteration):
        return []
    # Spreadsheets write empty columns; a single one is a table's index.
    several = values.count("") > 1
    return [
        value or (f"column {place}" if several else "") for place, value in enumerate(values, 1)
    ]


def _looks_like_a_table(lines: reading.Lines, kind: str) -> bool:
    """Return whether lines without a known header may still be rows."""
    if kind in TOKENS or kind == "csv":
        return True
    given = [line.strip() for line in lines.first if line.strip()]
    tabs = {line.count("\t") for line in given}
    if kind == "tsv" and tabs == {0}:  # a single word above texts names a column
        return bool(re.fullmatch(r"\w+", given[0])) and {" " in one for one in given[1:]} == {True}
    return kind == "tsv" or (len(tabs) == 1 and tabs != {0})
