import pathlib

import numpy as np
import pytest

from data_prep.tasks import get_task
from official_bert.errors import UserError

TRAIN = "text\tlabel\nthe cat\tham\nthe dog\tspam\na cat\tham\n"


def task_of(write, tmp_path, train=TRAIN, dev=None, **options):
    write("train.tsv", train)
    if dev is not None:
        write("dev.tsv", dev)
    return get_task("text_classification", data_dir=str(tmp_path), **options)


def test_labels_are_found_and_make_the_head(write, tmp_path):
    task = task_of(write, tmp_path)
    assert task.head == {
        "head": "classification",
        "num_labels": 2,
        "labels": ["ham", "spam"],
        "problem": "single_label",
    }
    again = get_task("text_classification", **task.settings())
    assert again.head == task.head  # without any file
    assert again.example({"text": "a dog"}).text_a == "a dog"


def test_features_have_the_label_only_where_it_is_known(write, tmp_path, tokenizer):
    task = task_of(write, tmp_path)
    (feature,) = task.features(task.examples("train")[1], tokenizer, 16)
    assert tokenizer.decode(feature["input_ids"][1:-1]) == "the dog"
    assert feature["label_ids"] == 1
    assert "label_ids" not in task.features(task.example({"text": "cat"}), tokenizer, 16)[0]


def test_pairs_by_their_usual_names_and_by_given_names(write, tmp_path):
    content = "premise\thypothesis\tlabel\nthe cat\ta cat\tyes\nthe dog\ta cat\tno\n"
    task = task_of(write, tmp_path, content)
    assert task.input_fields == ("premise", "hypothesis")
    assert [e.text_b for e in task.examples("train")] == ["a cat", "a cat"]
    named = task_of(
        write, tmp_path, content, text_column="hypothesis", text_b_column="label",
        label_column="premise",
    )  # fmt: skip
    assert named.examples("train")[0].text_b == "yes"


def test_a_label_of_dev_that_train_lacks_is_named(write, tmp_path):
    task = task_of(write, tmp_path, dev="text\tlabel\ncat\tham\ncat\teggs\n")
    with pytest.raises(UserError, match=r"dev\.tsv line 3: label 'eggs' is not among the training"):
        task.examples("dev")


def test_listed_labels_keep_their_order_and_are_checked(write, tmp_path):
    task = task_of(write, tmp_path, labels=["spam", "ham"])
    assert task.head["labels"] == ["spam", "ham"]
    task = task_of(write, tmp_path, labels=["ham", "other"])
    with pytest.raises(UserError, match=r"train\.tsv line 3: label 'spam' is not among the listed"):
        task.examples("train")


def test_multi_label(write, tmp_path, tokenizer):
    content = "text\tlabel\nthe cat\tpets, small\nthe dog\tpets\nthe mat\t\n"
    task = task_of(write, tmp_path, content, problem="multi_label")
    examples = task.examples("train")
    assert [example.label for example in examples] == [("pets", "small"), ("pets",), ()]
    assert task.features(examples[0], tokenizer, 16)[0]["label_ids"] == [1.0, 1.0]
    logits = np.array([[3.0, 2.0], [3.0, -1.0], [-2.0, 0.5]])
    predictions = task.predictions(examples, None, {"logits": logits})
    assert [p["labels"] for p in predictions] == [["pets", "small"], ["pets"], ["small"]]
    scores = task.score(examples, predictions)
    assert scores["micro_f1"] == pytest.approx(6 / 7)
    assert scores["exact_match"] == pytest.approx(2 / 3)
    analysis = task.analysis(examples, predictions)
    assert [m["id"] for m in analysis["mistakes"]] == ["2"]
    assert analysis["per_class"]["pets"]["f1"] == 1.0


