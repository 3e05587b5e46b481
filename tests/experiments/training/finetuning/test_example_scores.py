"""Statistics of single examples: their sums give the metrics."""

import numpy as np
import pytest

from data_prep.tasks import get_task
from data_prep.tasks.classification.sequence_classification import TextExample
from data_prep.tasks.tagging.tagged_document import TaggedDocument
from experiments.tables.judging.measures import MEASURES
from experiments.training.finetuning import example_scores
from official_bert.common.errors import UserError


def test_example_statistics_sum_to_the_metrics(tmp_path, monkeypatch):
    task, rng = get_task("mrpc"), np.random.default_rng(0)
    monkeypatch.setattr(task, "clusters", lambda examples: [i // 2 for i in range(len(examples))])
    gold, said = rng.choice(task.labels, (2, 200)).tolist()
    examples = [TextExample(str(i), "a", "b", label) for i, label in enumerate(gold)]
    predictions = [{"label": label, "probabilities": [0.5, 0.5]} for label in said]
    example_scores.save(tmp_path / "scores.npz", task, examples, predictions)
    expected = task.score(examples, predictions)
    for metric in ("f1", "accuracy"):
        measure, table = example_scores.load(tmp_path / "scores.npz", metric)
        assert table.shape[0] == 100  # clusters of two
        assert MEASURES[measure](table.sum(axis=0)) == pytest.approx(100 * expected[metric])
    assert example_scores.load(tmp_path / "scores.npz", "other") is None
    assert example_scores.load(tmp_path / "none.npz", "f1") is None


@pytest.mark.parametrize(("column", "metric"), [("chunks", "f1"), ("part_of_speech", "accuracy")])
def test_statistics_of_tags(column, metric):
    task = get_task("conll2003", column=column, labels="O,B-A,I-A")
    gold = [[("B-A", "I-A", "O"), ("O",)], [("B-A", "B-A")]]
    predicted = [[["B-A", "O", "O"], ["B-A"]], [["B-A", "B-A"]]]
    examples = [TaggedDocument("", (), tuple(tags)) for tags in gold]
    predictions = [{"tags": tags} for tags in predicted]
    measure, table = example_scores.statistics(task, examples, predictions)[metric]
    expected = 100 * task.score(examples, predictions)[metric]
    assert len(table) == 2 and MEASURES[measure](table.sum(axis=0)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "options", "right", "wrong"),
    [
        ("mrpc", {}, ("f1", "accuracy"), ()),
        ("cola", {}, ("matthews",), ()),
        ("stsb", {}, (), ("pearson", "spearman")),
        ("text_classification", {"problem": "regression"}, ("mean_squared_error",), ("pearson",)),
        ("text_classification", {"labels": "0,1,2"}, ("accuracy",), ("macro_f1",)),
        ("text_classification", {"labels": "a,b", "problem": "multi_label"}, ("exact_match",),
         ("micro_f1", "macro_f1")),
    ],
)  # fmt: skip
def test_metrics_of_folds_are_those_of_all_examples_together(name, options, right, wrong):
    task, rng = get_task(name, **options), np.random.default_rng(0)

    def drawn(count):
        if task.problem == "regression":
            return [float(x) for x in rng.normal(0, 1, count)]
        found = rng.integers(0, len(task.labels), count)
        several = task.problem == "multi_label"
        return [(task.labels[i],) if several else task.labels[i] for i in found]

    key = {"regression": "value", "multi_label": "labels"}.get(task.problem, "label")
    examples = [TextExample(str(i), "a", None, label) for i, label in enumerate(drawn(90))]
    predictions = [{key: x, "probabilities": rng.random(2).tolist()} for x in drawn(90)]
    whole = task.score(examples, predictions)
    for metric in right:
        example_scores.check_folds(task, metric)
        folds = [
            example_scores.statistics(task, examples[part], predictions[part])[metric]
            for part in (slice(0, 20), slice(20, 90))
        ]
        sums = sum(table.sum(axis=0) for _, table in folds)
        assert MEASURES[folds[0][0]](sums) == pytest.approx(100 * whole[metric])
    for metric in wrong:
        with pytest.raises(UserError, match=f"have no {metric} of all examples together"):
            example_scores.check_folds(task, metric)
