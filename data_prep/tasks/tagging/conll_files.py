"""Files of words and tags: one token a line (`token_lines`), or rows of lists (JSON, Parquet).

Files to be tagged may lack tags, or hold running text.
"""

import dataclasses
import itertools
import re
import sys

from data_prep.corpus import parquet_files
from data_prep.tasks.files import formats, reading
from data_prep.tasks.files.table import Table
from data_prep.tasks.files.token_lines import TokenLines, is_token_a_line
from data_prep.tasks.tagging import character_spans
from data_prep.tasks.tagging.conll_columns import COLUMNS
from data_prep.tasks.tagging.tagged_document import TaggedDocument
from data_prep.tasks.task import Inputs
from official_bert.common.errors import UserError
from official_bert.common.json_files import shorten

WORDS = ("tokens", "words")
# Beginnings of annotation tools' files that hold words and entities in another way.
_TOOLS = (
    (re.compile(r"#FORMAT=WebAnno"), "INCEpTION's (or WebAnno's) TSV"),
    (re.compile(r'\{\s*"%(TYPES|FEATURE|VIEWS|FLAGS)'), "INCEpTION's UIMA CAS as JSON"),
    (re.compile(r"<\?xml|<xmi:"), "XML, as UIMA's CAS (INCEpTION's XMI)"),
    (re.compile(r"T\d+\t\S+ \d+ \d+"), "brat's marks beside a text"),
    (re.compile(r'[\[{\s]*"(id|doc_key)":[^\[]*"(paragraphs|sentences)":'), "a tool's own JSON"),
)
_HINT = "; --task_options.word_column= and --task_options.tag_column= name others"


@dataclasses.dataclass(frozen=True)
class TagColumns:
    """The columns of a file that a tagger needs, as far as the user gave them.

    Attributes:
      column: the tags to read, of `conll_columns`.
      word_column, tag_column: number of the column, counted from 1, or for rows its name; "": it is
        looked for.
      names: names of tags that are numbers, in order.
    """

    column: object = COLUMNS["entities"]
    word_column: str = ""
    tag_column: str = ""
    names: tuple[str, ...] = ()

    @property
    def words_in(self) -> tuple[str, ...]:
        """The possible fields of words in rows."""
        return (self.word_column,) if self.word_column else WORDS


def read(path: str, kinds=None, layout: TagColumns | None = None) -> list[TaggedDocument]:
    """Return the documents of a file.

    A row of JSON or Parquet is a sentence: "tokens" (or "words"), and its tags in one of the
    column's `fields`, as texts or as numbers that `names` explain. Neighbouring rows with the same
    "document" are a document; other rows are documents by themselves.

    Args:
      path: the file.
      kinds: known kinds of tags, such as {"PER", "LOC"}; None: any.
      layout: the columns that are known.

    Raises:
      UserError: a line has too few columns or another number than the first, or a tag that is not a
        tag or of an unknown kind; lists of a row have different lengths; or nothing shows which
        column holds the tags.
    """
    layout = layout or TagColumns()
    if formats.ending(path) == "csv":
        raise UserError(
            f"{path}: words and tags are read from a token a line (blanks or tabs between columns, "
            "a blank line between sentences), from JSON and from Parquet, not from CSV"
        )
    found, documents = _detect(path, layout, tagged=True), []
    if isinstance(found, Table):
        documents = _tagged_rows(found, kinds, layout)
    else:
        for sentences in found.documents:
            for number, _, tag in itertools.chain.from_iterable(sentences):
                layout.column.check(tag, kinds, f"{found.name} line {number}")
            documents.append([_words_and_tags(sentence, layout.column) for sentence in sentences])
    if not documents:
        raise UserError(f"{path} has no sentences")
    return [
        TaggedDocument(str(index), *zip(*sentences, strict=True))
        for index, sentences in enumerate(documents)
    ]


