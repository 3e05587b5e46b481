"""CoNLL-2003 files: one token a line, blank lines between sentences, -DOCSTART- between
documents.
"""

import dataclasses

from data_prep.tasks import reading
from official_bert.errors import UserError


@dataclasses.dataclass(frozen=True)
class TaggedDocument:
    """`sentences`: tuples of words; `tags`: the IOB2 tags of each, or None where they are unknown.

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


def read(path: str, types=None) -> list[TaggedDocument]:
    """The documents of a file whose first column is the word and last the tag (IOB1 or IOB2).

    Args:
      path: the file.
      types: the kinds of entities that are known, such as {"PER", "LOC"}; None: any.

    Raises:
      UserError: a line with another number of columns than the first, with a tag that is none, or
        with an entity of another type.
    """
    documents, sentences, words, tags = [], [], [], []
    columns = None

    def end_sentence():
        if words:
            sentences.append((tuple(words), tuple(tags)))
            words.clear()
            tags.clear()

    def end_document():
        end_sentence()
        if sentences:
            iob2 = tuple(tuple(to_iob2(tags)) for _, tags in sentences)
            words_of = tuple(words for words, _ in sentences)
            documents.append(TaggedDocument(str(len(documents)), words_of, iob2))
            sentences.clear()

    for number, line in reading.read_lines(path):
        fields = line.split()
        if not fields:
            end_sentence()
        elif fields[0] == "-DOCSTART-":
            end_document()
        else:
            columns = columns or len(fields)
            if len(fields) != columns or columns < 2:
                raise UserError(
                    f"{path} line {number}: {len(fields)} columns, expected {max(columns, 2)} "
                    "(word first, tag last)"
                )
            if fields[-1] != "O" and fields[-1][:2] not in ("B-", "I-"):
                raise UserError(f"{path} line {number}: {fields[-1]!r} is not an IOB tag")
            _check_type(fields[-1], types, f"{path} line {number}")
            words.append(fields[0])
            tags.append(fields[-1])
    end_document()
    if not documents:
        raise UserError(f"{path} has no sentences")
    return documents


def from_tfds(rows, tag_names: list[str], types=None) -> list[TaggedDocument]:
    """The sentences of TFDS's rows, each a document of its own.

    TFDS keeps neither the limits of documents nor the order of sentences.

    Args:
      rows: dicts of "tokens", bytes, and "ner", indices of `tag_names`.
      types: as in `read`.
    """
    documents = []
    for row in rows:
        words = tuple(word.decode("utf-8") for word in row["tokens"])
        tags = [tag_names[index] for index in row["ner"]]
        for tag in tags:
            _check_type(tag, types, "TFDS conll2003")
        if words:  # the last row may be empty
            document = TaggedDocument(str(len(documents)), (words,), (tuple(to_iob2(tags)),))
            documents.append(document)
    return documents


def to_iob2(tags) -> list[str]:
    """IOB2: every entity begins with B-. IOB1 (B- only between adjacent entities of a type) and
    IOB2 are both read right, as an I- that follows O or another type begins an entity in either."""
    result, previous = [], "O"
    for tag in tags:
        begins = tag[:2] == "I-" and (previous == "O" or previous[2:] != tag[2:])
        result.append(f"B-{tag[2:]}" if begins else tag)
        previous = tag
    return result


def entities(tags) -> list[tuple[str, int, int]]:
    """(type, first word, word after the last) of each entity, as conlleval reads tags."""
    found, start = [], None
    for index, tag in enumerate([*tags, "O"]):
        if start is not None and (tag[:2] != "I-" or tag[2:] != tags[start][2:]):
            found.append((tags[start][2:], start, index))
            start = None
        if tag != "O" and start is None:
            start = index
    return found


def _check_type(tag: str, types, where: str) -> None:
    if tag != "O" and types is not None and tag[2:] not in types:
        raise UserError(
            f"{where}: the tag {tag} is not among the training tags, "
            f"which are of the types {', '.join(sorted(types))}"
        )
