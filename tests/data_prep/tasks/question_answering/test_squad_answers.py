"""From scores of starts and ends to answers, with and without the answer that there is none."""

import json
import pathlib

import numpy as np
import pytest
from squad_questions import CONTEXT, logits_of

from data_prep.tasks import get_task
from data_prep.tasks.featurize import featurize
from data_prep.tasks.question_answering.squad_examples import SquadExample


def answer_of(task, tokenizer, start_scores, end_scores, context="the big red dog ran home"):
    """Return the prediction where context tokens have the given scores (by index)."""
    example = SquadExample("q", "who", context)
    features = featurize(task, [example], tokenizer, 32)
    offset = features[0]["context_start"]
    outputs = {}
    for name, scores in (("start", start_scores), ("end", end_scores)):
        row = np.full(32, -10.0)
        for token, score in scores.items():
            row[offset + token] = score
        outputs[f"{name}_logits"] = [row]
    return task.predictions([example], features, outputs)[0]


def test_spans_are_ordered_valid_and_distinct(tokenizer):
    task = get_task("squad_v1.1", max_answer_length=2)
    # End before start (3, 1) and too long (0, 2) are not answers although they score highest.
    prediction = answer_of(task, tokenizer, {0: 5, 2: 2, 3: 6}, {1: 6, 2: 5.5, 3: 1})
    assert prediction["text"] == "the big"
    assert [entry["text"] for entry in prediction["nbest"]][:3] == ["the big", "red", "dog"]
    texts = [entry["text"] for entry in prediction["nbest"]]
    assert len(texts) == len(set(texts)) <= 20
    assert sum(entry["probability"] for entry in prediction["nbest"]) == pytest.approx(1.0)


def test_an_answer_never_comes_from_the_question(tokenizer, tmp_path):
    task = get_task("squad_v1.1")
    prediction = answer_of(task, tokenizer, {-2: 9, 1: 0}, {-2: 9, 1: 0})
    assert prediction["text"] == "big"
    nothing = answer_of(get_task("squad_v1.1", n_best_size=1), tokenizer, {-2: 9}, {-2: 9})
    assert (nothing["text"], nothing["start"]) == ("", -1)
    (path, _) = get_task("squad_v1.1").write(tmp_path, [nothing])
    assert json.loads(pathlib.Path(path).read_text()) == {"q": "empty"}  # as the original says it


def null_prediction(tokenizer, null_score, **options):
    """Predict "red dog" with logits of 5, "red" and "the big red dog" with less."""
    task = get_task("squad_v2.0", **options)
    example = SquadExample("q", "who", "the big red dog", ("red dog",), 8)
    features = featurize(task, [example], tokenizer, 32)
    outputs = logits_of(features, 32)
    outputs["end_logits"][0][features[0]["start_positions"]] = 4.0
    outputs["start_logits"][0][features[0]["context_start"]] = 3.0
    for name in outputs:
        outputs[name][0][0] = null_score
    return task, example, task.predictions([example], features, outputs)


@pytest.mark.parametrize(("threshold", "text"), [(-1.0, ""), (0.0, "red dog"), (1.0, "red dog")])
def test_null_odds_against_the_threshold(tokenizer, threshold, text):
    _, _, (prediction,) = null_prediction(tokenizer, 4.75, null_score_diff_threshold=threshold)
    assert prediction["null_odds"] == pytest.approx(2 * 4.75 - 10)
    assert prediction["text"] == text and prediction["best_text"] == "red dog"
    assert "" in [entry["text"] for entry in prediction["nbest"]]


@pytest.mark.parametrize(
    ("null_score", "texts"),
    [
        (6.0, ["", "red dog", "red"]),  # among the n best: one of them
        (4.6, ["red dog", "", "red"]),
        (-9.0, ["red dog", "red", "the big red dog", ""]),  # not among them: one more
    ],
)
def test_the_null_answer_in_the_n_best(tokenizer, null_score, texts):
    _, _, (prediction,) = null_prediction(tokenizer, null_score, n_best_size=3)
    found = prediction["nbest"]
    assert [entry["text"] for entry in found] == texts
    assert sum(entry["probability"] for entry in found) == pytest.approx(1.0)
    assert prediction["null_odds"] == pytest.approx(2 * null_score - 10)
    assert prediction["text"] == ("" if null_score > 5 else "red dog")


def test_the_lowest_null_score_of_the_windows_counts(tokenizer):
    task = get_task("squad_v2.0", doc_stride=4)
    example = SquadExample("q", "who", CONTEXT, ("red dog",), CONTEXT.index("red dog"))
    features = featurize(task, [example], tokenizer, 12)
    outputs = logits_of(features, 12)
    for row in range(len(features)):
        outputs["start_logits"][row][0] = outputs["end_logits"][row][0] = 9.0 - row
    (prediction,) = task.predictions([example], features, outputs)
    assert prediction["null_odds"] == pytest.approx(2 * (9.0 - (len(features) - 1)) - 10)


def test_tuning_sets_the_threshold_that_settings_carry(tokenizer):
    task, example, predictions = null_prediction(tokenizer, 6.0)
    assert predictions[0]["text"] == ""  # null odds 2 are above 0
    assert task.score([example], predictions)["f1"] == 0.0
    assert task.score([example], predictions)["best_f1"] == 1.0
    tuned = task.tune([example], predictions)
    assert tuned[0]["text"] == "red dog" and tuned[0]["start"] == 8
    assert task.settings()["null_score_diff_threshold"] == pytest.approx(3.0)
    assert task.score([example], tuned)["f1"] == 1.0


def test_three_files_in_the_original_format(tokenizer, tmp_path):
    task, _, predictions = null_prediction(tokenizer, 6.0)
    paths = [pathlib.Path(path) for path in task.write(tmp_path, predictions)]
    names = ["predictions.json", "nbest_predictions.json", "null_odds.json"]
    assert [path.name for path in paths] == names
    answers, nbest, odds = (json.loads(path.read_text(encoding="utf-8")) for path in paths)
    assert answers == {"q": ""} and odds == {"q": pytest.approx(2.0)}
    assert set(nbest["q"][0]) == {"text", "probability", "start_logit", "end_logit"}


def test_missing_predictions(tokenizer, capsys):
    task, example, predictions = null_prediction(tokenizer, 0.0)
    other = SquadExample("other", "who", "a cat", ())
    assert task.score([example, other], predictions)["f1"] == 1.0
    assert "1 questions have no prediction" in capsys.readouterr().err
    one = get_task("squad_v1.1")
    assert one.score([example, other], [{"id": "q", "text": "red dog"}])["f1"] == 0.5


def test_baselines(tokenizer):
    impossible = [SquadExample(str(i), "who", CONTEXT, ()) for i in range(3)]
    example = SquadExample("q", "who", CONTEXT, ("Peter",), 0)
    assert get_task("squad_v2.0").baseline([], [*impossible, example])["best_f1"] == 0.75
    assert get_task("squad_v1.1").baseline([], [example])["exact_match"] == 1.0
