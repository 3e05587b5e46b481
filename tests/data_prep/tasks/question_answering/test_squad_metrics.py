"""Hand-made cases of the official definitions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_prep.tasks.question_answering import squad_metrics as m


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The  Cat's\thome.", "cats home"),
        ("an apple a day", "apple day"),
        ("theory", "theory"),
        ("U.S.A.", "usa"),
        ("a-the", "athe"),  # punctuation goes first, and leaves no article
        ("the", ""),
        ("«the» cat", "« » cat"),  # only ASCII punctuation is deleted
    ],
)
def test_normalize(text, normal):
    assert m.normalize(text) == normal


@pytest.mark.parametrize(
    ("predicted", "gold", "f1"),
    [
        ("the cat", "Cat!", 1.0),
        ("black cat", "cat", 2 / 3),
        ("cat cat", "cat dog", 0.5),  # bags: one of the two counts
        ("dog", "cat", 0.0),
        ("", "", 1.0),
        ("", "cat", 0.0),
        ("the", "a", 1.0),  # both normalise to nothing
    ],
)
def test_f1(predicted, gold, f1):
    assert m.f1(predicted, gold) == pytest.approx(f1)


def test_version_1_best_over_golds_and_missing_questions_are_wrong():
    golds = {"q1": ["Denver Broncos", "Broncos"], "q2": ["Paris"], "q3": ["1066"]}
    scores = m.evaluate_v1({"q1": "the Broncos", "q2": "Paris, France"}, golds)
    assert scores["exact_match"] == pytest.approx(1 / 3)
    assert scores["f1"] == pytest.approx((1 + 2 / 3) / 3)


def test_version_1_gives_nothing_for_an_empty_answer():
    assert m.evaluate_v1({"q": ""}, {"q": ["cat"]}) == {"f1": 0.0, "exact_match": 0.0}
    # The overlap of no words is not an overlap in 1.1; the texts are equal all the same.
    assert m.evaluate_v1({"q": "the"}, {"q": ["a"]}) == {"f1": 0.0, "exact_match": 1.0}


def test_version_2_by_kind_of_question():
    golds = {"q1": ["cat"], "q2": [], "q3": [], "q4": ["red dog", "dog"]}
    scores = m.evaluate_v2({"q1": "", "q2": "", "q3": "dog", "q4": "a red dog"}, golds)
    assert scores["exact_match"] == scores["f1"] == pytest.approx(0.5)
    assert scores["has_answer_f1"] == pytest.approx(0.5)
    assert scores["no_answer_exact_match"] == pytest.approx(0.5)


def test_version_2_leaves_missing_questions_out():
    assert m.evaluate_v2({"q1": "cat"}, {"q1": ["cat"], "q2": ["dog"], "q3": []}) == {
        "f1": 1.0, "exact_match": 1.0, "has_answer_f1": 1.0, "has_answer_exact_match": 1.0
    }  # fmt: skip


def test_gold_answers_that_normalise_to_nothing_count_as_no_text():
    assert m.question_scores({"q": ""}, {"q": ["the"]})["q"] == (1.0, 1.0)


ANSWERS = st.sampled_from(["cat", "dog", "red cat"])


@given(st.lists(st.tuples(st.booleans(), ANSWERS, st.integers(-3, 3)), min_size=1, max_size=12))
def test_best_threshold_is_the_best_of_all_and_gives_its_score(questions):
    golds = {str(i): ["red cat"] if has else [] for i, (has, _, _) in enumerate(questions)}
    answers = {str(i): text for i, (_, text, _) in enumerate(questions)}
    odds = {str(i): float(value) for i, (_, _, value) in enumerate(questions)}

    def at(threshold, metric):
        decided = {q: "" if odds[q] > threshold else answers[q] for q in odds}
        return m.evaluate_v2(decided, golds)[metric]

    for metric in ("f1", "exact_match"):
        best, threshold = m.best_threshold(answers, odds, golds, metric)
        assert best == pytest.approx(at(threshold, metric))
        assert best == pytest.approx(max(at(t, metric) for t in range(-5, 5)))


def test_an_empty_answer_to_a_question_that_has_none_costs_nothing():
    answers, odds = {"none": "", "some": "red cat"}, {"none": -1.0, "some": 0.0}
    golds = {"none": [], "some": ["red cat"]}
    assert m.best_threshold(answers, odds, golds) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("odds", "threshold"), [((-1.0, 3.0), 1.0), ((-2.5, -2.0), -2.25), ((4.0, 1e9), 5e8 + 2)]
)
def test_the_threshold_lies_half_way_to_the_next_odds(odds, threshold):
    golds = {"some": ["red cat"], "none": []}
    by_question = dict(zip(golds, odds, strict=True))
    assert m.best_threshold(dict.fromkeys(golds, "red cat"), by_question, golds) == (1.0, threshold)
    for shaken in (-1e-6, 1e-6):
        assert odds[0] + shaken < threshold < odds[1] + shaken


@pytest.mark.parametrize("scale", [1.0, -1.0, 1e3])
def test_questions_of_one_text_are_answered_together(scale):
    """Batches of other lengths give a text scores of other last digits."""
    golds = {"some": ["red cat"], "none": [], "far": ["red cat"]}
    odds = {"some": scale, "none": scale + abs(scale) * 3e-7, "far": scale + 2.0}
    found = m.best_threshold(dict.fromkeys(golds, "red cat"), odds, golds)
    assert found == (2 / 3, pytest.approx(scale + 3.0))
    del golds["far"], odds["far"]
    assert m.best_threshold(dict.fromkeys(golds, "red cat"), odds, golds)[1] == scale - 1.0
