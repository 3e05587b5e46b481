"""A file of examples after its format and columns were detected, and its rows."""

import dataclasses
import itertools
from collections.abc import Iterator

from data_prep.corpus import parquet_files
from data_prep.tasks.files import reading
from official_bert.common.errors import UserError, first_of

FORMATS = ("lines", "tsv", "csv", "jsonl", "json", "parquet", "conll")
NAMES = {
    "lines": "plain lines",
    "tsv": "tab-separated",
    "csv": "CSV",
    "jsonl": "JSON Lines",
    "json": "JSON",
    "parquet": "Parquet",
}
_MOST_NAMED, MOST_LISTED = 8, 30  # columns


@dataclasses.dataclass(frozen=True)
class Table:
    """A file's format, columns and lines, as they were detected.

    Attributes:
      path: the file, "-" for standard input.
      format: of FORMATS.
      columns: the names of all columns; of JSON, those of the first rows.
      found: the wanted columns, in the wanted order.
      lines: the lines of a text file.
      header: whether the first line names the columns.
      delimiter: the text between columns.
      also: further columns that had to be there.
      optional: columns that are read if they exist; None: not known here.
      kept: the rows of JSON that is one value.
      class_names: {column: names of its numbers}, if the file has them.
    """

    path: str
    format: str
    columns: tuple[str, ...]
    found: tuple[str, ...]
    lines: reading.Lines | None = None
    header: bool = False
    delimiter: str = ""
    also: tuple[str, ...] = ()
    optional: tuple[str, ...] | None = None
    kept: list | None = None
    class_names: dict[str, list[str]] = dataclasses.field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.lines.name if self.lines else self.path

    def __str__(self) -> str:
        kind = "SQuAD's JSON" if self.found == ("paragraphs",) else NAMES[self.format]
        if self.delimiter not in ("", "\t", ","):
            kind += f" with {self.delimiter!r}"
        if self.delimiter:
            kind += ", a header" if self.header else ", no header"
        if self.format == "lines":
            return f"{self.name}: {kind}, each a text"
        there = [name for name in self.optional or () if name in self.columns]
        read = [*self.found, *self.also, *there]
        summary = f"{self.name}: {kind}; read: {', '.join(read)}"
        others = [str(name) for name in self.columns if name not in (*read, "id", "")]
        if self.optional is None or not others:
            return summary
        return f"{summary}; ignored: {first_of(others, _MOST_NAMED)}"

    def where(self, number: int) -> str:
        """Return a row's name for errors."""
        return f"{self.name} {'object' if self.format == 'json' else 'line'} {number}"

    def rows(
        self, short_rows: str = "error", blank_lines: bool = False
    ) -> Iterator[tuple[int, dict | None]]:
        """Yield (line number, {column: value}) of each row.

        Args:
          short_rows: a row with too few columns is an "error", or is None ("none").
          blank_lines: whether a blank line of JSON Lines gives None; else it is left out.

        Raises:
          UserError: a row lacks a wanted column or has a wrong number of columns, or no row is
            there.
        """
        count = 0
        for number, row in self._rows(short_rows):
            if row is None and self.format == "jsonl" and not blank_lines:
                continue
            if row is not None:
                if missing := [name for name in self.found if name not in row]:
                    raise UserError(
                        f"{self.where(number)}: no column {', '.join(missing)}; "
                        f"the columns are {first_of(row, MOST_LISTED)}"
                    )
                count += 1
            yield number, row
        if not count:
            raise UserError(f"{self.name} has no rows" + " below its header" * self.header)

    def _checked(self, rows, header: list):
        for number, values in rows:
            if values in header and len(values) > 1:
                raise UserError(
                    f"{self.where(number)}: the header once more, as where files were joined; "
                    "leave the line out"
                )
            yield number, values

    def _rows(self, short_rows: str):
        if self.format == "parquet":
            yield from enumerate(parquet_files.rows(self.path), 1)
        elif self.format == "jsonl":
            yield from reading.json_lines(self.lines)
        elif self.format == "json":
            yield from self.kept
        elif self.format == "lines":
            for number, line in self.lines:
                yield number, {self.found[0]: line}
        else:
            numbered = enumerate(self.lines.first, 1) if self.lines.is_stream else self.lines
            quoted = self.delimiter != "\t" or reading.is_quoted(numbered)
            values = reading.split_values(self.lines, self.name, self.delimiter, quoted)
            rows = itertools.dropwhile(lambda row: row[1] in ([], [""]), values)
            header = [values for _, values in itertools.islice(rows, int(self.header))]
            rows = self._checked(rows, header)
            yield from reading.named_rows(rows, self.columns, self.name, short_rows)
