"""Texts of classes, several labels or numbers: labels, features, scores, what is held out."""

import collections
import pathlib

import numpy as np
import pytest

from data_prep.tasks import get_task, metrics
from data_prep.tasks.task import MissingFile
from official_bert.common.errors import UserError

TRAIN = "text\tlabel\nthe cat\tham\nthe dog\tspam\na cat\tham\n"


def task_of(write, tmp_path, train=TRAIN, dev=None, **options):
    write("train.tsv", train)
    if dev is not None:
        write("dev.tsv", dev)
    return get_task("text_classification", data_dir=str(tmp_path), **options)


def test_labels_are_found_and_make_the_head(write, tmp_path):
    task = task_of(write, tmp_path)
    found = {"num_labels": 2, "labels": ["ham", "spam"]}
    assert task.head == {"head": "classification", "problem": "single_label"} | found
    again = get_task("text_classification", **task.settings())
    assert again.head == task.head  # without any file
    assert again.example({"text": "a dog"}).text_a == "a dog"


def test_rows_of_labels_and_held_out_ones_are_told(write, tmp_path, capsys):
    rows = "".join(f"text {i}\t{'bug' if i else 'Bug'}\n" for i in range(60))
    path = write("one.tsv", "text\tlabel\n" + rows)
    task = get_task("text_classification", data_dir=str(path), dev_fraction=0.2)
    train, dev = task.examples("train"), task.examples("dev")
    assert not {e.id for e in train} & {e.id for e in dev}
    train, dev = len(train), len(dev)
    told = capsys.readouterr().err
    assert train + dev == 60 and dev
    assert f"{path}: {train} rows left to train on" in told
    assert f"{path}: {dev} rows held out as dev" in told
    assert f"{path}: train: 2 labels: bug {train - 1}, Bug 1" in told
    assert f"{path}: dev: 1 labels: bug {dev}, none of Bug" in told
    with pytest.raises(UserError, match="set dev_file or dev_fraction"):
        get_task("text_classification", data_dir=path).examples("dev")


def test_a_part_of_each_class_is_held_out(write):
    kinds = ["often"] * 70 + ["seldom"] * 30 + ["twice"] * 2 + ["once"]
    rows = [f"text {i}\t{kind}\n" for i, kind in enumerate(kinds)]
    rows.append("text 0\tseldom\n")  # goes with the first of its text

    def split(rows, **options):
        path = write("one.tsv", "text\tlabel\n" + "".join(rows))
        task = get_task("text_classification", path, dev_fraction=0.1, stratify=True, **options)
        return [[(e.text_a, e.label) for e in task.examples(name)] for name in ("train", "dev")]

    train, dev = split(rows)
    counts = collections.Counter(label for text, label in dev if text != "text 0")
    assert 6 <= counts.pop("often") <= 7 and counts == {"seldom": 3, "twice": 1}
    assert not set(train) & set(dev) and len(train) + len(dev) == len(rows)
    assert not {text for text, _ in train} & {text for text, _ in dev}
    assert sorted(split(rows[1:] + rows[:1])[1]) == sorted(dev)  # whatever their order
    several = split(rows[:100], problem="multi_label")[1]
    assert {text for text, _ in several} != {text for text, _ in split(rows[:100])[1]}


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
    columns = {"text_column": "hypothesis", "text_b_column": "label", "label_column": "premise"}
    assert task_of(write, tmp_path, content, **columns).examples("train")[0].text_b == "yes"


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
    task = task_of(write, tmp_path, "text\tlabel\na\t1\nb\t2.5\nc\t4\n", problem="regression")
    assert task.head["num_labels"] == 1
    examples = task.examples("train")
    assert task.features(examples[1], tokenizer, 16)[0]["label_ids"] == 2.5
    predictions = task.predictions(examples, None, {"logits": np.array([[1.0], [3.0], [4.0]])})
    scores = task.score(examples, predictions)
    assert scores["spearman"] == pytest.approx(1.0)
    assert scores["mean_squared_error"] == pytest.approx(0.25 / 3)
    assert task.baseline(examples, examples)["pearson"] == 0.0
    for wrong in ("many", "nan"):
        write("dev.tsv", f"text\tlabel\na\t{wrong}\n")
        told = rf"dev\.tsv line 2: label is '{wrong}', expected a number"
        with pytest.raises(UserError, match=told):
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


