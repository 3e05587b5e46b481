"""Rows of Parquet files, for corpora and tasks."""

import contextlib
from collections.abc import Iterator

from data_prep.jobs import storage
from official_bert.common.errors import UserError, check_installed, check_once
from official_bert.common.json_files import field, parse_json

_MAGIC = b"PAR1"
_BATCH = 256  # rows; a row may be a book


def is_parquet(path: str) -> bool:
    """Return whether a file is Parquet by its first bytes, whatever its name."""
    with storage.reading(path) as file:
        return file.peek(4)[:4] == _MAGIC


def rows(path: str, columns: list[str] | None = None) -> Iterator[dict]:
    """Yield {column: value} of each row in plain Python; `columns` limits them.

    Bytes that are UTF-8 become text, since Hive and Impala write text so; a text that is not UTF-8
    becomes bytes. Times that Python lacks become text.

    Raises:
      UserError: pyarrow is not installed, or the file is damaged.
    """
    with _opened(path) as table:
        for batch in table.iter_batches(batch_size=_BATCH, columns=columns):
            names = batch.schema.names
            values = (_as_python(*pair, path) for pair in zip(names, batch.columns, strict=True))
            for row in zip(*values, strict=True):
                yield dict(zip(names, row, strict=True))


def _as_python(name: str, column, path: str) -> list:
    """Return the values of a column of a batch."""
    import pyarrow

    try:
        values = column.to_pylist()
    except (ValueError, OverflowError) as error:  # the second one of times
        for kind in (pyarrow.binary(), pyarrow.string()):  # of text that is not UTF-8, of times
            with contextlib.suppress(pyarrow.ArrowException):
                return _as_text(column.cast(kind).to_pylist())
        raise UserError(
            f"{path}: the column {name} of {column.type} holds values that Python lacks ({error}): "
            "nanoseconds, other years, text that is not UTF-8; write it in another form"
        ) from None
    return _as_text(values) if "binary" in str(column.type) else values


def _as_text(value):
    """Return a value in which bytes that are UTF-8 became text."""
    if isinstance(value, list):
        return [_as_text(each) for each in value]
    if isinstance(value, dict):
        return {name: _as_text(each) for name, each in value.items()}
    with contextlib.suppress(UnicodeDecodeError):
        return value.decode("utf-8") if isinstance(value, bytes) else value
    return value


def column_names(path: str) -> list[str]:
    """Return the names of the columns.

    Raises: UserError: as `rows`.
    """
    with _opened(path) as table:
        return list(table.schema_arrow.names)


def class_names(path: str) -> dict[str, list[str]]:
    """Return {column: names of its numbers}, as Hugging Face's `datasets` wrote into the file.

    Raises:
      UserError: as `rows`, or what they wrote is damaged.
    """
    with _opened(path) as table:
        described = (table.schema_arrow.metadata or {}).get(b"huggingface")
    if described is None:
        return {}
    where = f"{path}: huggingface"
    info = field(parse_json(described, where), "info", dict, where)
    found = {}
    for name, feature in field(info, "features", dict, where).items():
        # A list of classes is {"feature": CLASS, "_type": "Sequence"} or, in older files, [CLASS].
        while isinstance(feature, list) and feature:
            feature = feature[0]
        while isinstance(feature, dict) and "feature" in feature:
            feature = feature["feature"]
        names = feature.get("names") if isinstance(feature, dict) else None
        if isinstance(names, list) and all(isinstance(each, str) for each in names):
            found[name] = names
    return found


@contextlib.contextmanager
def _opened(path: str):
    """Open pyarrow's ParquetFile, and turn its errors on damage into UserErrors."""
    check_installed("pyarrow", f"{path} is a Parquet file", "parquet")
    import pyarrow
    import pyarrow.parquet

    with storage.reading(path) as file:
        try:
            table = pyarrow.parquet.ParquetFile(file)
            check_once(table.schema_arrow.names, f"{path}: the columns")
            yield table
        except (pyarrow.ArrowException, OSError) as error:
            raise UserError(f"{path} is a damaged Parquet file: {error}") from None