def test_regression(write, tmp_path, tokenizer):
    content = "text\tlabel\na\t1\nb\t2.5\nc\t4\n"
    task = task_of(write, tmp_path, content, problem="regression")
    assert task.head["num_labels"] == 1
    examples = task.examples("train")
    assert task.features(examples[1], tokenizer, 16)[0]["label_ids"] == 2.5
    predictions = task.predictions(examples, None, {"logits": np.array([[1.0], [3.0], [4.0]])})
    scores = task.score(examples, predictions)
    assert scores["spearman"] == pytest.approx(1.0)
    assert scores["mean_squared_error"] == pytest.approx(0.25 / 3)
    assert task.baseline(examples, examples)["pearson"] == 0.0
    write("dev.tsv", "text\tlabel\na\tmany\n")
    with pytest.raises(UserError, match=r"dev\.tsv line 2: label is 'many', expected a number"):
        task.examples("dev")
    write("dev.tsv", "text\tlabel\na\tnan\n")
    with pytest.raises(UserError, match=r"dev\.tsv line 2: label is 'nan', expected a number"):
        task.examples("dev")


def test_scores_baseline_and_analysis(write, tmp_path):
    task = task_of(write, tmp_path)
    examples = task.examples("train")
    logits = np.array([[2.0, 0.0], [1.0, 0.0], [0.0, 3.0]])
    predictions = task.predictions(examples, None, {"logits": logits})
    assert [p["label"] for p in predictions] == ["ham", "ham", "spam"]
    assert task.score(examples, predictions)["accuracy"] == pytest.approx(1 / 3)
    assert task.baseline(examples, examples)["accuracy"] == pytest.approx(2 / 3)
    analysis = task.analysis(examples, predictions)
    assert analysis["confusion"] == {"labels": ["ham", "spam"], "counts": [[1, 1], [1, 0]]}
    assert [m["text"] for m in analysis["mistakes"]] == ["a cat", "the dog"]  # the surest first
    assert analysis["per_class"]["ham"]["support"] == 2


def test_written_predictions(write, tmp_path):
    task = task_of(write, tmp_path)
    predictions = task.predictions(task.examples("train"), None, {"logits": np.eye(3, 2) * 50})
    (path,) = task.write(tmp_path, predictions)
    lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    assert lines[0] == "id\tlabel\tprobability_ham\tprobability_spam"
    assert lines[2].split("\t")[:2] == ["1", "spam"] and len(lines) == 4


def test_held_out_part_of_one_file(write):
    rows = "".join(f"text {i}\t{'spam' if i % 3 else 'ham'}\n" for i in range(300))
    path = write("all.tsv", "text\tlabel\n" + rows)
    task = get_task("text_classification", data_dir=path, dev_fraction=0.2)
    train, dev = task.examples("train"), task.examples("dev")
    assert len(train) + len(dev) == 300 and 30 < len(dev) < 90
    assert not {e.id for e in train} & {e.id for e in dev}
    with pytest.raises(UserError, match="set dev_file or dev_fraction"):
        get_task("text_classification", data_dir=path).examples("dev")


def test_a_test_file_may_lack_labels(write, tmp_path):
    task = task_of(write, tmp_path)
    write("test.tsv", "text\nthe mat\n")
    (example,) = task.examples("test")
    assert example.label is None
    with pytest.raises(UserError, match="no labels to score against"):
        task.score([example], [{"label": "ham"}])


@pytest.mark.parametrize(
    ("train", "options", "message"),
    [
        ("words\tlabel\nx\ta\n", {}, r"which column is the text\?.*words, label"),
        ("text\tclass\nx\ta\n", {}, "no column label"),
        ("text\tlabel\nx\ta\ny\ta\n", {}, "holds 1 different labels"),
        ("text\tlabel\nx\t\n", {}, "line 2: label is empty"),
        (TRAIN, {"problem": "ranking"}, "problem='ranking'; it is one of single_label"),
        (TRAIN, {"truncation": "middle"}, "truncation='middle'"),
        (TRAIN, {"dev_fraction": 1.5}, "dev_fraction=1.5"),
    ],
)
def test_errors(write, tmp_path, train, options, message):
    with pytest.raises(UserError, match=message):
        task_of(write, tmp_path, train, **options).examples("train")


def test_sample_tasks_of_the_quickstart():
    for name, labels in (("sms_spam", 2), ("snli", 3)):
        task = get_task("text_classification", data_dir=f"data_prep/sample/tasks/{name}")
        assert len(task.examples("dev")) == 1000
        assert task.head["num_labels"] == labels
