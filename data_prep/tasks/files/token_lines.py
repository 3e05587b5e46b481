"""Files with one token a line, in columns: CoNLL's shared tasks and their many relatives.

Blank lines separate sentences; -DOCSTART- (CoNLL-2003) or "# newdoc" (CoNLL-U) separates documents.
A first column may count the tokens (CoNLL-U, GermEval); its ranges ("1-2") and empty nodes ("1.1")
are not tokens. Lines that begin with "#" before a sentence are comments, unless they can be tokens.
"""

import re

from data_prep.tasks.files import formats, reading
from official_bert.common.errors import UserError, first_of

_NUMBER = re.compile(r"\d{1,18}")
_NO_TOKEN = re.compile(r"\d+[-.]\d+")
_NO_TAG = ("_", "-", "")
_COMMENT = re.compile(r"#\s*(\w[\w.:]*\s*=|(id|sent_id|text|newdoc|newpar|https?:)\b)")
# Names of columns in the first lines of some files.
_HEADER_WORDS = {"word", "words", "token", "tokens", "form", "text", "id"}
_HEADER_TAGS = {"tag", "tags", "label", "labels", "ner", "pos", "entity", "entities"} | {
    "ner_tag", "ner_tags", "pos_tag", "chunk", "iob", "bio"
}  # fmt: skip
# Kinds of phrases in CoNLL's chunks, in English and German.
_CHUNKS = {"NP", "VP", "PP", "ADVP", "SBAR", "ADJP", "PRT", "CONJP", "INTJ", "LST", "UCP"} | {
    "NC", "VC", "PC"
}  # fmt: skip
_FEW = 5  # lines of texts may have the same number of words by chance
_CONLL_U, _UPOS = 10, 3  # columns of CoNLL-U, and the place of its part of speech


