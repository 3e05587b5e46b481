"""Questions from SQuAD's JSON or from rows, the places of their answers, and the kept window.

Only `context="answer_sentence"` keeps one window of a paragraph.
"""

import collections
import dataclasses
import functools
import itertools
import zlib
from collections.abc import Iterator

import numpy as np

from data_prep.tasks.files import formats
from data_prep.tasks.files.table import Table
from official_bert.common.errors import UserError
from official_bert.common.json_files import field, list_of


@dataclasses.dataclass(frozen=True)
class SquadExample:
    """A question about a paragraph.

    `answers`: the gold texts, empty for an unanswerable question; None where they are unknown.
    `answer_start`: first character of the first answer, -1 without one. `title`: the article's, ""
    where it is unknown.
    """

    id: str
    question: str
    context: str
    answers: tuple[str, ...] | None = None
    answer_start: int = -1
    title: str = dataclasses.field(default="", repr=False, compare=False)


WANTED = (("paragraphs",), ("question", "context"))
_OPTIONAL = ("answers", "is_impossible", "title")
_QUESTION = (
    "which columns hold question and context, and is it SQuAD's format (data, paragraphs, qas)?"
)


def read(path: str, need_answers: bool = False) -> list[SquadExample]:
    """Return all questions of a file, in its order.

    Args:
      path: SQuAD's JSON, or a format of `formats` with rows of a question and its answers, as
        Hugging Face's `datasets` writes them.
      need_answers: whether a question with unknown answers is an error.

    Raises:
      UserError: it cannot be read, a field is missing or of another type, or its fields on a
        question contradict each other.
    """
    table = formats.detect_format(path, WANTED, optional=_OPTIONAL, question=_QUESTION)
    examples = [example for _, example in rows_of(table)]
    unknown = [example.id for example in examples if example.answers is None]
    if need_answers and unknown:
        raise UserError(
            f"{path} question {unknown[0]} has no answers ({len(unknown)} questions have none), "
            'which are read from answers: [{"text": ..., "answer_start": ...}]; only a test file '
            "may lack them"
        )
    return examples


def rows_of(table: Table) -> Iterator[tuple[dict, SquadExample]]:
    """Yield (row, example) of each question.

    The row of a question in an article is the question with its context.

    Raises:
      UserError: as `read`.
    """
    for number, row in table.rows():
        if table.found != ("paragraphs",):
            row_id = {"id": number} | row
            example = _example(row_id, row["context"], table.name, table.where(number))
            yield row, _titled(example, row)
            continue
        where = f"{table.name} article {number}"
        for index, paragraph in enumerate(list_of(row, "paragraphs", dict, where), 1):
            here = f"{where} paragraph {index}"
            context = field(paragraph, "context", str, here)
            for question in list_of(paragraph, "qas", dict, here):
                more = {name: row[name] for name in ("title",) if name in row}
                asked = {**more, "context": context, **question}
                yield asked, _titled(_example(question, context, table.name, here), row)


def _titled(example: SquadExample, row: dict) -> SquadExample:
    return dataclasses.replace(example, title=str(row.get("title") or ""))


def numbered(examples: list[SquadExample]) -> tuple[list[SquadExample], int]:
    """Return the examples with unique ids, and the number of examples with a repeated id.

    Scores and files of answers use the id. Files of two languages, or ids that begin anew in each
    article, repeat ids; the second "7" becomes "7#2".
    """
    taken = {example.id for example in examples}
    seen, found, repeated = collections.Counter(), [], 0
    for example in examples:
        seen[example.id] += 1
        if seen[example.id] > 1:
            repeated += 1
            count = seen[example.id]
            while (id := f"{example.id}#{count}") in taken:
                count += 1
            taken.add(id)
            example = dataclasses.replace(example, id=id)
        found.append(example)
    return found, repeated


def from_tfds(row: dict) -> SquadExample:
    """Return the example of a row of TFDS, equal to that of `read` for the question."""
    answers = zip(row["answers"]["text"], row["answers"]["answer_start"], strict=True)
    question = {
        "id": row["id"].decode("utf-8"),
        "question": row["question"].decode("utf-8"),
        "answers": [{"text": t.decode("utf-8"), "answer_start": int(s)} for t, s in answers],
        "is_impossible": bool(row.get("is_impossible", False)),
    }
    example = _example(question, row["context"].decode("utf-8"), "TFDS", "TFDS")
    return dataclasses.replace(example, title=row["title"].decode("utf-8"))