def read_test(task, path: str, kinds, layout: TagColumns) -> list[TaggedDocument]:
    """Return the documents of a test file as `read` does; without tags where it has none.

    It has none where the column of tags is missing, or is "_" or "-" for every word, or an empty
    list or numbers of -1 for every row. Running text has none.
    """
    found, format = _detect(path, layout, tagged=False, of_tokens=True), ""
    if isinstance(found, TokenLines):
        format, has_tags = "conll", found.has_tags()
    else:
        fields = (layout.tag_column,) if layout.tag_column else layout.column.fields
        spans = [name for _, name in character_spans.FIELDS]
        known = {*fields, *(spans * (layout.column.name == "entities"))} & {*found.columns}
        nothing = (None, "", "_", "-", -1)
        has_tags = any(
            value not in nothing
            for _, row in found.rows()
            for name in known
            for value in (row[name] if isinstance(row.get(name), list) else [row.get(name)])
        )
    if has_tags:
        return read(path, kinds, layout)
    formats.announce(f"{path}: no word has a tag; they are predicted, and not scored")
    return [document for _, document in inputs(task, path, format, layout, False).rows if document]


def inputs(task, path: str, format: str, layout: TagColumns, single: bool) -> Inputs:
    """Return the examples of a file, without tags, and the rows that each stands for.

    Documents are those of `read`, so that answers equal those that are scored.

    Args:
      task: makes examples of running text.
      path: a file, "-" for standard input.
      format: of `table.FORMATS`, if the user says it.
      layout: the columns that are known.
      single: whether every sentence is an example.

    Raises:
      UserError: as `formats.detect_format`, or nothing shows whether a line is a word or a text.
    """
    found = _detect(path, layout, tagged=False, format=format)
    if isinstance(found, TokenLines):
        return Inputs(_of_tokens(found, single), found)
    rows = task.rows_and_examples(found) if found.found == ("text",) else _of_rows(found, single)
    return Inputs(rows, found)


def answers(rows: list[dict], prediction: dict, layout: TagColumns) -> list[dict]:
    """Return the answer to each row of an example: the part of the prediction on its sentences."""
    names = layout.words_in
    found, first = [], 0
    for row in rows:
        words = next((row[name] for name in names if isinstance(row.get(name), list)), [])
        end = first + (len(_sentences(words)) if row.keys() & set(names) else bool(row))
        answer = {**prediction, "entities": []}
        for name in {"words", "tags", "probabilities"} & prediction.keys():
            answer[name] = prediction[name][first:end]
        for phrase in prediction["entities"]:
            if first <= phrase["sentence"] < end:
                answer["entities"].append({**phrase, "sentence": phrase["sentence"] - first})
        found.append(answer)
        first = end
    return found


def check_words(words, where: str) -> list[str]:
    """Return `words`, after a check that it is a list of words.

    Raises:
      UserError: it is not; `where` names row and column.
    """
    if not isinstance(words, list) or not all(isinstance(w, str) and w for w in words):
        raise UserError(f"{where} must be a list of words, none of them empty: {shorten(words)}")
    return words


def by_document(rows):
    """Return lists of neighbouring (number, row) whose rows have the same "document".

    Other rows are alone.
    """
    group = []
    for number, row in rows:
        name = row.get("document")
        if group and (name is None or name != group[-1][1].get("document")):
            yield group
            group = []
        group.append((number, row))
    if group:
        yield group


def _words_and_tags(sentence, column):
    return tuple(word for _, word, _ in sentence), column.as_read([tag for *_, tag in sentence])


def _detect(
    path: str, layout: TagColumns, tagged: bool, format: str = "", of_tokens: bool = False
) -> Table | TokenLines:
    """Find out what a file is: rows, a token a line, or (if no tags are wanted) running text.

    `of_tokens`: plain lines are known to be tokens.
    """
    lines = None
    if path == "-" or not parquet_files.is_parquet(path):
        lines = reading.Lines(path)
        beginning = "\n".join(lines.first).lstrip()
        if tool := next((name for start, name in _TOOLS if start.match(beginning)), ""):
            raise UserError(
                f"{lines.name} is {tool}; export it as CoNLL 2003 (a word and its tag a line), or "
                "as JSON with a text and its entities by characters (start, end, label)"
            )
        is_text = not format and not formats.json_format(lines, path)
        of_tokens = is_text and (tagged or of_tokens or is_token_a_line(lines, path, layout))
        if format == "conll" or of_tokens:
            return TokenLines(lines, layout, tagged)
    words = layout.words_in
    if not tagged:
        wanted = tuple((name,) for name in (*words, *(("text",) * (not layout.word_column))))
        return formats.detect_format(path, wanted, texts=True, format=format, lines=lines)
    fields = (layout.tag_column,) if layout.tag_column else layout.column.fields
    by_characters = layout.column.name == "entities" and not (
        layout.word_column or layout.tag_column
    )
    table = formats.detect_format(
        path,
        (*itertools.product(words, fields), *(character_spans.FIELDS * by_characters)),
        optional=("document",),
        question=(
            f"which columns hold the words and their tags? Looked for are {' or '.join(words)}, "
            f"and {' or '.join(fields)}"
            + ", or text with entities by characters (label, entities, spans)" * by_characters
            + "."
        ),
        hint=_HINT,
        lines=lines,
    )
    if table.found in character_spans.FIELDS:
        return table
    if len(several := [name for name in fields if name in table.columns]) > 1:
        raise UserError(
            f"{path}: which column holds the tags, {' or '.join(several)}? "
            "--task_options.tag_column= says it"
        )
    return table


