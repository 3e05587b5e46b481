"""Files of answers: every row of an input with all its columns, and the answer beside them.

The columns of an answer always have the same names; a column of the input with such a name is
written as "input_NAME".
"""

import contextlib
import csv
import gzip
import json
import re
import sys

from data_prep.tasks.files import formats
from data_prep.tasks.files.reading import cell
from data_prep.tasks.files.table import Table
from official_bert.common.errors import UserError
from official_bert.common.files import atomic_write

# The columns of a prediction in a table, by head and problem.
_ANSWERS = {
    ("classification", "single_label"): ("label", "probabilities"),
    ("classification", "multi_label"): ("labels", "probabilities"),
    ("classification", "regression"): ("value",),
    ("multiple_choice", "multiple_choice"): ("label", "probabilities"),
    ("span", "span"): ("text", "probability", "start", "end"),
    ("tagging", "tagging"): ("entities",),
}


@contextlib.contextmanager
def open_answers(path, source, head, labels, overwrite: bool = False):
    """Return a function of (rows, answers) that writes them in the format of `path`'s ending.

    Rows and answers are lists of dicts; the answer to a row without text is None.

    Args:
      path: .jsonl, .json, .csv, .parquet, else a TSV; .gz behind the ending compresses; "-" is
        standard output. Input with a token a line is answered in such lines, except in JSON and
        Parquet.
      source: the input's `table.Table` or `token_lines.TokenLines`.
      head: of the task.
      labels: of the model.
      overwrite: rename what stands at the path first.
    """
    kind = formats.ending(path)
    if kind in ("jsonl", "ndjson"):
        with _text(path, overwrite) as file:
            yield _JsonLines(file, source, head).write
    elif kind == "json":
        with _text(path, overwrite) as file:
            writer = _JsonArray(file, source, head)
            yield writer.write
            file.write("[]\n" if writer.between == "[\n" else "\n]\n")
    elif kind == "parquet":
        with (
            atomic_write(path, "wb", overwrite) as file,
            contextlib.closing(_Parquet(file, source, head)) as writer,
        ):
            yield writer.write
    elif not isinstance(source, Table):
        tags = []
        yield lambda rows, answers: tags.extend(
            tag for answer in answers for sentence in answer["tags"] for tag in sentence
        )
        with _text(path, overwrite) as file:
            file.writelines(line + "\n" for line in source.with_tags(tags))
    else:
        with _text(path, overwrite) as file:
            yield _Delimited(file, source, head, labels, kind == "csv").write


class _Rows:
    def __init__(self, file, source, head):
        self.file = file
        self.lines = getattr(source, "format", "") == "lines"
        self.answer_columns = head.get("answers") or _ANSWERS[head["head"], head["problem"]]

    def merged(self, rows, answers):
        """Yield each row with its answer's columns."""
        taken = {name for answer in answers if answer for name in answer}
        taken = taken.union(self.answer_columns) - {"id"}
        for row, answer in zip(rows, answers, strict=True):
            if answer is None and self.lines:
                yield {}
                continue
            kept = {f"input_{name}" if name in taken else name: row[name] for name in row}
            # The row's own columns first; its id is the answer's.
            yield {
                **kept,
                **(answer or {}),
                **{name: kept[name] for name in ("id",) if name in kept},
            }


class _JsonLines(_Rows):
    def write(self, rows, answers):
        for row in self.merged(rows, answers):
            self.file.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")


class _JsonArray(_Rows):
    between = "[\n"

    def write(self, rows, answers):
        for row in self.merged(rows, answers):
            line = json.dumps(row, ensure_ascii=False, default=str)
            self.file.write(self.between + line)
            self.between = ",\n"


class _Parquet(_Rows):
    _writer = None

    def write(self, rows, answers):
        import pyarrow
        import pyarrow.parquet

        merged = list(self.merged(rows, answers))
        try:
            if self._writer is None:
                names = dict.fromkeys(name for row in merged for name in row)
                whole = [dict.fromkeys(names) | row for row in merged]
                table = pyarrow.Table.from_pylist(whole)
                self._writer = pyarrow.parquet.ParquetWriter(self.file, table.schema)
            else:
                table = pyarrow.Table.from_pylist(merged, schema=self._writer.schema)
            self._writer.write_table(table)
        except (pyarrow.ArrowException, TypeError) as error:
            raise UserError(
                f"--output: the rows are not of one kind, as Parquet needs them ({error}); write "
                ".jsonl"
            ) from None

    def close(self):
        if self._writer is not None:
            self._writer.close()


class _Delimited(_Rows):
    """Writes a header, then a line a row; tabs and line ends inside a TSV's cells become blanks."""

    def __init__(self, file, source, head, labels, is_csv):
        super().__init__(file, source, head)
        self._labels, self._columns = labels, None
        self._csv = csv.writer(file, lineterminator="\n") if is_csv else None

    def write(self, rows, answers):
        if self._columns is None:
            self._columns = list(dict.fromkeys(name for row in rows for name in row))
            beside = self._beside()
            taken = [f"input_{name}" if name in beside else name for name in self._columns]
            self._put([*taken, *beside])
        for row, answer in zip(rows, answers, strict=True):
            if new := [name for name in row if name not in self._columns]:
                raise UserError(
                    f"--output: a row has the field {new[0]}, which the first rows have not; "
                    "write .jsonl"
                )
            if answer is None and (self.lines or not row):
                self._put([""])
                continue
            cells = [cell(row.get(name)) for name in self._columns]
            self._put(cells + self._cells(answer))

    def _beside(self):
        names = []
        for name in self.answer_columns:
            several = [f"probability_{label}" for label in self._labels]
            names += several if name == "probabilities" else [name]
        return names

    def _cells(self, answer):
        if answer is None:
            return [""] * len(self._beside())
        cells = []
        for name in self.answer_columns:
            cells += answer[name] if name == "probabilities" else [answer[name]]
        return [f"{each:.6g}" if isinstance(each, float) else cell(each) for each in cells]

    def _put(self, cells):
        if self._csv is not None:
            self._csv.writerow(cells)
        else:
            self.file.write("\t".join(re.sub(r"[\t\r\n]+", " ", each) for each in cells) + "\n")


@contextlib.contextmanager
def _text(path, overwrite):
    if path == "-":
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # whatever the locale says
        yield sys.stdout
    elif path.endswith(".gz"):
        with (
            atomic_write(path, "wb", overwrite) as file,
            gzip.open(file, "wt", encoding="utf-8", newline="\n") as text,
        ):
            yield text
    else:
        with atomic_write(path, overwrite=overwrite) as file:
            yield file
