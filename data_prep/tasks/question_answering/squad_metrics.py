"""Exact match and F1 of SQuAD 1.1 and 2.0, by the definition of the official evaluation.

Answers are compared after `normalize`. Each question's score is the best over its gold answers.
`predictions` and `golds` map question ids to a text and to a list of texts; a question whose list
is empty is unanswerable.

SQuAD counts words between blanks, so in Chinese, Japanese or Thai its F1 is exact match. `by`
chooses the units:

    words       as SQuAD's script: lower case, no ASCII punctuation, no English articles
    characters  as DRCD and, for Chinese, MLQA: every character of a script without blanks is a
                word, no punctuation of any script
    cmrc2018    as CMRC 2018: ideographs and words without its marks, and F1 of their longest
                common run; other words are cut at blanks and marks, where its script asks NLTK
"""

import collections
import difflib
import re
import string
import unicodedata

BY = {
    "words": "words between blanks, as SQuAD's script",
    "characters": "characters where a script has no blanks, as DRCD and MLQA",
    "cmrc2018": "the longest common run of characters and words, as CMRC 2018",
}
_LAST_DIGITS = 1e-5  # by which scores of a text differ in other batches, of 1 or of their size
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
# Ideographs, kana, and Thai, Lao, Tibetan, Burmese and Khmer.
_NO_BLANKS = "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_NO_BLANKS += "\U00020000-\U0003ffff\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff"
_CHARACTERS = re.compile(f"[{_NO_BLANKS}]|[^\\s{_NO_BLANKS}]+")
_CMRC_MARKS = set("-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
_CMRC_UNITS = re.compile(r"[\u4e00-\u9fa5]|[^\W\u4e00-\u9fa5]+|[^\w\s]")


def normalize(text: str, by: str = "words") -> str:
    """Return the form of a text that is compared.

    By "words" it is in lower case, without ASCII punctuation, articles and repeated blanks.
    """
    text = text.lower()
    if by == "words":
        return " ".join(_ARTICLES.sub(" ", text.translate(_PUNCTUATION)).split())
    if by == "cmrc2018":
        return "".join(letter for letter in text.strip() if letter not in _CMRC_MARKS)
    kept = (c for c in text.translate(_PUNCTUATION) if not unicodedata.category(c).startswith("P"))
    return " ".join(_CHARACTERS.findall("".join(kept)))


def exact_match(predicted: str, gold: str, by: str = "words") -> float:
    return float(normalize(predicted, by) == normalize(gold, by))


def f1(predicted: str, gold: str, by: str = "words") -> float:
    """Return F1 of the overlap of two bags of words.

    Two empty answers agree; an empty one and another do not.
    """
    predicted_words, gold_words = _units(predicted, by), _units(gold, by)
    if not predicted_words or not gold_words:
        return float(predicted_words == gold_words)
    if by == "cmrc2018":
        runs = difflib.SequenceMatcher(None, predicted_words, gold_words, autojunk=False)
        same = runs.find_longest_match().size
    else:
        common = collections.Counter(predicted_words) & collections.Counter(gold_words)
        same = sum(common.values())
    if not same:
        return 0.0
    precision, recall = same / len(predicted_words), same / len(gold_words)
    return 2 * precision * recall / (precision + recall)


def warning(answers: list[str]) -> str:
    """Return a warning if F1 by words does not suit the script of the answers; "" if it does."""
    count = sum(re.search(f"[{_NO_BLANKS}]", answer) is not None for answer in answers)
    if 2 * count <= len(answers):
        return ""
    return (
        "most answers are of a script without blanks, where F1 by words is exact match; "
        "--task_options.f1_by=characters counts as DRCD, =cmrc2018 as CMRC"
    )


def _units(text: str, by: str) -> list[str]:
    text = normalize(text, by)
    return _CMRC_UNITS.findall(text) if by == "cmrc2018" else text.split()


def question_scores(
    predictions: dict[str, str], golds: dict[str, list[str]], by: str = "words"
) -> dict[str, tuple[float, float]]:
    """Return {question id: (exact match, F1)} of the questions that have a prediction.

    Gold answers that normalise to nothing do not count, as in the official script; a question
    without any other has the empty text as its answer.
    """
    scores = {}
    for question, answers in golds.items():
        if question not in predictions:
            continue
        answers = [answer for answer in answers if normalize(answer, by)] or [""]
        predicted = predictions[question]
        scores[question] = (
            max(exact_match(predicted, answer, by) for answer in answers),
            max(f1(predicted, answer, by) for answer in answers),
        )
    return scores


def evaluate_v1(
    predictions: dict[str, str], golds: dict[str, list[str]], by: str = "words"
) -> dict[str, float]:
    """Return {"f1", "exact_match"}, 0 to 1; a question left out of the predictions is wrong.

    Version 1.1 gives no credit for an empty answer: every question has one.
    """
    total = max(len(golds), 1)
    scores = [
        (
            max(exact_match(predictions[question], answer, by) for answer in answers),
            max(_f1_v1(predictions[question], answer, by) for answer in answers),
        )
        for question, answers in golds.items()
        if question in predictions and answers
    ]
    return {
        "f1": sum(score[1] for score in scores) / total,
        "exact_match": sum(score[0] for score in scores) / total,
    }


def evaluate_v2(
    predictions: dict[str, str], golds: dict[str, list[str]], by: str = "words"
) -> dict[str, float]:
    """Return f1 and exact_match, also of answerable and of unanswerable questions.

    Their names begin with has_answer_ and no_answer_.

    A question left out of the predictions is left out of the means.
    """
    scores = question_scores(predictions, golds, by)
    groups = {
        "": list(scores),
        "has_answer_": [question for question in scores if golds[question]],
        "no_answer_": [question for question in scores if not golds[question]],
    }
    result = {}
    for prefix, questions in groups.items():
        if questions:
            for column, name in ((1, "f1"), (0, "exact_match")):
                values = [scores[question][column] for question in questions]
                result[prefix + name] = sum(values) / len(values)
    return result


def best_threshold(
    answers: dict[str, str],
    null_odds: dict[str, float],
    golds: dict[str, list[str]],
    metric: str = "f1",
    by: str = "words",
) -> tuple[float, float]:
    """Return (best score, threshold); a question is unanswered if its null odds are above it.

    The threshold is half way to the next odds, since other batches, formats and precisions change
    the last digits of odds.

    Args:
      answers: the best non-empty answer to each question, whatever its odds.
      null_odds: how much the empty answer outscores it.

    The search goes through the questions in order of their odds. Answering one more question gains
    its score if it has an answer, and loses 1 if it has none. A threshold below all odds never
    answers.
    """
    column = {"exact_match": 0, "f1": 1}[metric]
    scores = question_scores(answers, golds, by)
    order = sorted(scores, key=lambda question: null_odds[question])
    if not order:
        return 0.0, 0.0
    current = best = float(sum(not golds[question] for question in order))
    threshold = null_odds[order[0]] - 1.0
    following = [*(null_odds[question] for question in order[1:]), null_odds[order[-1]] + 2.0]
    for question, upper in zip(order, following, strict=True):
        if golds[question]:
            current += scores[question][column]
        elif answers[question]:
            current -= 1.0
        # Questions with equal odds are answered together: those of one text differ by last digits.
        odds = null_odds[question]
        if current > best and upper - odds > _LAST_DIGITS * max(1.0, abs(odds)):
            best, threshold = current, odds / 2 + upper / 2
    return best / len(order), threshold


def _f1_v1(predicted: str, gold: str, by: str) -> float:
    # The script of version 1.1 divides by the overlap: two empty answers score 0, not 1.
    return f1(predicted, gold, by) if normalize(predicted, by) else 0.0