def _tagged_rows(table: Table, kinds, layout: TagColumns) -> list[list[tuple]]:
    column = layout.column
    names = table.class_names.get(table.found[1]) or layout.names
    documents, empty, rejected = [], 0, 0
    for group in by_document(table.rows()):
        sentences = []
        for number, row in group:
            where = table.where(number)
            if table.found in character_spans.FIELDS:
                found = character_spans.words_and_tags(row, table.found, where)
                rejected += found is None
                words, tags = found or ([], [])
            else:
                words, tags = (row[name] for name in table.found)
                check_words(words, f"{where}: {table.found[0]}")
                tags = _tags(tags, names, f"{where}: {table.found[1]}")
            if len(words) != len(tags):
                raise UserError(f"{where}: {len(words)} words and {len(tags)} tags")
            for tag in tags:
                column.check(tag, kinds, where)
            if words:
                sentences.append((tuple(words), column.as_read(tags)))
            empty += not words
        if sentences:
            documents.append(sentences)
    for count, why in (
        (empty - rejected, "without words"),
        (rejected, "not accepted or not annotated"),
    ):
        if count:
            print(f"{table.path}: {count} rows {why} left out", file=sys.stderr)
    return documents


def _tags(values, names, where: str) -> list[str]:
    """Return the tags of a row as texts."""
    if isinstance(values, list) and all(isinstance(value, str) and value for value in values):
        return values
    numbers = isinstance(values, list) and all(type(value) is int for value in values)
    if numbers and not names:
        raise UserError(
            f"{where} is {shorten(values)}: --task_options.tag_names=O,B-PER,I-PER,... says "
            "what the numbers stand for (or --task_options.labels, when fine-tuning)"
        )
    if not numbers:
        raise UserError(
            f"{where} is {shorten(values)}, expected a list of texts, none of them empty"
        )
    for value in values:
        if not 0 <= value < len(names):
            raise UserError(
                f"{where} holds the number {value}, and the tags are {len(names)}: "
                f"0 {names[0]} to {len(names) - 1} {names[-1]}"
            )
    return [names[value] for value in values]


def from_tfds(
    rows, tag_names: list[str], kinds=None, column=COLUMNS["entities"]
) -> list[TaggedDocument]:
    """Return the sentences of TFDS's rows, each as a document.

    TFDS keeps neither the borders of documents nor the order of sentences.

    Args:
      rows: dicts with "tokens", bytes, and the column's feature, indices of `tag_names`.
      kinds, column: as in `read` and `TagColumns`.
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


def _sentences(words: list) -> list:
    """Return sentences, from a list of words or of lists of words."""
    return words if not words or isinstance(words[0], list) else [words]


def _of_tokens(found: TokenLines, single: bool):
    for index, document in enumerate(found.documents):
        rows = [
            {"tokens": [word for _, word, _ in sentence], "document": str(index)}
            for sentence in document
        ]
        for part in [[row] for row in rows] if single else [rows]:
            words = tuple(tuple(row["tokens"]) for row in part)
            yield part, TaggedDocument(str(index), words)


def _of_rows(table: Table, single: bool):
    (name,) = table.found
    rows = ((number, row or {}) for number, row in table.rows(blank_lines=True))
    for group in ([row] for row in rows) if single else by_document(rows):
        sentences = []
        for number, row in group:
            where = f"{table.where(number)}: {name}"
            words = row.get(name, [])
            if not isinstance(words, list):
                check_words(words, where)
            sentences += [tuple(check_words(part, where)) for part in _sentences(words)]
        number, row = group[0]
        document = TaggedDocument(str(row.get("id", number)), tuple(sentences))
        yield [row for _, row in group], document if sentences else None
