"""Statistics of single examples: their sums give the metrics."""

import dataclasses

import numpy as np
import pytest

from data_prep.tasks import get_task
from data_prep.tasks.conll_files import TaggedDocument
from data_prep.tasks.metrics import classification_scores
from experiments.tables.intervals import MEASURES
from experiments.training import example_scores


class BinaryTask:
    head = {"head": "classification", "problem": "single_label", "labels": ["no", "yes"]}
    metrics = ("f1", "accuracy", "matthews")

    def clusters(self, examples):
        return [index // 2 for index in range(len(examples))]

    def score(self, examples, predictions):
        gold = [example.label for example in examples]
        return classification_scores(gold, [p["label"] for p in predictions], ["no", "yes"])


@dataclasses.dataclass
class Labelled:
    label: str


def test_example_statistics_sum_to_the_metrics(tmp_path):
    rng = np.random.default_rng(0)
    examples = [Labelled(str(x)) for x in rng.choice(["no", "yes"], 200)]
    predictions = [{"label": str(x)} for x in rng.choice(["no", "yes"], 200)]
    task = BinaryTask()
    example_scores.save(tmp_path / "scores.npz", task, examples, predictions)
    expected = task.score(examples, predictions)
    for metric in task.metrics:
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