def find_answer(example: SquadExample) -> tuple[int, int] | None:
    """Return the characters [start, end) of the first gold answer; None where it is not found.

    It is looked for in the words (between white space) that the stated characters touch, blanks
    collapsed, as in the original; of several places the one nearest to the stated one counts. (A
    text without blanks is one word.) If it is not there, the place may have been counted in bytes
    or units of UTF-16, or be -1; then these places, and the nearest in the paragraph, are tried.
    """
    context, answer, start = example.context, example.answers[0], example.answer_start
    if not answer.strip():
        return None
    if start >= 0 and context[start : start + len(answer)] == answer:
        return start, start + len(answer)
    return _within_words(context, answer, start) or _anywhere(context, answer.strip(), start)


def _within_words(context: str, answer: str, start: int) -> tuple[int, int] | None:
    if not 0 <= start < len(context):
        return None
    begin, stop = start, min(start + len(answer), len(context))
    while begin > 0 and not context[begin - 1].isspace():
        begin -= 1
    while stop < len(context) and not context[stop].isspace():
        stop += 1
    words = answer.split()
    places = _occurrences(context, answer.strip(), begin, stop)
    if places:
        found = min(places, key=lambda place: abs(place - start))
        return found, found + len(answer.strip())
    # Blanks may differ: look for the words with any white space between.
    if " ".join(words) in " ".join(context[begin:stop].split()):
        return begin, stop
    return None


def _anywhere(context: str, answer: str, start: int) -> tuple[int, int] | None:
    """Return the characters of the best place of an answer in the paragraph, blanks collapsed."""
    collapsed, answer = (" ".join(text.split()) for text in (context, answer))
    blanks = list(itertools.accumulate(map(str.isspace, collapsed)))
    filled = [place for place, char in enumerate(context) if not char.isspace()]

    def character(place: int) -> int:
        return filled[place - blanks[place]]

    counted = []  # the stated place, if it counts bytes or units of 16 bits
    for encoding, size in (("utf-8", 1), ("utf-16-le", 2)):
        before = context.encode(encoding, "surrogatepass")[: size * max(start, 0)]
        counted.append(len(before.decode(encoding, "ignore")))

    def worth(place: tuple[int, int]):
        begin, stop = place
        is_part = context[begin - 1 : begin].isalnum() or context[stop : stop + 1].isalnum()
        return begin not in counted, is_part, abs(begin - start)

    found = _occurrences(collapsed, answer, 0, len(collapsed))
    places = [(character(place), character(place + len(answer) - 1) + 1) for place in found]
    return min(places, key=worth, default=None)


def is_moved(example: SquadExample) -> bool:
    """Return whether the first answer is found at another place than the stated one."""
    found = find_answer(example)
    start = example.answer_start
    leading = len(example.answers[0]) - len(example.answers[0].lstrip())
    return found is not None and found[0] not in (start, start + leading)


def _occurrences(context: str, answer: str, begin: int, stop: int) -> list[int]:
    places, place = [], context.find(answer, begin, stop)
    while place >= 0:
        places.append(place)
        place = context.find(answer, place + 1, stop)
    return places


def _example(question: dict, context, name: str, where: str) -> SquadExample:
    """Return the example of a question, after a check of every field's type."""
    id = str(field(question, "id", (str, int), where))
    where = f"{name} question {id}"
    text = field(question, "question", str, where)
    field({"context": context}, "context", str, where)
    impossible = _is_impossible(question, where)
    given = question.get("answers")
    answers = None if given is None else _answers(given, where)
    if impossible:
        if answers:
            raise UserError(f"{where}: is_impossible is true, and there are answers")
        return SquadExample(id, text, context, ())
    if answers == [] and impossible is False:
        answers = None  # it has an answer, but not in this file
    if answers is None:
        return SquadExample(id, text, context)
    start = answers[0][1] if answers else -1
    return SquadExample(id, text, context, tuple(text for text, _ in answers), start)


