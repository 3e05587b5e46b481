"""SQuAD's JSON files, and where in the paragraph an answer is."""

import dataclasses
import json
import os

from official_bert.errors import UserError
from official_bert.json_files import parse_json


@dataclasses.dataclass(frozen=True)
class SquadExample:
    """`answers`: the gold texts, none for an unanswerable question; None where they are unknown.
    `answer_start`: character where the first of them begins, -1 without one."""

    id: str
    question: str
    context: str
    answers: tuple[str, ...] | None = None
    answer_start: int = -1


def read(path: str, need_answers: bool = False) -> list[SquadExample]:
    """All questions of a file, in its order.

    Args:
      path: a JSON file.
      need_answers: whether a question of unknown answers is an error.

    Raises:
      UserError: not JSON, not UTF-8, or not SQuAD's structure.
    """
    if not os.path.getsize(path):
        raise UserError(f"{path} is empty")
    try:
        with open(path, "rb") as file:
            articles = parse_json(file.read(), path)["data"]
        examples = [
            _example(question, context, path)
            for context, questions in _paragraphs(articles, path)
            for question in questions
        ]
    except (AttributeError, KeyError, TypeError) as error:
        raise UserError(
            f"{path}: not in SQuAD's format (data, paragraphs, context, qas, id, question): {error}"
        ) from None
    unknown = [example.id for example in examples if example.answers is None]
    if need_answers and unknown:
        raise UserError(
            f"{path} question {unknown[0]} has no answers ({len(unknown)} questions have none); "
            "only a test file may lack them"
        )
    return examples


def from_tfds(row: dict) -> SquadExample:
    """The example that `read` gives for the same question, from a row of TFDS."""
    answers = zip(row["answers"]["text"], row["answers"]["answer_start"], strict=True)
    question = {
        "id": row["id"].decode("utf-8"),
        "question": row["question"].decode("utf-8"),
        "answers": [{"text": t.decode("utf-8"), "answer_start": int(s)} for t, s in answers],
        "is_impossible": bool(row.get("is_impossible", False)),
    }
    return _example(question, row["context"].decode("utf-8"), "TFDS")


def find_answer(example: SquadExample) -> tuple[int, int] | None:
    """Characters of the first gold answer.

    As in the original, the whitespace-separated words that the stated characters touch must contain
    the answer, blanks collapsed; an answer stated some characters off, within those words, is
    found.
    """
    context, answer, start = example.context, example.answers[0], example.answer_start
    if not answer.strip() or not 0 <= start < len(context):
        return None
    if context[start : start + len(answer)] == answer:
        return start, start + len(answer)
    begin, stop = start, min(start + len(answer), len(context))
    while begin > 0 and not context[begin - 1].isspace():
        begin -= 1
    while stop < len(context) and not context[stop].isspace():
        stop += 1
    words = answer.split()
    found = context.find(answer.strip(), begin, stop)
    if found >= 0:
        return found, found + len(answer.strip())
    # Blanks may differ: look for the words with any white space between.
    if " ".join(words) in " ".join(context[begin:stop].split()):
        return begin, stop
    return None


def _paragraphs(articles: list, path: str):
    """(context, questions) of each paragraph."""
    for number, article in enumerate(articles, 1):
        for index, paragraph in enumerate(article["paragraphs"], 1):
            where = f"{path} article {number} paragraph {index}"
            yield _checked(paragraph["context"], str, f"{where}: context"), paragraph["qas"]


def _example(question: dict, context: str, path: str) -> SquadExample:
    id = str(question["id"])
    where = f"{path} question {id}"
    text, given = _checked(question["question"], str, f"{where}: question"), question.get("answers")
    if given is None:
        return SquadExample(id, text, context)
    answers = [] if question.get("is_impossible") else _checked(given, list, f"{where}: answers")
    texts = [_checked(answer["text"], str, f"{where}: text of an answer") for answer in answers]
    start = answers[0]["answer_start"] if answers else -1
    return SquadExample(
        id, text, context, tuple(texts), _checked(start, int, f"{where}: answer_start")
    )


def _checked(value, kind: type, where: str):
    if not isinstance(value, kind):
        expected = {str: "a string", int: "a whole number", list: "a list"}[kind]
        raise UserError(f"{where} is {json.dumps(value)[:40]}, expected {expected}")
    return value
