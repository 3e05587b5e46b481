"""From start and end scores to answers: the n best spans of a question, and when to say nothing.

The rules of the paper (section 4.2, 4.3) and the original `run_squad`: a span starts where its
token has most context, is at most `max_answer_length` tokens long, and scores start + end; the
spans of all windows compete. For version 2.0 the empty answer scores start + end at [CLS], the
lowest over the windows, and wins where it exceeds the best span by more than the threshold.
"""

import collections

import numpy as np

NOTHING = "empty"  # what the original writes where it finds no span
Span = collections.namedtuple("Span", "start_logit end_logit text start_char end_char")


def n_best(
    context: str, windows: list[tuple[dict, np.ndarray, np.ndarray]], n: int, max_answer_length: int
) -> list[Span]:
    """Return the best spans with different texts, the best first.

    Args:
      windows: (feature, start_logits, end_logits) of each window of the question.
    """
    candidates = []
    for feature, start_logits, end_logits in windows:
        first, count = feature["context_start"], len(feature["token_starts"])
        starts, ends = start_logits[first : first + count], end_logits[first : first + count]
        # The original looks at the n best starts and ends of the whole window, question included.
        best_starts = _best(start_logits[: first + count + 1], n) - first
        best_ends = _best(end_logits[: first + count + 1], n) - first
        for start in best_starts:
            if not 0 <= start < count or not feature["is_max_context"][start]:
                continue
            for end in best_ends:
                if start <= end < min(count, start + max_answer_length):
                    candidates.append(
                        (float(starts[start]), float(ends[end]), feature, int(start), int(end))
                    )
    candidates.sort(key=lambda candidate: -(candidate[0] + candidate[1]))
    spans, seen = [], set()
    for start_logit, end_logit, feature, start, end in candidates:
        begin, stop = int(feature["token_starts"][start]), int(feature["token_ends"][end])
        text = " ".join(context[begin:stop].split())
        if text and text not in seen:
            seen.add(text)
            spans.append(Span(start_logit, end_logit, text, begin, stop))
        if len(spans) == n:
            break
    return spans


def answer(
    id: str,
    context: str,
    windows: list[tuple[dict, np.ndarray, np.ndarray]],
    n: int,
    max_answer_length: int,
    may_be_null: bool,
    threshold: float,
) -> dict:
    """Return the prediction for one question.

    Returns:
      {"id", "text" ("" without an answer), "start", "end" (characters; -1 without an answer),
      "probability", "nbest": list of {"text", "probability", "start_logit", "end_logit"}, as the
      original writes it}, and for version 2.0 "null_odds" and "best_text", the best non-empty
      answer.
    """
    spans = n_best(context, windows, n, max_answer_length)
    best = spans[0] if spans else None
    entries = list(spans)
    null = None
    if may_be_null:
        # It takes one of the n places where it ranks among them, else one more, as in the original.
        starts_and_ends = [(float(start[0]), float(end[0])) for _, start, end in windows]
        null = Span(*min(starts_and_ends, key=sum), "", -1, -1)
        entries.append(null)
        entries.sort(key=lambda span: -(span.start_logit + span.end_logit))
        if entries[-1] is not null:
            del entries[n:]
    if not spans:
        # The list is never empty, as in the original: this span stands for "nothing found".
        entries.insert(0, Span(0.0, 0.0, NOTHING, -1, -1))
    probabilities = shares([span.start_logit + span.end_logit for span in entries])
    prediction = {
        "id": id,
        "nbest": [
            {
                "text": span.text,
                "probability": float(probability),
                "start_logit": span.start_logit,
                "end_logit": span.end_logit,
            }
            for span, probability in zip(entries, probabilities, strict=True)
        ],
    }
    if may_be_null:
        prediction |= {
            "null_odds": _null_odds(null, best),
            "best_text": best.text if best else "",
            "best_place": (best.start_char, best.end_char) if best else (-1, -1),
        }
        return decide(prediction, threshold)
    return prediction | {
        "text": best.text if best else "",
        "start": best.start_char if best else -1,
        "end": best.end_char if best else -1,
        "probability": prediction["nbest"][0]["probability"],
    }


def official(predictions: list[dict], name: str, may_be_null: bool) -> dict[str, dict]:
    """Return {file name: {question id: value}}, as the original writes its files.

    Args:
      predictions: results of `answer`.
      name: of the file of answers.
      may_be_null: whether they are of version 2.0.
    """
    nothing = "" if may_be_null else NOTHING
    contents = {
        name: {p["id"]: p["text"] or nothing for p in predictions},
        f"nbest_{name}": {p["id"]: p["nbest"] for p in predictions},
    }
    if may_be_null:
        odds = "null_odds.json" if name == "predictions.json" else f"null_odds_{name}"
        contents[odds] = {p["id"]: p["null_odds"] for p in predictions}
    return contents


def first_words(texts: list[str], or_nothing: bool) -> list[list[str]]:
    """Return answers that need no model: each text's first word, its first two, and so on.

    With `or_nothing` the last list answers nothing.
    """
    lengths = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30)
    candidates = [[" ".join(text.split()[:length]) for text in texts] for length in lengths]
    return candidates + [[""] * len(texts)] * or_nothing


def decide(prediction: dict, threshold: float) -> dict:
    """Return a version 2.0 prediction, decided again with another threshold."""
    is_null = prediction["null_odds"] > threshold
    text = "" if is_null else prediction["best_text"]
    begin, stop = (-1, -1) if is_null else prediction["best_place"]
    probability = next((e["probability"] for e in prediction["nbest"] if e["text"] == text), 0.0)
    return prediction | {"text": text, "start": begin, "end": stop, "probability": probability}


def shares(scores) -> np.ndarray:
    """Return the softmax over the last axis, float64."""
    scores = np.asarray(scores, np.float64)
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


def _null_odds(null: Span, best: Span | None) -> float:
    # Without a span it is compared with the `NOTHING` entry of the n-best list, of scores 0.
    return null.start_logit + null.end_logit - (best.start_logit + best.end_logit if best else 0.0)


def _best(logits: np.ndarray, n: int) -> np.ndarray:
    """Return indices of the n highest, the highest first, the earlier first at a tie."""
    return np.argsort(-np.asarray(logits), kind="stable")[:n]