def _is_impossible(question: dict, where: str) -> bool | None:
    """Return the field, which tables hold as text; None where the question lacks it."""
    value = question.get("is_impossible")
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    return None if value is None else field(question, "is_impossible", bool, where)


def _answers(given, where: str) -> list[tuple[str, int]]:
    """Return (text, character) of each answer, from SQuAD's list or the two lists of `datasets`.

    The character is -1 where none is stated.
    """
    if isinstance(given, dict):
        texts = list_of(given, "text", str, f"{where}: answers")
        stated = given.get("answer_start") or [None] * len(texts)
        stated = list_of({"answer_start": stated}, "answer_start", (int, type(None)), where)
        starts = [-1 if start is None else start for start in stated]
        if len(texts) != len(starts):
            raise UserError(f"{where}: answers: {len(texts)} text and {len(starts)} answer_start")
        return list(zip(texts, starts, strict=True))
    answers = list_of({"answers": given}, "answers", dict, where)
    return [
        (
            field(answer, "text", str, f"{where}: answers[{index}]"),
            -1
            if answer.get("answer_start") is None
            else field(answer, "answer_start", int, f"{where}: answers[{index}]"),
        )
        for index, answer in enumerate(answers)
    ]


def window_at_answer(
    example_id: str, answer: tuple[int, int], sentences: np.ndarray, length: int, room: int
) -> int:
    """Return the first token of the one window that is kept (`context="answer_sentence"`).

    The window holds the whole sentence of the answer and as many neighbours as fit. It begins at
    that sentence or at one before it, drawn by a hash of the question's id; otherwise a place in
    the window would tell the answer. A sentence longer than the window is cut on either side, again
    by the hash.

    Args:
      answer: first and last token of the answer.
      sentences: first token of each sentence, ascending, int [sentences].
      length: tokens of the paragraph.
      room: tokens of a window.
    """
    if length <= room:
        return 0
    first, last = answer
    sentence = max(0, int(np.searchsorted(sentences, first, side="right")) - 1)
    after = int(np.searchsorted(sentences, last, side="right"))
    end = int(sentences[after]) if after < len(sentences) else length
    starts = [int(start) for start in sentences[: sentence + 1] if end - start <= room]
    if not starts:
        starts = range(max(int(sentences[sentence]), last + 1 - room), first + 1) or [first]
    return starts[zlib.crc32(example_id.encode("utf-8", "surrogatepass")) % len(starts)]


@functools.lru_cache(maxsize=4)  # the questions of a paragraph follow each other
def sentence_starts(text: str) -> tuple[int, ...]:
    """Return the first character of each sentence of an English paragraph."""
    from data_prep.corpus.sentence_splitter import split_sentences

    # The splitter changes only white space.
    places = [place for place, char in enumerate(text) if not char.isspace()]
    starts, seen = [], 0
    for sentence in split_sentences(text):
        starts.append(places[seen])
        seen += sum(map(len, sentence.split()))
    return tuple(starts)


def token_span(answer: tuple[int, int] | None, starts, ends) -> tuple[int, int] | None:
    """Return the first and the last token that share a character with an answer, or None."""
    begin, stop = answer or (0, 0)
    touched = np.flatnonzero((ends > begin) & (starts < stop))
    return (int(touched[0]), int(touched[-1])) if len(touched) else None


class LastContext:
    """The pieces of the last paragraph, kept for its further questions."""

    def __init__(self):
        self.context, self.tokenizer, self._pieces = "", None, ([], None, None)

    def encode(self, context: str, tokenizer) -> tuple[list[int], np.ndarray, np.ndarray]:
        """Return (ids, first characters, ends) of a paragraph's tokens."""
        if self.tokenizer is not tokenizer or self.context != context:
            ids, offsets = tokenizer.encode_with_offsets(context)
            places = np.array(offsets, np.int64).reshape(-1, 2)
            self.context, self.tokenizer = context, tokenizer
            self._pieces = ids, places[:, 0], places[:, 1]
        return self._pieces

    def __reduce__(self):
        # A worker process has a tokenizer of its own.
        return LastContext, ()
