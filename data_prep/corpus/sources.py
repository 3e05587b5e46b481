"""The documents of a source: its layout, and the paragraphs that the layout gives.

A source is a file, or a part of a corpus of TensorFlow Datasets. The layouts are:

    chapters       a book: blank lines between paragraphs, a heading where a document begins
    articles       a blank line between articles, a line a paragraph, the first the title
    files          a file is a document, blank lines between its paragraphs
    lines          a line is a document
    wikiextractor  the output of WikiExtractor: <doc ...> blocks, or its --json
    rows           JSON Lines or Parquet: a row is a document, its text in one field

The last two, and books with numbered chapters, are recognised by their text; a user names the
others.
"""

import dataclasses
import html
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from data_prep.corpus import parquet_files, text_layout, tfds_corpora
from data_prep.corpus.input_look import look, other_format
from data_prep.corpus.text_files import text_lines
from official_bert.common.errors import UserError, check_choice, first_of
from official_bert.common.json_files import shorten, whole_characters

LAYOUTS = ("chapters", "articles", "files", "lines", "wikiextractor", "rows")

# Languages without blanks between words, whose wrapped lines are joined without one.
_NO_BLANKS = ("zh", "ja", "th", "lo", "km", "my", "bo", "yue", "wuu")
_DOC = re.compile(r'<doc id=.*?(?:title="(.*)")?>$')
_USUAL_FIELD = "text"


@dataclasses.dataclass(frozen=True)
class Reading:
    """The way in which the text of a source is read.

    Attributes:
      layout: of LAYOUTS.
      language: decides where sentences end, and whether wrapped lines are joined with a blank.
      title_lines: title lines of an article, left out.
      section_titles: keep the section titles of articles, short lines without a mark.
      title_stops: short lines with one full stop are section titles of articles too.
      text_field: of rows: the field of the text; by default "text".
      document_column: of rows: the field that names a row's document, where rows are sentences or
        paragraphs; neighbouring rows of one document are joined. By default a row is a document.
      invalid_utf8: what to do with bytes that are not UTF-8.
    """

    layout: str = ""
    language: str = "en"
    title_lines: int = 1
    section_titles: bool = False
    title_stops: bool = False
    text_field: str = ""
    document_column: str = ""
    invalid_utf8: str = "error"


def documents(source: str, reading: Reading, counts: Counter) -> Iterator[list[str]]:
    """Yield the documents of a source, each as its paragraphs.

    Args:
      counts: gets "characters_read" of text, without blanks at the ends of lines, "invalid_utf8"
        and "empty" (rows without text); for layouts with titles "lines" and "stopped" of
        `text_layout.Titles`; and "lost: REASON", the characters that were left out.
    """
    lost, titles = Counter(), text_layout.Titles(reading.section_titles, reading.title_stops)
    try:
        yield from _documents(source, reading, titles, counts, lost)
    finally:
        counts.update({f"lost: {reason}": number for reason, number in lost.items() if number})
        if titles.lines:
            counts.update(lines=titles.lines, stopped=titles.stopped)


def _documents(source, reading, titles, counts, lost):
    layout, fields = reading.layout, [reading.text_field or _USUAL_FIELD]
    fields += [reading.document_column] if reading.document_column else []
    if tfds_corpora.is_tfds(source):
        yield from tfds_corpora.documents(source, titles, counts, lost)
        return
    if layout == "rows" and parquet_files.is_parquet(source):
        yield from _paragraphs_of(_texts(_parquet_rows(source, fields), fields, source), counts)
        return
    lines = text_lines(source, reading.invalid_utf8, counts)
    if layout == "rows":
        yield from _paragraphs_of(_texts(_json_rows(lines, source), fields, source), counts)
        return
    if layout == "wikiextractor":
        yield from _wikiextractor(lines, titles, source, counts, lost)
        return
    lines = _counted(lines, counts)
    join = "" if reading.language.split("-")[0] in _NO_BLANKS else " "
    if layout == "chapters":
        yield from text_layout.chapters(lines, join, lost)
    elif layout == "articles":
        yield from text_layout.articles(lines, reading.title_lines, titles, lost)
    elif layout == "files":
        yield from text_layout.whole_file(lines, join)
    else:
        yield from text_layout.each_line(lines)


