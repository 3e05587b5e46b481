"""Spans, choices and taggings of `predict` are those of the exported graph, to the character."""

import dataclasses
import random
import types

import numpy as np
import pytest
import served_models

from official_bert import (
    BertEncoder,
    BertMultipleChoice,
    BertSpan,
    BertTagger,
    UserError,
    span_answers,
)
from official_bert.export.settings import ServingSettings
from official_bert.predict import Model

WORDS = [
    *("the", "cat", "Dog", "sat.", "U.N.", "J.", "(here)!", "19-year,", "...", "n't", "'s", "a.b."),
    *("東京", "a東", "中。", "naïve", "é", "\U0001f600", "\u0378", "Σίσυφος", "ǅ", "“quoted”"),
    *("\n", "", "x" * 210),
]


def texts_of(seed, count=24):
    draw = random.Random(seed)
    return [
        "a " + " ".join(draw.choices(WORDS, k=draw.choice([0, 1, 5, 40]))) for _ in range(count)
    ]


@pytest.fixture
def pieces(tokenizer):
    return tokenizer


@pytest.fixture
def loaded(config, pieces):
    fitting = dataclasses.replace(
        config, vocab_size=max(50, len(pieces.vocab)), initializer_range=0.5
    ).padded_by(pieces)

    def make(kind, *labels, **settings):
        model = kind(BertEncoder(fitting, seed=0), *labels, seed=1)
        return Model.from_loaded(served_models.loaded(model, pieces, max_seq_length=24, **settings))

    return make


def served(model, **texts):
    pytest.importorskip("tensorflow")
    from tiny_served import Unsaved

    return Unsaved(model)(**texts)


@pytest.mark.parametrize("label_piece", ["first", "last"])
def test_taggings(loaded, label_piece):
    task = {"name": "conll2003", "options": {"label_piece": label_piece}}
    model = loaded(BertTagger, 3, labels=["O", "B-X", "I-X"], task=task)
    texts = [*texts_of(1), "\0", "\u200b"]  # the last ones have no piece
    graph = served(model, text=texts)
    for row, answer in enumerate(model.predict(texts)):
        words = answer["words"]
        count = int((graph["start"][row] >= 0).sum())
        for name in ("word", "label", "start", "end"):
            column = graph[name if name in graph else f"{name}s"][row][:count]
            assert [word[name] for word in words] == list(column), name
        shares = [word["probability"] for word in words]
        assert shares == pytest.approx(list(graph["probabilities"][row][:count]), abs=1e-4)


@pytest.mark.parametrize("version", ["1.1", "2.0"])
def test_spans(loaded, version):
    task = {"name": f"squad_v{version}", "options": {"n_best_size": 4, "max_answer_length": 9}}
    model = loaded(BertSpan, task=task, max_query_length=6, doc_stride=5)
    questions, contexts = texts_of(2), texts_of(3)
    contexts[:3] = "\u0378", "", " \n \u3000 "
    graph = served(model, question=questions, context=contexts)
    for row, answer in enumerate(model.predict(questions, contexts)):
        for name in ("answer", "start", "end"):
            assert answer[name] == graph[name][row], (row, name)
        if model.tokenizer.kind != "word_piece":
            continue  # of pieces that are bytes many spans are alike, and the graph looks at fewer
        assert answer["probability"] == pytest.approx(graph["probability"][row], abs=1e-4)


def test_the_empty_answer_takes_the_place_of_the_last_span_that_it_beats():
    tf = pytest.importorskip("tensorflow")
    from official_bert.export.span import ServedSpan

    starts, ends = np.array([2.8, 3.0, 2.0, -9.0]), np.array([0.0, 1.0, 0.5, -9.0])
    window = {"context_start": 1, "token_starts": [0, 2], "token_ends": [1, 3]}
    window["is_max_context"] = [1, 1]
    expected = span_answers.answer("", "a b", [(window, starts, ends)], 3, 2, True, 0.0)
    assert [best["text"] for best in expected["nbest"]] == ["a", "a b", ""]
    settings = ServingSettings(n_best_size=3, allow_no_answer=True)
    found = ServedSpan._best(
        types.SimpleNamespace(settings=settings), tf.constant(["a b"]),
        tf.constant([[4.0, 3.5, 2.5]]), tf.constant([[[0, 1], [0, 3], [2, 3]]]), tf.constant([2.8]),
    )  # fmt: skip
    assert float(found["probability"][0]) == pytest.approx(expected["probability"], abs=1e-6)


def test_choices(loaded):
    model = loaded(BertMultipleChoice)
    contexts, endings = texts_of(4), list(zip(texts_of(5), texts_of(6), texts_of(7), strict=True))
    graph = served(model, context=contexts, choices=[list(row) for row in endings])
    for row, answer in enumerate(model.predict(contexts, endings)):
        likeliest = answer["probabilities"][graph["choice"][row]]
        assert likeliest == pytest.approx(max(answer["probabilities"]), abs=1e-5)  # some are alike
        assert answer["probabilities"] == pytest.approx(list(graph["probabilities"][row]), abs=1e-4)
    one, other = model.predict(["a", "the cat"], [["b"], ["c", "d", "e", "f"]])  # no two alike
    assert (len(one["probabilities"]), len(other["probabilities"])) == (1, 4)


def test_pairs_that_are_none(loaded):
    span, choice = loaded(BertSpan), loaded(BertMultipleChoice)
    for model, arguments, message in (
        (span, ("a", [["b"]]), "a passage for each question"),
        (span, (["a", "b"], ["c"]), "2 texts, but 1 pairs"),
        *((choice, ("a", wrong), "choices for each context") for wrong in ("text", [], [3])),
        (loaded(BertTagger, 1, labels=["O"]), ("a", "b"), "no pairs"),
    ):
        with pytest.raises(UserError, match=message):
            model.predict(*arguments)
