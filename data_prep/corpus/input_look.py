"""A check that an input is a corpus of sentences and documents, before hours of work.

Any text can be read as one sentence a line with blank lines between documents. A text with another
layout would silently give worthless records: from JSON Lines a model learns the names of the
fields; with a document a line all next sentences are random; with a book on a line only a few rows
remain.
"""

import itertools
import re
from dataclasses import dataclass

from data_prep.corpus.packed_files import open_bytes, unpacked_name
from data_prep.corpus.sentence_splitter import split_sentences
from data_prep.corpus.text_files import BYTE_ORDER_MARK
from official_bert.common.errors import UserError

_FILES = 20  # of the input, evenly spread
_BYTES = 1 << 18  # from the start of each
_MOST = 0.5  # a fault with this share of the sample is one of the whole input

_TABLES = (".csv", ".tsv")
_JSON = re.compile(r'\[\s*(\{|$)|\{\s*("|$)')
_MARKUP = re.compile(r"<(!doctype|\?xml|html|mediawiki)\b", re.IGNORECASE)
_SHORTEST_ROW = 128  # whole sentences are longer than the rows of small experiments

# Words and single ideographs, at most as many as the tokeniser finds.
_TOKEN = re.compile(r"[^\W\u3400-\u9fff]+|[\u3400-\u9fff]")


@dataclass
class InputLook:
    """The lines of a sample of the input.

    Attributes:
      lines: all lines; blank ones separate documents.
      whole: whether the sample is the whole input.
      carriage_returns: whether a file has them as its only line ends.
      table: the first file whose name is that of a table.
    """

    lines: list[str]
    whole: bool
    carriage_returns: bool
    table: str = ""

    @property
    def documents(self) -> list[list[str]]:
        parts = itertools.groupby(self.lines, key=bool)
        return [list(part) for is_text, part in parts if is_text]

    def __str__(self) -> str:
        sentences = [line for line in self.lines if line]
        documents = max(1, len(self.documents))
        words = sum(len(line.split()) for line in sentences)
        return (
            f"{'' if self.whole else 'in a sample '}{documents} documents of "
            f"{len(sentences) / documents:.1f} sentences of {words / max(1, len(sentences)):.0f} "
            f"words; the first: {sentences[0][:60] if sentences else ''!r}"
        )


def look(paths: list[str]) -> InputLook:
    """Read the beginnings of some of the files."""
    chosen = paths[:: max(1, -(-len(paths) // _FILES))]
    lines, whole, carriage_returns = [], len(chosen) == len(paths), False
    for path in chosen:
        with open_bytes(path) as file:
            data = file.read(_BYTES).removeprefix(BYTE_ORDER_MARK)
        if len(data) == _BYTES:
            whole = False
            data = data[: data.rfind(b"\n") + 1] or data
        carriage_returns |= data.count(b"\r") > 1 and b"\n" not in data
        lines += [line.strip() for line in data.decode("utf-8", "replace").split("\n")] + [""]
    tables = (path for path in chosen if unpacked_name(path).lower().endswith(_TABLES))
    return InputLook(lines, whole, carriage_returns, next(tables, ""))


def other_format(found: InputLook) -> str:
    """Return the format of files that are not plain text; "" where they are."""
    sentences = [line for line in found.lines if line]
    if found.carriage_returns:
        return "its lines end with carriage returns alone (tr '\\r' '\\n' makes them lines)"
    first = sentences[0] if sentences else ""
    if _JSON.match(first) or _share(line.startswith('{"') for line in sentences) > _MOST:
        return (
            "its lines are JSON, which would be learned as it stands (data_prep.sentences reads "
            "JSON Lines, an object a line, with --text_field)"
        )
    if _MARKUP.match(first):
        return "it is HTML or XML (data_prep.wikipedia reads MediaWiki's dumps)"
    if found.table:
        return (
            f"{found.table} is a table by its name (data_prep.sentences reads rows as JSON Lines "
            "and Parquet, with --text_field)"
        )
    if any(line.startswith("<doc id=") for line in sentences):
        return "it is WikiExtractor's output (data_prep.sentences makes sentences of it)"
    return ""


def fault(found: InputLook, max_tokens: int, pairs: bool = True) -> str:
    """Return the fault that keeps plain text from being a corpus of sentences; "" without one.

    Args:
      max_tokens: of a row; longer sentences are cut.
      pairs: whether rows are pairs of segments.
    """
    sentences = [line for line in found.lines if line]
    tokens = max(max_tokens, _SHORTEST_ROW)
    long = (line for line in sentences if len(line) > tokens)  # spares most of the counting
    long = sum(len(line) for line in long if len(_TOKEN.findall(line)) > tokens)
    if long > _MOST * sum(map(len, sentences)):
        return (
            f"most of it is in lines of more than {tokens} words, and a line should be a sentence "
            "(data_prep.sentences splits text)"
        )
    if not pairs:
        return ""
    documents = found.documents
    if found.whole and len(documents) == 1:
        return "it is one document, and random next sentences come from others"
    if _share(len(document) == 1 for document in documents) > _MOST:
        several = _share(len(split_sentences(line)) > 1 for line in sentences[:1000]) > _MOST
        return "most documents are a single sentence, which has no next one (" + (
            "is a line a document? data_prep.sentences --documents=lines splits it)"
            if several
            else "take out the blank lines between sentences of one document; where rows of JSON "
            "Lines or Parquet were sentences, data_prep.sentences --document_column= joins those "
            "of a document)"
        )
    return ""


def check(found: InputLook, max_tokens: int = 0, pairs: bool = True) -> None:
    """Check an input before all of it is read.

    Args:
      found: the result of `look`.
      max_tokens: of a row; 0 where any plain text will do.
      pairs: whether rows are pairs of segments, which one document cannot give.

    Raises:
      UserError: it is not plain text or not a corpus of sentences; the message describes it.
    """
    reason = other_format(found)
    if reason and not max_tokens:
        raise UserError(f"the input is not plain text: {reason}. It has {found}")
    reason = reason or (max_tokens and fault(found, max_tokens, pairs))
    if reason:
        raise UserError(
            f"the input is not a corpus of one sentence a line and a blank line between documents: "
            f"{reason}. It has {found}. Pass --accept_input to go on all the same"
        )


def _share(values) -> float:
    values = list(values)
    return sum(values) / max(1, len(values))