def find_layout(sources: list[str], wanted: str = "", text_field: str = "") -> str:
    """Return the layout of sources: the wanted one if it fits, or the one that their text shows.

    Raises:
      UserError: the wanted layout is unknown or does not fit, or none is wanted and the text does
        not show where documents begin.
    """
    if wanted:
        check_choice("--documents", wanted, LAYOUTS)
    files = [source for source in sources if not tfds_corpora.is_tfds(source)]
    shown = {_shown(path, text_field): path for path in files[:: max(1, len(files) // 20)]}
    if not shown:
        return wanted or "rows"  # which TensorFlow Datasets are
    if len(shown) > 1 and not wanted:
        listed = ", ".join(f"{path} as {name or 'unclear'}" for name, path in shown.items())
        raise UserError(f"the files are laid out differently ({listed}); pass --documents")
    ((name, path),) = list(shown.items())[:1]
    for machine in ("wikiextractor", "rows"):
        if machine in shown and wanted not in ("", machine):
            if machine == "wikiextractor" and wanted == "articles":
                return machine  # the articles that it is
            raise UserError(
                f"{shown[machine]} is {_KIND_OF[machine]}; pass --documents={machine}, not {wanted}"
            )
    if not wanted and not name:
        raise UserError(
            f"where do documents begin? {path} does not show it ({look([path])}). Pass "
            f"--documents=chapters (at a book's headings), articles (at blank lines), files or "
            f"lines"
        )
    return wanted or name


_KIND_OF = {"wikiextractor": "WikiExtractor's output", "rows": "a file of JSON Lines or Parquet"}


def _shown(path: str, text_field: str) -> str:
    """Return the layout that a file's beginning shows; "" where it shows none."""
    if parquet_files.is_parquet(path):
        return "rows"
    found = look([path])
    first = next(filter(None, found.lines), "")
    if _DOC.match(first):
        return "wikiextractor"
    row = _row(first)
    if row is not None:
        extracted = not text_field and {"id", "url", "title", "text"} <= set(row)
        return "wikiextractor" if extracted else "rows"
    if reason := other_format(found):
        raise UserError(f"{path} is not plain text: {reason}")
    return "chapters" if text_layout.numbered_headings(found.lines) >= 3 else ""


def _row(line: str) -> dict | None:
    try:
        row = whole_characters(json.loads(line), line) if line.startswith("{") else None
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _counted(lines: Iterable[str], counts: Counter) -> Iterator[str]:
    for line in lines:
        counts["characters_read"] += len(line.strip())
        yield line


def _wikiextractor(lines, titles, source, counts, lost) -> Iterator[list[str]]:
    """Yield the documents of WikiExtractor's output.

    It holds <doc id="12" url="..." title="T">, T, paragraphs, </doc>; or a JSON object a line.
    """

    def kept(paragraph, title):
        counts["characters_read"] += len(paragraph)
        if not paragraph:
            return False
        if paragraph == title:
            lost["titles"] += len(paragraph)
            return False
        return titles.keeps(paragraph, lost)

    title, document = None, []
    for number, line in enumerate(lines, 1):
        start = _DOC.match(line)
        if start or line.strip() == "</doc>":
            if document:
                yield document
            title, document = html.unescape(start.group(1) or "") if start else None, []
        elif line.startswith("{"):
            row = _row(line)
            if row is None or not isinstance(row.get("text"), str):
                raise UserError(f"{source} line {number}: no JSON of WikiExtractor")
            text = map(_plain, html.unescape(row["text"]).split("\n"))
            document = [part for part in text if kept(part, row.get("title"))]
            if document:
                yield document
            document = []
        elif line.strip():
            if title is None:
                raise UserError(f"{source} line {number}: text outside of <doc ...> and </doc>")
            paragraph = _plain(html.unescape(line))
            if kept(paragraph, None if document else title):
                document.append(paragraph)
    if document:
        yield document


def _json_rows(lines: Iterable[str], source: str) -> Iterator[tuple[int, dict]]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            row = _row(line.strip())
            if row is None:
                raise UserError(f"{source} line {number}: not a JSON object")
            yield number, row


def _parquet_rows(path: str, fields: list[str]) -> Iterator[tuple[int, dict]]:
    names = parquet_files.column_names(path)
    for field, option in zip(fields, ("text_field", "document_column"), strict=False):
        if field not in names:
            raise UserError(
                f"{path} has no field {field!r}; it has {first_of(names, 30)} (--{option})"
            )
    return enumerate(parquet_files.rows(path, fields), 1)


def _texts(rows, fields: list[str], source: str) -> Iterator[tuple[object, str]]:
    """Yield (name of its document, text) of each row."""
    for number, row in rows:
        if missing := [name for name in fields[1:] if row.get(name) is None]:
            raise UserError(
                f"{source} line {number}: no field {missing[0]!r}; the fields are "
                f"{first_of(row, 30)} (--document_column)"
            )
        if not isinstance(row.get(fields[0], 0), str | None):
            raise UserError(
                f"{source} line {number}: no text in the field {fields[0]!r}"
                + (f", but {shorten(row[fields[0]])}" if fields[0] in row else "")
                + f"; the fields are {first_of(row, 30)} (--text_field)"
            )
        yield row[fields[1]] if fields[1:] else number, row[fields[0]] or ""


def _paragraphs_of(rows, counts) -> Iterator[list[str]]:
    """Yield the texts of each document whole; their lines are paragraphs, and none is a title."""
    for _, group in itertools.groupby(rows, lambda row: row[0]):
        document = []
        for _, text in group:
            parts = [part for part in map(_plain, text.split("\n")) if part]
            counts["empty"] += not parts
            document += parts
        counts["characters_read"] += sum(map(len, document))
        if document:
            yield document


def _plain(line: str) -> str:
    return " ".join(line.split())
