"""The advice of a fine-tuning that learnt little."""

import pytest
import tiny_runs

from data_prep.tasks import get_task
from experiments import finetune
from experiments.training.finetuning import advice
from experiments.training.folder.run_results import FinetuningResults
from experiments.training.settings.config import FinetuneConfig


def results(score, trivial, steps=100):
    dev, baseline = {"accuracy": score}, {"accuracy": trivial}
    given = {"task": "text_classification", "main_metric": "accuracy", "dev": dev}
    sizes = {"train_examples": 128, "dev_examples": 64, "steps": steps}
    return FinetuningResults(baseline=baseline, **given, **sizes)


def confusion(*rows):
    return {"confusion": {"labels": [*"xyz"[: len(rows)]], "counts": rows}}


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    folder = tiny_runs.write_labelled_texts(tmp_path_factory.mktemp("texts"))
    return get_task("text_classification", str(folder))


@pytest.mark.parametrize("score, trivial", [(0.8, 0.6), (1.0, 1.0), (0.999, 0.995), (0.62, 0.6)])
def test_a_run_that_learnt_is_told_nothing(task, score, trivial):
    assert (
        advice.of(FinetuneConfig(), task, results(score, trivial), confusion([3, 1], [1, 3])) == []
    )


@pytest.mark.parametrize("score, trivial", [(0.6, 0.6), (0.5, 0.6), (0.605, 0.6), (0.9951, 0.995)])
def test_a_run_at_its_baseline_is_told_so(task, score, trivial):
    told = advice.of(FinetuneConfig(learning_rate=3e-5), task, results(score, trivial), {})
    beside = "below" if score < trivial else "no better than"
    assert told[0].startswith(f"dev accuracy {score:.4f} is {beside} the baseline ({trivial:.4f})")
    assert told[0].endswith(f"that {task.baseline_is}") and "nothing" not in told[0]
    assert "--config.bias_correction=true" in told[-1] and "=1e-05 or =9e-05" in told[-1]
    assert "--config.num_train_epochs=6" in told[-1]


def test_a_run_of_few_steps_is_told_to_take_more(task):
    told = advice.of(FinetuneConfig(), task, results(0.5, 0.6, steps=4), {})[-1]
    assert "try: " in told and "--config.train_batch_size=8, since 32 gave 4 steps" in told
    enough = results(0.5, 0.6, steps=50)
    assert "train_batch_size" not in advice.of(FinetuneConfig(), task, enough, {})[-1]


def test_accuracy_that_balanced_weights_gave_up_is_no_failure(task):
    balanced = results(0.79, 0.82)
    balanced.dev["macro_f1"], balanced.baseline["macro_f1"] = 0.74, 0.45
    assert advice.of(FinetuneConfig(), task, balanced, confusion([21, 7], [0, 6])) == []


def test_classes_that_are_never_predicted_are_named(task):
    found = confusion([9, 0, 0], [5, 0, 0], [0, 0, 0])  # of z dev has none
    told = advice.of(FinetuneConfig(bias_correction=True), task, results(0.9, 0.6), found)
    assert told[0] == "never predicted (examples in dev): y (5)"
    assert "bias_correction" not in told[1] and "--config.class_weights=balanced" in told[1]
    per_class = {
        "per_class": {"a": {"support": 4, "recall": 0.0}, "b": {"support": 4, "recall": 1}}
    }
    told = advice.of(FinetuneConfig(), task, results(0.9, 0.6), per_class)
    assert told[0].endswith("a (4)")


def test_the_end_of_a_run_and_its_report_say_it(tmp_path):
    texts = tiny_runs.write_labelled_texts(tmp_path)
    fields = {"learning_rate": 1e-9, "num_train_epochs": 1.0, "seed": 12345}
    config = tiny_runs.finetune_config(texts, "tiny-wikipedia", **fields)
    found = finetune.run(config, tmp_path / "run", progress=False)
    assert found.advice[-1].startswith("try: --config.bias_correction=true")
    assert finetune.summary(found).splitlines()[-1] == f"note: {found.advice[-1]}"
    assert f"- {found.advice[0]}" in (tmp_path / "run" / "report.md").read_text("utf-8")
