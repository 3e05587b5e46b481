"""Files of tagged words: CoNLL-2003's (one token a line, blank lines between sentences, -DOCSTART-
between documents), or JSON objects with lists of words and tags.
"""

import dataclasses
import json
import re

from data_prep.tasks import reading
from data_prep.tasks.conll_columns import COLUMNS
from official_bert.errors import UserError


@dataclasses.dataclass(frozen=True)
class TaggedDocument:
    """`sentences`: tuples of words; `tags`: the tags of each (IOB2 for phrases), or None where they
    are unknown.

    `offsets`: for running text, the (start, end) characters of each word, else None.
    """

    id: str
    sentences: tuple[tuple[str, ...], ...]
    tags: tuple[tuple[str, ...], ...] | None = None
    offsets: tuple[tuple[tuple[int, int], ...], ...] | None = None

    @property
    def size(self) -> int:
        """What it counts where examples are counted: its sentences."""
        return len(self.sentences)

    def first(self, count: int) -> "TaggedDocument":
        """The document of its first sentences."""
        parts = (self.sentences, self.tags, self.offsets)
        return TaggedDocument(self.id, *(part and part[:count] for part in parts))


def read(path: str, kinds=None, column=COLUMNS["entities"]) -> list[TaggedDocument]:
    """The documents of a file: columns, the first of which is the word, or JSON (.jsonl, .json).

    A JSON object is a sentence: "tokens" (or "words"), and its tags under one of the column's
    `fields`. Neighbouring ones of one "document" are a document, others stand alone.

    Args:
      path: the file.
      kinds: of the tags that are known, such as {"PER", "LOC"}; None: any.
      column: of `conll_columns`: where the tag stands, and what it is.

    Raises:
      UserError: a line with another number of columns than the first or too few, with a tag that is
        none, or with one of another kind; in JSON, with lists of different lengths.
    """
    if path.removesuffix(".gz").endswith((".jsonl", ".json")):
        return _read_json(path, kinds, column)
    documents, sentences, words, tags = [], [], [], []
    columns, least = None, max(2, column.place + 1)

    def end_sentence():
        if words:
            sentences.append((tuple(words), tuple(tags)))
            words.clear()
            tags.clear()

    def end_document():
        end_sentence()
        if sentences:
            tags_of = tuple(column.as_read(tags) for _, tags in sentences)
            words_of = tuple(words for words, _ in sentences)
            documents.append(TaggedDocument(str(len(documents)), words_of, tags_of))
            sentences.clear()

    for number, line in reading.read_lines(path):
        # At blanks and tabs alone: no-break spaces are part of words ("10\u00a0000").
        fields = [field for field in re.split(r"[ \t]+", line) if field]
        if not line.strip():
            end_sentence()
        elif fields[0] == "-DOCSTART-":
            end_document()
        else:
            columns = columns or len(fields)
            if len(fields) != columns or columns < least:
                where = "last" if column.place < 0 else f"number {column.place + 1}"
                raise UserError(
                    f"{path} line {number}: {len(fields)} columns, expected {max(columns, least)} "
                    f"(word first, {column.name} {where}; "
                    "--config.task_options.column= chooses another)"
                )
            tag = fields[column.place]
            column.check(tag, kinds, f"{path} line {number}")
            words.append(fields[0])
            tags.append(tag)
    end_document()
    if not documents:
        raise UserError(f"{path} has no sentences")
    return documents


def _read_json(path, kinds, column):
    documents, before = [], None
    for number, row in reading.read_table(path):
        where = f"{path} line {number}"
        words = _strings(row, ("tokens", "words"), where)
        tags = _strings(row, column.fields, where)
        if len(words) != len(tags):
            raise UserError(f"{where}: {len(words)} words and {len(tags)} tags")
        for tag in tags:
            column.check(tag, kinds, where)
        if not words:
            continue
        name = row.get("document")
        if name is None or name != before:
            documents.append(([], []))
        before = name
        for whole, part in zip(documents[-1], (tuple(words), column.as_read(tags)), strict=True):
            whole.append(part)
    if not documents:
        raise UserError(f"{path} has no sentences")
    return [
        TaggedDocument(str(index), *map(tuple, document))
        for index, document in enumerate(documents)
    ]


def _strings(row, names, where):
    name = next((name for name in names if name in row), None)
    if name is None:
        raise UserError(f"{where}: no field {' or '.join(names)}; there are {', '.join(row)}")
    values = row[name]
    if not isinstance(values, list) or not all(isinstance(v, str) and v for v in values):
        shown = json.dumps(values, ensure_ascii=False)[:80]
        raise UserError(f"{where}: {name} is {shown}, expected a list of texts, none of them empty")
    return values


def from_tfds(
    rows, tag_names: list[str], kinds=None, column=COLUMNS["entities"]
) -> list[TaggedDocument]:
    """The sentences of TFDS's rows, each a document of its own.

    TFDS keeps neither the limits of documents nor the order of sentences.

    Args:
      rows: dicts of "tokens", bytes, and the column's feature, indices of `tag_names`.
      kinds, column: as in `read`.
    """
    documents = []
    for row in rows:
        words = tuple(word.decode("utf-8") for word in row["tokens"])
        tags = [tag_names[index] for index in row[column.feature]]
        for tag in tags:
            column.check(tag, kinds, "TFDS conll2003")
        if words:  # the last row may be empty
            document = TaggedDocument(str(len(documents)), (words,), (column.as_read(tags),))
            documents.append(document)
    return documents
