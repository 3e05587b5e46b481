"""Answers of every head to texts, on every backend.

The texts are cut and packed here, and the model is asked for its scores. Exported models do the
same inside their graph (`served_model`), by the same rules; a test compares both.
"""

from typing import Any

import numpy as np

from official_bert import span_answers, window_pooling
from official_bert.common.errors import UserError
from official_bert.tokenization import sequences, word_groups
from official_bert.tokenization.base import text_list
from official_bert.tokenization.windows import beside_question, overlapping, pack_windows


def as_texts(texts, may_be_empty: bool = False) -> tuple[list[str], bool]:
    """Return the texts as a list, and whether a single text was given."""
    one = isinstance(texts, str)
    for index, text in enumerate(texts := text_list(texts, "texts")):
        if not may_be_empty and not text.strip():
            raise UserError(f"text {index} is empty; there is nothing to answer")
    return texts, one


def classes(outputs: list[dict], problem: str, labels: list[str]) -> list[dict]:
    """Return {"label", "probabilities"}, {"labels", "probabilities"} or {"value"} of each text.

    Args:
      outputs: those of `Answers`, one {name: array} for each text.
    """
    if problem == "regression":
        return [class_of(output["values"], problem, labels) for output in outputs]
    found = [class_of(output["probabilities"], problem, labels) for output in outputs]
    for answer in found:
        answer["probabilities"] = dict(zip(labels, answer["probabilities"], strict=True))
    return found


def class_of(row, problem: str, labels: list) -> dict:
    """Return the answer to one text as `classes` does, but with a list of probabilities.

    `row` holds the probabilities, or for a regression the value.
    """
    if problem == "regression":
        return {"value": float(row)}
    if problem == "single_label":
        answer = {"label": labels[int(np.argmax(row))]}
    else:
        answer = {"labels": [labels[i] for i in np.flatnonzero(row > 0.5)]}
    return {**answer, "probabilities": [float(p) for p in row]}


def window_vectors(tokenizer, ask, texts: list[str], pairs, settings, pooling: str):
    """Return the vectors [texts, H] of texts read in windows, and how many texts were cut.

    Further arguments are those of `spans`.

    Args:
      ask: function that returns the "vector" of each row.
      pairs: the second texts, or None.
      pooling: of `window_pooling`.
    """
    from keras import ops

    rows, counts, cut = [], [], 0
    for text, pair in zip(texts, pairs or [None] * len(texts), strict=True):
        ids = tokenizer.encode(text), None if pair is None else tokenizer.encode(pair)
        found, was_cut = pack_windows(
            tokenizer, *ids, settings.max_seq_length, settings.truncation, settings.windows,
            settings.window_overlap,
        )  # fmt: skip
        rows += found
        counts.append(len(found))
        cut += was_cut
    vectors = np.array([row["vector"] for row in ask(rows)])
    real = np.arange(max(counts)) < np.array(counts)[:, None]  # [texts, windows]
    spread = np.zeros((*real.shape, vectors.shape[1]), vectors.dtype)
    spread[real] = vectors
    pooled = window_pooling.pool(
        ops.convert_to_tensor(spread), ops.convert_to_tensor(real), pooling
    )
    return pooled, cut


def spans(tokenizer, ask, questions: list[str], contexts: list[str], settings) -> list[dict]:
    """Return {"answer", "start", "end", "probability"} for each question; no answer is "", -1, -1.

    Args:
      tokenizer: the model's.
      ask: function from rows of `sequences.pack` to the model's outputs, one {name: array} for
        each.
      questions, contexts: lists of equal length.
      settings: `ServingSettings`.
    """
    features = []
    for question, context in zip(questions, contexts, strict=True):
        query = tokenizer.encode(question)[: settings.max_query_length]
        ids, places = tokenizer.encode_with_offsets(context)
        passage = ids, *np.array(places, np.int64).reshape(-1, 2).T
        how = settings.max_seq_length, settings.doc_stride
        features.append([row for row, _ in beside_question(tokenizer, query, passage, *how)])
    outputs = ask([feature for of_one in features for feature in of_one])
    logits = ((output["start_logits"], output["end_logits"]) for output in outputs)
    found = []
    for context, of_one in zip(contexts, features, strict=True):
        windows = [(feature, *next(logits)) for feature in of_one]
        best = span_answers.answer(
            "", context, windows, settings.n_best_size, settings.max_answer_length,
            settings.allow_no_answer, settings.null_score_diff_threshold,
        )  # fmt: skip
        start, stop = best["start"], best["end"]
        nothing = start < 0 and not best.get("best_text")  # no span competes with the empty answer
        found.append(
            {
                "answer": context[start:stop] if start >= 0 else "",
                "start": start,
                "end": stop,
                "probability": 1.0 if nothing else float(best["probability"]),
            }
        )
    return found


def choices(tokenizer, ask, contexts: list[str], endings: list[list[str]], settings) -> list[dict]:
    """Return {"choice", "probabilities"} for each context and its list of endings; see `spans`."""
    firsts = [context for context, of_one in zip(contexts, endings, strict=True) for _ in of_one]
    seconds = [ending for of_one in endings for ending in of_one]
    rows = tokenizer.pack(firsts, seconds, settings.max_seq_length, settings.truncation)
    scores = np.array([row["score"] for row in ask(rows)], np.float64)
    found = []
    for of_one in np.split(scores, np.cumsum([len(of_one) for of_one in endings])[:-1]):
        shares = span_answers.shares(of_one).tolist()
        found.append({"choice": int(of_one.argmax()), "probabilities": shares})
    return found


