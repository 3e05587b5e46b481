"""SQuAD's JSON files, and where in the paragraph an answer is."""

import dataclasses
import json
import os

from official_bert.errors import UserError


@dataclasses.dataclass(frozen=True)
class SquadExample:
    """`answers`: the gold texts, none for an unanswerable question; None where they are unknown.
    `answer_start`: character where the first of them begins, -1 without one."""

    id: str
    question: str
    context: str
    answers: tuple[str, ...] | None = None
    answer_start: int = -1


def read(path: str) -> list[SquadExample]:
    """All questions of a file, in its order.

    Raises:
      UserError: not JSON, not UTF-8, or not SQuAD's structure.
    """
    if not os.path.getsize(path):
        raise UserError(f"{path} is empty")
    try:
        with open(path, encoding="utf-8-sig") as file:
            articles = json.load(file)["data"]
        return [
            _example(question, paragraph["context"])
            for article in articles
            for paragraph in article["paragraphs"]
            for question in paragraph["qas"]
        ]
    except json.JSONDecodeError as error:
        raise UserError(f"{path} line {error.lineno}: not valid JSON ({error.msg})") from None
    except UnicodeDecodeError as error:
        with open(path, "rb") as file:
            line = file.read(error.start).count(b"\n") + 1
        raise UserError(f"{path} line {line}: not UTF-8; convert the file to UTF-8") from None
    except (KeyError, TypeError) as error:
        raise UserError(
            f"{path}: not in SQuAD's format (data, paragraphs, context, qas, id, question): {error}"
        ) from None


def find_answer(example: SquadExample) -> tuple[int, int] | None:
    """Characters of the first gold answer.

    As in the original, the whitespace-separated words that the stated characters touch must contain
    the answer, blanks collapsed; an answer stated some characters off, within those words, is
    found.
    """
    context, answer, start = example.context, example.answers[0], example.answer_start
    if context[start : start + len(answer)] == answer and answer.strip():
        return start, start + len(answer)
    if not answer.strip() or not 0 <= start < len(context):
        return None
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


def _example(question: dict, context: str) -> SquadExample:
    given = question.get("answers")
    if given is None:
        return SquadExample(str(question["id"]), question["question"], context)
    answers = [] if question.get("is_impossible") else given
    return SquadExample(
        str(question["id"]),
        question["question"],
        context,
        tuple(answer["text"] for answer in answers),
        answers[0]["answer_start"] if answers else -1,
    )