class TokenLines:
    """A file with one token a line.

    Attributes:
      name: the file's name in errors.
      lines: all its lines.
      separator: "\\t", or " " where blanks or tabs separate columns.
      documents: lists of sentences, which are lists of (line number, word, tag).

    Raises:
      UserError: a line has another number of columns than the first, or (with `tagged`) nothing
        shows where the tags are.
    """

    def __init__(self, lines: reading.Lines, layout, tagged: bool = True):
        """
        Args:
          lines: the lines of the file.
          layout: `conll_files.TagColumns`.
          tagged: whether tags are wanted; else all tags are "".
        """
        self.name, self.lines = lines.name, [line for _, line in lines]
        self.separator = _separator(self.lines)
        self._layout, self._tagged = layout, tagged
        self._fields = {}  # {line number: fields} of lines that are or may be tokens
        for number, line in enumerate(self.lines, 1):
            if line.strip():
                self._fields[number] = _split(line, self.separator)
        self._find_columns()
        self.documents = self._documents()
        formats.announce(self)

    def __str__(self) -> str:
        words = f"word: column {self._word + 1}"
        if self._tagged:
            words += f", {self._layout.column.name}: column {self._tag + 1}"
        counts = {"comments": self._comments, "ranges and empty nodes": self._skipped}
        words += "".join(f", {count} {what} left out" for what, count in counts.items() if count)
        return f"{self.name}: a token a line, {self._num_columns} columns; {words}"

    def has_tags(self) -> bool:
        """Return whether a token has a tag, in the column that the user gave or in the last."""
        given = self._layout.tag_column
        last = self._num_columns - 1
        place = self._place(given, "tag_column", last) if last > self._word else last
        tokens = (number for document in self.documents for s in document for number, *_ in s)
        return place != self._word and any(self._fields[n][place] not in _NO_TAG for n in tokens)

    def with_tags(self, tags: list[str]) -> list[str]:
        """Return the lines with a further column: the tags of the tokens, in order."""
        numbers = [number for document in self.documents for s in document for number, *_ in s]
        beside = dict(zip(numbers, tags, strict=True)) | {self._header: "predicted"}
        for number in self._no_tokens:
            beside[number] = "O" if self._fields[number][0] == "-DOCSTART-" else "_"
        return [
            line.rstrip() + self.separator + beside[number] if number in beside else line
            for number, line in enumerate(self.lines, 1)
        ]

    def _find_columns(self) -> None:
        tokens = {
            number: fields
            for number, fields in self._fields.items()
            if not self.lines[number - 1].startswith("#") and fields[0] != "-DOCSTART-"
        } or dict(self._fields)
        first = next(iter(tokens), 0)
        self._num_columns = len(tokens[first]) if tokens else 0
        self._header = first if tokens and is_header(tokens[first]) else 0
        names = tokens.pop(self._header, [])
        if names and names[0].lower().startswith("sentence"):
            raise UserError(
                f"{self.name}: the column {names[0]} says where sentences begin; put a blank line "
                "between sentences instead"
            )
        self._numbered = self._counts_tokens(tokens) and not self._ends_with_tags(tokens)
        self._word = self._place(self._layout.word_column, "word_column", int(self._numbered))
        rows = [f for f in tokens.values() if self._is_token(f) and len(f) == self._num_columns]
        kinds = self._kinds_of_places(rows)
        self._tag = -1
        if self._tagged:
            self._tag = self._place(self._layout.tag_column, "tag_column", None)
            if self._tag is None:
                self._tag = self._find_tag(kinds)
        self._tag_places = (
            [self._tag] if self._tagged else list(kinds)
        )  # they tell a word from a comment

    def _counts_tokens(self, tokens: dict) -> bool:
        """Return whether the first column counts the tokens of each sentence, from 0 or 1."""
        before, last = None, 0
        for number, (first, *rest) in tokens.items():
            if _NO_TOKEN.fullmatch(first):
                continue
            if not rest or not _NUMBER.fullmatch(first):
                return False
            begins = number - 1 != before and first in ("0", "1")
            if int(first) != last + 1 and not begins:
                return False
            before, last = number, int(first)
        return before is not None

    def _ends_with_tags(self, tokens: dict) -> bool:
        """Return whether the file has words and tags only; then numbers are words."""
        is_tag = self._layout.column.is_tag
        tags = self._tagged or self._layout.column.name != "part_of_speech"
        good = sum(is_tag(fields[-1]) for fields in tokens.values())
        return self._num_columns == 2 and tags and 2 * good > len(tokens)

    def _place(self, given: str, option: str, default):
        """Return the place, from 0, of a column that the user gave by number, from 1."""
        if not given:
            return default
        if not given.lstrip("-").isdigit() or not 1 <= abs(int(given)) <= self._num_columns:
            raise UserError(
                f"{self.name}: --task_options.{option}={given}; its columns are 1 to "
                f"{self._num_columns}"
            )
        return int(given) - 1 if int(given) > 0 else self._num_columns + int(given)

    def _is_token(self, fields: list[str]) -> bool:
        return not (self._numbered and _NO_TOKEN.fullmatch(fields[0]))

    def _kinds_of_places(self, rows: list[list[str]]) -> dict[int, set[str]]:
        """Return {place: kinds of its tags without O} of columns where most fields are tags."""
        column, found = self._layout.column, {}
        for place in range(self._num_columns):
            good = [row[place] for row in rows if column.is_tag(row[place])]
            if place != self._word and len(good) * 2 > len(rows):
                found[place] = {column.kind(tag) for tag in good} - {"O"}
        return found

    def _find_tag(self, found: dict[int, set[str]]) -> int:
        """Return the place of the tags, judged by all lines."""
        column, columns = self._layout.column, self._num_columns
        if column.name == "part_of_speech":
            if self._numbered and columns == _CONLL_U:
                return _UPOS
            usual = self._word + 1
            if columns > self._word + (2 if self._numbered else 4):
                raise self._doubt(range(self._word + 1, columns))
            return usual
        if column.name == "chunks" and not self._numbered and columns <= 4:
            return 2
        wanted = {
            place
            for place, kinds in found.items()
            if kinds and (kinds <= _CHUNKS) == (column.name == "chunks")
        }
        if len(wanted) > 1:
            raise self._doubt(sorted(wanted))
        return wanted.pop() if wanted else columns - 1

    def _doubt(self, places) -> UserError:
        listed = first_of([place + 1 for place in places], 20)
        return UserError(
            f"{self.name}: which column holds the tags ({self._layout.column.name}), one of "
            f"{listed}? --task_options.tag_column= says it, counted from 1"
        )

    def _documents(self) -> list:
        documents, sentences, tokens = [], [], []
        self._comments = self._skipped = 0
        self._no_tokens = []

        def end_sentence():
            if tokens:
                sentences.append(list(tokens))
                tokens.clear()

        def end_document():
            end_sentence()
            if sentences:
                documents.append(list(sentences))
                sentences.clear()

        for number, line in enumerate(self.lines, 1):
            fields = self._fields.get(number)
            if fields is None:
                end_sentence()
            elif fields[0] == "-DOCSTART-":
                end_document()
                if len(fields) > 1:
                    self._no_tokens.append(number)
            elif number == self._header:
                continue
            elif not tokens and self._is_comment(line, fields):
                self._comments += 1
                if re.match(r"#\s*newdoc\b", line):
                    end_document()
            elif not self._is_token(fields):
                self._skipped += 1
                self._no_tokens.append(number)
            else:
                self._check_columns(number, fields)
                tag = fields[self._tag] if self._tagged else ""
                tokens.append((number, fields[self._word], tag))
        end_document()
        return documents

    def _is_comment(self, line: str, fields: list[str]) -> bool:
        if not line.startswith("#"):
            return False
        if self._numbered or len(fields) != self._num_columns or _COMMENT.match(line):
            return True
        is_tag = self._layout.column.is_tag
        # A short line is said to lack its tag where columns are checked.
        places = [place for place in self._tag_places if place < len(fields)]
        return bool(places) and not any(is_tag(fields[place]) for place in places)

    def _check_columns(self, number: int, fields: list[str]) -> None:
        least = max(self._word, self._tag) + 1 if self._tagged else self._word + 1
        least = max(least, 2) if self._tagged else least
        if len(fields) == self._num_columns >= least:
            if not fields[self._word]:
                raise UserError(f"{self.name} line {number}: the word is empty")
            return
        word = "word first" if self._word == 0 else f"word number {self._word + 1}"
        tag = "last" if self._tag in (-1, self._num_columns - 1) else f"number {self._tag + 1}"
        tagged = f", {self._layout.column.name} {tag}" if self._tagged else ""
        raise UserError(
            f"{self.name} line {number}: {len(fields)} columns, expected "
            f"{max(self._num_columns, least)} ({word}{tagged}; --task_options.word_column= and "
            "--task_options.tag_column= say which)"
        )