def masked_words(tokenizer, ask, texts: list[str], longest: int) -> list[dict]:
    """Return {"text", "masks": [[{"word", "probability"}]]} for each text; see `Model.fill_mask`.

    Args:
      ask: function from rows with "masked_lm_positions" to "token_ids" and "probabilities".
      longest: most tokens of a row.
    """
    rows, mask, readable = [], tokenizer.special.mask, tokenizer.readable
    for index, text in enumerate(texts):
        if mask and mask not in text:
            raise UserError(f"text {index} has no {mask}")
        row = sequences.pack(tokenizer, tokenizer.encode_masked(text), None, longest)
        if row["truncated"]:
            count = len(tokenizer.encode_masked(text)) + 2
            raise UserError(f"text {index} has {count} tokens, the model {longest} positions")
        places = [i for i, id in enumerate(row["input_ids"]) if id == tokenizer.mask_id]
        rows.append({**row, "masked_lm_positions": places})
    found = []
    for text, row, output in zip(texts, rows, ask(rows), strict=True):
        masks = [
            [
                {"word": readable[i], "probability": float(p)}
                for i, p in zip(ids, shares, strict=True)
            ]
            for ids, shares, _ in zip(
                output["token_ids"],
                output["probabilities"],
                row["masked_lm_positions"],
                strict=False,
            )  # fmt: skip
        ]
        text, *behind = text.split(mask)
        for words, after in zip(masks, behind, strict=True):  # put the best word in each place
            if (word := words[0]["word"]).startswith("##"):
                text, word = text.rstrip(), word[2:]
            text += word + after
        found.append({"text": text, "masks": masks})
    return found


def taggings(tokenizer, ask, texts: list[str], settings) -> list[dict]:
    """Return {"words": [{"word", "label", "start", "end", "probability"}]} for each text; see
    `spans`."""
    parts = []
    for text in texts:
        ids, words = _words(tokenizer, text, settings.label_piece)
        windows = list(overlapping(tokenizer, None, ids, settings.max_seq_length))
        parts.append((words, len(ids), windows))
    outputs = iter(ask([row for *_, windows in parts for row, *_ in windows]))
    found = []
    for words, count, windows in parts:
        logits = np.zeros((count, len(settings.labels)))
        for _, window, owns in windows:
            logits[window][owns] = next(outputs)["logits"][1 : 1 + len(owns)][owns]
        for word in words:
            piece = word.pop("piece")
            if piece is None:
                word |= {"label": "", "probability": 0.0}
                continue
            shares = span_answers.shares(logits[piece])
            best = int(shares.argmax())
            word |= {"label": settings.labels[best], "probability": float(shares[best])}
        names = ("word", "label", "start", "end", "probability")
        found.append({"words": [{name: word[name] for name in names} for word in words]})
    return found


def _words(tokenizer, text: str, label_piece: str) -> tuple[list[int], list[dict[str, Any]]]:
    """Return the ids of a text's pieces, and its words: text, place, and piece with the label."""
    if tokenizer.kind == "word_piece":
        ids, spans = tokenizer.encode_with_offsets(text)
        firsts, counts, places = _places([tokenizer.vocab[i] for i in ids], spans)
    else:  # pieces may cross the ends of words, so words are cut first
        *_, places = _places(*word_groups.basic_words(text))
        # A blank precedes every word, as in training.
        encoded = [tokenizer.encode(f" {text[start:end]}") for start, end in places]
        ids, counts = [i for part in encoded for i in part], [len(part) for part in encoded]
        firsts = np.cumsum([0, *counts[:-1]]).tolist() if counts else []
    words = []
    for (start, end), first, count in zip(places, firsts, counts, strict=True):
        piece = first if label_piece == "first" else first + count - 1
        word = {"word": text[start:end], "start": start, "end": end}
        words.append({**word, "piece": piece if count else None})
    return list(ids), words


def _places(pieces: list[str], spans):
    """Return each word's first piece, its number of pieces, and its characters [start, end)."""
    firsts = word_groups.first_pieces(pieces, spans)
    # Without pieces there are no words, and the last end has no partner.
    words = [spans[i:j] for i, j in zip(firsts, [*firsts[1:], len(pieces)], strict=False)]
    places = [(word[0][0], max(end for _, end in word)) for word in words]
    return firsts, list(map(len, words)), places


def checked_pairs(head: str, texts: list[str], pairs) -> list:
    """Return the second texts of spans and choices as a list; of taggings an empty one.

    Raises:
      UserError: they are missing, of another number than the texts, or not texts.
    """
    needs = {"span": "a passage for each question", "tagging": "no pairs"}
    mismatch = UserError(f"this model takes {needs.get(head, 'choices for each context')}")
    if (pairs is None) != (head == "tagging"):
        raise mismatch
    pairs = [] if pairs is None else list(pairs)
    if head != "tagging" and len(pairs) != len(texts):
        raise UserError(f"{len(texts)} texts, but {len(pairs)} pairs; give each text its own")
    for pair in pairs:
        of_one = [pair] if head == "span" else pair
        if not isinstance(of_one, list | tuple) or not of_one:
            raise mismatch
        if not all(isinstance(text, str) for text in of_one):
            raise mismatch
    return pairs
