"""Questions from SQuAD's JSON or from rows, where in the paragraph an answer is, and the one window
that is kept by it."""

import collections
import dataclasses
import functools
import itertools
import zlib
from collections.abc import Iterator

import numpy as np

from data_prep.tasks.files import formats
from official_bert.common.errors import UserError
from official_bert.common.json_files import field, list_of


@dataclasses.dataclass(frozen=True)
class SquadExample:
    """`answers`: the gold texts, none for an unanswerable question; None where they are unknown.
    `answer_start`: character where the first of them begins, -1 without one. `title`: of the
    article, "" where it is unknown."""

    id: str
    question: str
    context: str
    answers: tuple[str, ...] | None = None
    answer_start: int = -1
    title: str = dataclasses.field(default="", repr=False, compare=False)


WANTED = (("paragraphs",), ("question", "context"))
_OPTIONAL = ("answers", "is_impossible", "title")
_WHAT = "which columns hold question and context, and is it SQuAD's format (data, paragraphs, qas)?"


def read(path: str, need_answers: bool = False) -> list[SquadExample]:
    """Return all questions of a file, in its order.

    Args:
      path: SQuAD's JSON, or rows of a format of `formats`, with a question and its answers each, as
        Hugging Face's `datasets` writes them.
      need_answers: whether a question of unknown answers is an error.

    Raises:
      UserError: it cannot be read, a field is missing or of another type, or what it says of a
        question contradicts itself.
    """
    table = formats.detect_format(path, WANTED, optional=_OPTIONAL, what=_WHAT)
    examples = [example for _, example in rows_of(table)]
    unknown = [example.id for example in examples if example.answers is None]
    if need_answers and unknown:
        raise UserError(
            f"{path} question {unknown[0]} has no answers ({len(unknown)} questions have none), "
            'which are read from answers: [{"text": ..., "answer_start": ...}]; only a test file '
            "may lack them"
        )
    return examples


def rows_of(table: formats.Table) -> Iterator[tuple[dict, SquadExample]]:
    """Yield (row, example) of each question, a row of an article's being its question with its
    context.

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
    """Return the examples with an id each of their own, and how many had one that was there before.

    Scores and files of answers go by id. Files of two languages, or ids that begin anew in each
    article, repeat them: the second "7" becomes "7#2".
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
    """Return the example that `read` gives for the same question, from a row of TFDS."""
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
    """Return characters of the first gold answer.

    The whitespace-separated words that the stated characters touch must contain the answer, blanks
    collapsed, as in the original; an answer stated some characters off, within those words, is
    found at the place nearest to the stated one (a text without blanks is one word). Else it is
    where bytes or the units of UTF-16 were counted, or at the nearest place of the paragraph: some
    tools count otherwise, or state -1.
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
    """Return the characters of the best place of an answer, blanks collapsed."""
    collapsed, answer = (" ".join(text.split()) for text in (context, answer))
    blanks = list(itertools.accumulate(map(str.isspace, collapsed)))
    filled = [place for place, char in enumerate(context) if not char.isspace()]

    def character(place: int) -> int:
        return filled[place - blanks[place]]

    counted = []  # the stated place, where bytes or units of 16 bits were counted
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
    """Return whether the first answer is found, and not where it is stated to be."""
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
    """Return the example of a question, every field of which has its type."""
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
        answers = None  # it has an answer, which is not here
    if answers is None:
        return SquadExample(id, text, context)
    start = answers[0][1] if answers else -1
    return SquadExample(id, text, context, tuple(text for text, _ in answers), start)


def _is_impossible(question: dict, where: str) -> bool | None:
    """None where the question does not say it. Tables hold it as a text."""
    value = question.get("is_impossible")
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    return None if value is None else field(question, "is_impossible", bool, where)


def _answers(given, where: str) -> list[tuple[str, int]]:
    """Return (text, character) of each answer, from SQuAD's list of them or from `datasets`' two
    lists; the character is -1 where none is stated."""
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
    """Return first token of the one window that is kept of a paragraph
    (`context="answer_sentence"`).

    It holds the answer's sentence whole and as many neighbours as fit: it begins at that sentence
    or at one before it. Which one is drawn by a hash of the question's id, or the answer's place in
    the window would say where it is. A sentence longer than the window is cut on either side, again
    by the hash.

    Args:
      answer: its first and last token.
      sentences: first token of each sentence, rising, int [sentences].
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
    """Return the character where each sentence of an English paragraph begins."""
    from data_prep.corpus.sentence_splitter import split_sentences

    # The splitter changes white space and nothing else.
    places = [place for place, char in enumerate(text) if not char.isspace()]
    starts, seen = [], 0
    for sentence in split_sentences(text):
        starts.append(places[seen])
        seen += sum(map(len, sentence.split()))
    return tuple(starts)


def token_span(answer: tuple[int, int] | None, starts, ends) -> tuple[int, int] | None:
    """Return first and last token of an answer's characters: those that share one with it."""
    begin, stop = answer or (0, 0)
    touched = np.flatnonzero((ends > begin) & (starts < stop))
    return (int(touched[0]), int(touched[-1])) if len(touched) else None


class LastContext:
    """The pieces of one paragraph, remembered for the questions that follow it."""

    def __init__(self):
        self.context, self.tokenizer, self._pieces = "", None, ([], None, None)

    def encode(self, context: str, tokenizer) -> tuple[list[int], np.ndarray, np.ndarray]:
        """Return (ids, characters where they start, where they end)."""
        if self.tokenizer is not tokenizer or self.context != context:
            ids, offsets = tokenizer.encode_with_offsets(context)
            places = np.array(offsets, np.int64).reshape(-1, 2)
            self.context, self.tokenizer = context, tokenizer
            self._pieces = ids, places[:, 0], places[:, 1]
        return self._pieces

    def __reduce__(self):
        # A worker process has a tokenizer of its own.
        return LastContext, ()