def is_token_a_line(lines: reading.Lines, path: str, layout) -> bool:
    """Return whether lines without known tags are tokens in columns, and not texts.

    Raises:
      UserError: they may be either.
    """
    # A column given by number is one of token lines.
    if formats.ending(path) in formats.TOKENS or layout.word_column.lstrip("-").isdigit():
        return True
    separator = _separator(lines.first)
    rows = [_split(line, separator) for line in lines.first if line.strip()]
    rows = [fields for fields in rows if not fields[0].startswith("#")]
    if any(fields[0] == "-DOCSTART-" for fields in rows):
        return True
    header = rows.pop(0) if len(rows) > 1 and is_header(rows[0]) else []
    counts = {len(fields) for fields in rows}
    if _has_tags(rows, layout.column):
        return True
    if len(counts) != 1 or "text" in header:
        return False
    if counts != {1} and all(fields[0][:1].isdigit() for fields in rows) and rows[0][0] in "01":
        return True
    if len(rows) < (2 if "" in lines.first[:-1] and len(rows) > 2 else _FEW):
        return False
    raise UserError(
        f"{lines.name}: is every line a word, or a text? All have as many words. --format=conll "
        "takes them for words (of several columns the first), --format=lines for texts"
    )


def _has_tags(rows: list[list[str]], column) -> bool:
    """Return whether most lines end with a tag of a phrase, or all have one in another column.

    In a few lines, tags that are all O do not count ("Blood of type O").
    """
    if column.name == "part_of_speech":
        return False
    same = len({len(fields) for fields in rows}) == 1
    columns = [[fields[-1] for fields in rows if len(fields) > 1]]
    columns += zip(*(fields[1:-1] for fields in rows), strict=False) if same else []
    for place, fields in enumerate(columns):
        tags = [field for field in fields if column.is_tag(field)]
        enough = 2 * len(tags) > len(rows) if place == 0 else len(tags) == len(rows)
        if enough and (len(rows) >= _FEW or set(tags) != {"O"}):
            return True
    return False


def is_header(fields: list[str]) -> bool:
    """Return whether a line's fields are names of columns."""
    names = [field.lower() for field in fields]
    return not _HEADER_WORDS.isdisjoint(names[:2]) and not _HEADER_TAGS.isdisjoint(names[1:])


def _separator(lines: list[str]) -> str:
    """Return a tab where nearly every line has one: words may hold blanks then."""
    given = [line for line in lines if line.strip() and not line.startswith(("#", "-DOCSTART-"))]
    with_tab = sum("\t" in line for line in given)
    return "\t" if given and with_tab > 0.9 * len(given) else " "


def _split(line: str, separator: str) -> list[str]:
    # Lines are cut at blanks and tabs only: no-break spaces are part of words ("10\\u00a0000"). Any
    # text may follow -DOCSTART-, such as a document's name.
    if separator == "\t" and not line.startswith("-DOCSTART-"):
        return [field.strip(" ") for field in line.rstrip(" \t").split("\t")]
    return [field for field in re.split(r"[ \t]+", line) if field]