def test_several_labels_in_a_cell_need_multi_label(write, tmp_path):
    content = "text\tlabel\nthe cat\tfood, news\nthe dog\tfood\na cat\tsport\n"
    with pytest.raises(UserError, match=r"'food, news' in the column label .*problem=multi_label"):
        task_of(write, tmp_path, content).head  # noqa: B018
    listed = task_of(write, tmp_path, content, labels=["food", "food, news", "sport"])
    assert listed.examples("train")[0].label == "food, news"
    towns = content.replace("\tfood\n", "\tParis, France\n")
    assert len(task_of(write, tmp_path, towns).labels) == 3


def test_written_predictions(write, tmp_path):
    task = task_of(write, tmp_path)
    predictions = task.predictions(task.examples("train"), None, {"logits": np.eye(3, 2) * 50})
    (path,) = task.write(tmp_path, predictions)
    lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    assert lines[0] == "id\tlabel\tprobability_ham\tprobability_spam"
    assert lines[2].split("\t")[:2] == ["1", "spam"] and len(lines) == 4


@pytest.mark.parametrize("name", ["dev.tsv", "validation.jsonl", "val.csv.gz"])
def test_nothing_is_held_out_where_there_is_a_dev_file(write, tmp_path, name):
    task = task_of(write, tmp_path, dev_fraction=0.5)
    assert task.source("dev") == (str(tmp_path / "train.tsv"), True)
    path = write(name, "")
    assert task.source("dev") == (path, None)
    assert task.source("train") == (str(tmp_path / "train.tsv"), None)
    one_file = get_task("text_classification", str(tmp_path / "train.tsv"), dev_fraction=0.5)
    assert one_file.source("dev") == (str(tmp_path / "train.tsv"), True)


def test_a_single_file_has_no_test_split(write, tmp_path):
    task = get_task("text_classification", write("all.tsv", TRAIN))
    with pytest.raises(MissingFile, match=r"all\.tsv is one file.*set test_file"):
        task.examples("test")


def test_multi_label_with_one_label(write, tmp_path, tokenizer):
    task = task_of(write, tmp_path, "text\tlabel\na\ttoxic\nb\t\nc\t\nd\t\n", problem="multi_label")
    examples = task.examples("train")
    assert task.features(examples[0], tokenizer, 16)[0]["label_ids"] == [1.0]
    for logits, right in (([-1, -1, -1, -1], 0.0), ([1, -1, -1, 1], 2 / 3)):
        predictions = task.predictions(examples, None, {"logits": np.array(logits)[:, None]})
        scores = task.score(examples, predictions)
        assert scores["micro_f1"] == scores["macro_f1"] == pytest.approx(right)
        assert scores["exact_match"] == 0.75
        toxic = task.analysis(examples, predictions)["per_class"]["toxic"]
        assert (toxic["f1"], toxic["support"]) == (pytest.approx(right), 1)


