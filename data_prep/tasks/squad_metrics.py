"""Exact match and F1 of SQuAD 1.1 and 2.0, from the definition of the official evaluation.

Answers are compared after `normalize`. Each question's score is the best over its gold answers.
`predictions` and `golds` map question ids to a text and to a list of texts; a question whose list
is empty is unanswerable.
"""

import collections
import re
import string

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalize(text: str) -> str:
    """Lower case, without ASCII punctuation, articles and repeated blanks."""
    without_punctuation = text.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", without_punctuation).split())


def exact_match(predicted: str, gold: str) -> float:
    return float(normalize(predicted) == normalize(gold))


def f1(predicted: str, gold: str) -> float:
    """Overlap of the two bags of words. Two empty answers agree, one empty answer never does."""
    predicted_words, gold_words = normalize(predicted).split(), normalize(gold).split()
    if not predicted_words or not gold_words:
        return float(predicted_words == gold_words)
    common = collections.Counter(predicted_words) & collections.Counter(gold_words)
    same = sum(common.values())
    if not same:
        return 0.0
    precision, recall = same / len(predicted_words), same / len(gold_words)
    return 2 * precision * recall / (precision + recall)


def question_scores(
    predictions: dict[str, str], golds: dict[str, list[str]]
) -> dict[str, tuple[float, float]]:
    """{question id: (exact match, F1)} of the questions that have a prediction.

    As officially, gold answers that normalise to nothing do not count; a question left without any
    has the empty text for its answer.
    """
    scores = {}
    for question, answers in golds.items():
        if question not in predictions:
            continue
        answers = [answer for answer in answers if normalize(answer)] or [""]
        predicted = predictions[question]
        scores[question] = (
            max(exact_match(predicted, answer) for answer in answers),
            max(f1(predicted, answer) for answer in answers),
        )
    return scores


def evaluate_v1(predictions: dict[str, str], golds: dict[str, list[str]]) -> dict[str, float]:
    """{"f1", "exact_match"}, 0 to 1; a question left out of the predictions is wrong.

    Version 1.1 gives no credit for an empty answer: every question has one.
    """
    total = max(len(golds), 1)
    scores = [
        (
            max(exact_match(predictions[question], answer) for answer in answers),
            max(_f1_v1(predictions[question], answer) for answer in answers),
        )
        for question, answers in golds.items()
        if question in predictions and answers
    ]
    return {
        "f1": sum(score[1] for score in scores) / total,
        "exact_match": sum(score[0] for score in scores) / total,
    }


def evaluate_v2(predictions: dict[str, str], golds: dict[str, list[str]]) -> dict[str, float]:
    """f1, exact_match, and both for answerable (has_answer_) and unanswerable (no_answer_)
    questions.

    A question left out of the predictions is left out of the means.
    """
    scores = question_scores(predictions, golds)
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
) -> tuple[float, float]:
    """(best score, threshold): a question is unanswered where its null odds are above the
    threshold.

    Args:
      answers: the best non-empty answer to each question, whatever its odds.
      null_odds: how much the empty answer outscores it.

    The search goes through the questions in order of their odds: answering one more gains its score
    if it has an answer, and loses 1 if it has none. Never answering is a threshold below all odds.
    """
    column = {"exact_match": 0, "f1": 1}[metric]
    scores = question_scores(answers, golds)
    order = sorted(scores, key=lambda question: null_odds[question])
    if not order:
        return 0.0, 0.0
    current = best = float(sum(not golds[question] for question in order))
    threshold = null_odds[order[0]] - 1.0
    for index, question in enumerate(order):
        if golds[question]:
            current += scores[question][column]
        elif answers[question]:
            current -= 1.0
        # Questions with equal odds are answered together.
        last = index + 1 == len(order)
        if current > best and (last or null_odds[order[index + 1]] > null_odds[question]):
            best, threshold = current, null_odds[question]
    return best / len(order), threshold


def _f1_v1(predicted: str, gold: str) -> float:
    # The script of version 1.1 divides by the overlap: two answers of no words score 0, not 1.
    return f1(predicted, gold) if normalize(predicted) else 0.0