def test_scores_of_the_likeliest_labels_by_hand(write, tmp_path):
    gold = np.array([[1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0]])
    ranked = np.array([[9, 1, 8, 7, 6, 2], [1, 2, 3, 4, 5, 0], [5, 4, 3, 2, 1, 0]])
    assert metrics.ranking_scores(gold, ranked) == pytest.approx({
        # One of three first choices is right; of the three labels that there are, one is found.
        "precision_at_1": 1 / 3, "recall_at_1": 1 / 3, "f1_at_1": 1 / 3,
        # The first row's second label is its sixth choice, and so is the second row's only one.
        "precision_at_5": 1 / 15, "recall_at_5": 1 / 3, "f1_at_5": 2 / (15 + 3),
    })  # fmt: skip
    task = task_of(write, tmp_path, "text\tlabel\na\tx\nb\tx,y\n", problem="multi_label")
    examples = task.examples("train")
    predictions = task.predictions(examples, None, {"logits": np.array([[-3, -2], [-1, -4]])})
    scores = task.score(examples, predictions)  # two labels: there is no choice of five
    assert scores["f1_at_1"] == pytest.approx(2 / (2 + 3)) and "f1_at_5" not in scores
    assert task.baseline(examples, examples)["precision_at_1"] == 1.0, "x is the likeliest"


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("test.csv", "text,label\nx,\ny,\n", {}),
        ("test.tsv", "text\tlabel\nx\t\ny\t \n", {}),
        ("test.json", '[{"text": "x", "label": null}, {"text": "y", "label": ""}]', {}),
        ("test.csv", "text,label\nx,\ny,\n", {"problem": "multi_label"}),
        ("test.json", '{"text": ["x", "y"], "label": [[], []]}', {"problem": "multi_label"}),
        ("test.json", '{"text": ["x", "y"], "label": [null, null]}', {"problem": "multi_label"}),
        ("test.csv", "text,label\nx,\ny,\n", {"problem": "regression"}),
    ],
)  # fmt: skip
def test_an_empty_label_of_a_test_file_is_none(write, tmp_path, name, content, options):
    train = "text\tlabel\na\t1\nb\t2\n"
    task = task_of(write, tmp_path, train, dev="text\tlabel\na\t\n", **options)
    write(name, content)
    assert [example.label for example in task.examples("test")] == [None, None]
    if options.get("problem") != "multi_label":  # of which a row may have none
        with pytest.raises(UserError, match=r"dev\.tsv line 2: label is"):
            task.examples("dev")


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
        ("sentence\ttext\tlabel\nx\ty\ta\n", {}, "the text, text or sentence. --task_options.te"),
        ("text\tlabel\nx\ta\ny\ta\n", {}, "holds 1 different labels"),
        ("text\tlabel\nx\t\n", {}, "line 2: label is empty"),
        ("text\tlabel\nx\ta\n \tb\n", {}, r"train.tsv line 3: text is empty; fill it or leave"),
        (TRAIN, {"problem": "ranking"}, "problem='ranking'; it is one of single_label"),
        (TRAIN, {"truncation": "middle"}, "truncation='middle'"),
        (TRAIN, {"dev_fraction": 1.5}, "dev_fraction=1.5"),
        (TRAIN, {"labels": "ham,spam,ham"}, "labels: ham is there twice"),
        (TRAIN, {"problem": "multi_label", "label_separator": ""}, "label_separator is empty"),
        ("text\tlabel\nx\t\n", {"problem": "multi_label"}, "holds 0 different labels"),
        ("text\tlabel\nx\t[0 1]\n", {"problem": "multi_label"}, "a list written as text"),
        ("text\tlabel\nx\t-1\ny\t0\n", {"labels": "a,b"}, "line 2: label is -1, which stands"),
    ],
)
def test_errors(write, tmp_path, train, options, message):
    with pytest.raises(UserError, match=message):
        task_of(write, tmp_path, train, **options).examples("train")


def test_sample_tasks_of_the_quickstart():
    for name, labels in (("sms_spam", 2), ("snli", 3)):
        task = get_task("text_classification", data_dir=f"data_prep/sample/tasks/{name}")
        assert len(task.examples("dev")) == 1000 and task.head["num_labels"] == labels


def test_a_folder_whose_file_has_a_name_of_its_own(write, tmp_path):
    write("tickets.csv", "text,label\na,b\n")
    task = get_task("text_classification", data_dir=str(tmp_path))
    with pytest.raises(MissingFile, match="it holds tickets.csv: a file may itself be data_dir"):
        task.examples("train")
