"""Cells that name labels: vectors of 0 and 1, lists, names, annotators, a column a label."""

import json

import numpy as np
import pytest

from data_prep.tasks import get_task, metrics
from official_bert.common.errors import UserError


def test_classes_that_do_not_occur_are_no_part_of_macro_f1():
    scores = metrics.classification_scores(["a", "b"], ["a", "b"], ["a", "b", "c"])
    assert scores["accuracy"] == scores["macro_f1"] == 1.0
    predicted = metrics.classification_scores(["a", "b"], ["a", "c"], ["a", "b", "c"])
    assert predicted["macro_f1"] == pytest.approx(1 / 3)  # c was answered, so it counts
    gold = np.array([[1, 0, 0], [1, 1, 0]])
    assert metrics.multi_label_scores(gold, gold)["macro_f1"] == 1.0


def test_labels_of_json_are_names(write, tmp_path):
    rows = [{"text": "a", "label": 1}, {"text": "b", "label": True}]
    write("train.jsonl", "\n".join(map(json.dumps, rows)))
    assert get_task("text_classification", str(tmp_path)).labels == ["1", "True"]


@pytest.mark.parametrize(
    ("problem", "label", "message"),
    [
        ("single_label", None, "line 3: label is null, expected one label"),
        ("single_label", ["x", "y"], r'line 3: label is \["x", "y"\], expected one label'),
        ("single_label", {}, "line 3: label is {}, expected one label"),
        ("multi_label", None, "line 3: label is null, expected a list of labels"),
        ("multi_label", ["x", None], r'line 3: label is \["x", null\], expected a list'),
        ("multi_label", [["x"]], r'line 3: label is \[\["x"\]\], expected a list'),
        ("regression", None, "line 3: label is None, expected a number"),
        pytest.param("regression", 10**400, "label is 1000.*, expected a number", id="huge"),
    ],
)
def test_labels_of_json_that_are_none(write, tmp_path, problem, label, message):
    good = {"text": "a", "label": 1 if problem == "regression" else "x"}
    rows = (good, good, {"text": "b", "label": label}, good)
    path = write("train.jsonl", "\n".join(map(json.dumps, rows)))
    with pytest.raises(UserError, match=message):
        get_task("text_classification", path, problem=problem).examples("train")


def test_multi_label_scores_are_scikit_learns():
    from sklearn.metrics import f1_score, precision_recall_fscore_support

    gold, predicted = np.random.default_rng(0).integers(0, 2, (2, 20, 4)) * [1, 1, 1, 0]
    scores = metrics.multi_label_scores(gold, predicted)
    for kind in ("micro", "macro"):
        # The fourth label is nowhere, so it is not a part of the mean.
        expected = f1_score(gold[:, :3], predicted[:, :3], average=kind, zero_division=0)
        assert scores[f"{kind}_f1"] == pytest.approx(expected)
    expected = precision_recall_fscore_support(gold, predicted, zero_division=0)
    found = metrics.per_class(gold, predicted, list("abcd"))
    rows = np.array([list(row.values()) for row in found.values()])
    assert rows == pytest.approx(np.transpose(expected))


def lines(labels):
    """Return JSON lines, one of each label."""
    return "\n".join(json.dumps({"text": "x", "label": label}) for label in labels)


BITS = ([0, 1, 0], [1, 0, 1], [0, 0, 0])
HOT = {  # kind of file -> these rows
    "a.jsonl": lines(BITS),
    "floats.jsonl": lines(([0.0, 1.0, 0.0], [1, 0, 1.0], [0] * 3)),
    "truths.json": json.dumps([{"text": "x", "label": [*map(bool, bits)]} for bits in BITS]),
    "texts.json": json.dumps({"text": ["x"] * 3, "label": [[*map(str, bits)] for bits in BITS]}),
    "a.csv": 'text,label\nx,"0,1,0"\nx,"1,0,1"\nx,"0,0,0"\n',
    "floats.tsv": "text\tlabel\nx\t0.0, 1.0, 0.0\nx\t1.0, 0.0, 1.0\nx\t0.0, 0.0, 0.0\n",
}


FOOD = {"problem": "multi_label", "labels": "food,staff,place"}
MOOD = {"labels": "POS,NEG"}


@pytest.mark.parametrize("name", HOT)
def test_vectors_of_0_and_1_are_several_labels(write, name):
    """Issue: they were taken for indices, every row had the labels 0 and 1."""
    path = write(name, HOT[name])
    task = get_task("text_classification", path, **FOOD)
    found = [example.label for example in task.examples("train")]
    assert found == [("staff",), ("food", "place"), ()]
    for options in ({"problem": "multi_label"}, {**FOOD, "labels": "food,staff"}):
        told = "; the labels are 2: food, staff" if "labels" in options else ".*labels= names all 3"
        with pytest.raises(UserError, match=f"a vector that says of .*row has it{told}"):
            get_task("text_classification", path, **options).examples("train")
    with pytest.raises(UserError, match="problem=multi_label"):
        get_task("text_classification", path).examples("train")


@pytest.mark.parametrize(
    ("options", "labels", "found"),
    [
        (FOOD, [[0], [1], [0, 1]], [("food",), ("staff",), ("food", "staff")]),
        (FOOD, [[0, 1], [2, 0]], [("food", "staff"), ("place", "food")]),
        (FOOD, [["food", "place"], []], [("food", "place"), ()]),
        (FOOD, [[0, 1, 0], [2]], r"line 1: .*\(vectors are 0 and 1, as long .*food is there twice"),
        (FOOD, [[1, 1], [0]], "line 1: .* staff is there twice"),
        (FOOD, [[0, 1, 0], [1, 0, 3]], "line 1: .* food is there twice"),
        # Annotators': spaCy's `cats`, doccano's, pandas' where a number was missing.
        (FOOD, [{"food": 1.0, "place": 0}, []], [("food",), ()]),
        (FOOD, [{"food": True, "place": True}, {"staff": False}], [("food", "place"), ()]),
        (FOOD, [{"food": 0.5}, []], r'line 1: label is {"food": 0.5}, expected a list of labels'),
        (MOOD, [{"POS": 1.0, "NEG": 0.0}, {"POS": 0.0, "NEG": 1.0}], ["POS", "NEG"]),
        (MOOD, [["POS"], ["NEG"]], ["POS", "NEG"]),
        (MOOD, [0.0, 1.0], ["POS", "NEG"]),
        (MOOD, [{"POS": 1, "NEG": 1}, "NEG"], r'label is \["POS", "NEG"\], expected one label'),
        (MOOD, [{"POS": 0, "NEG": 0}, "NEG"], r"label is \[\], expected one label"),
        (MOOD, [{"POS": 0.7, "NEG": 0.3}, "NEG"], 'is {"POS": 0.7, "NEG": 0.3}, expected one'),
        (MOOD, [0.5, 1.0], "label '0.5' is not among the listed labels"),
    ],
)
def test_indices_are_no_vectors_and_annotators_labels_are_read(write, options, labels, found):
    task = get_task("text_classification", write("a.jsonl", lines(labels)), **options)
    if isinstance(found, str):
        with pytest.raises(UserError, match=found):
            task.examples("train")
    else:
        assert [example.label for example in task.examples("train")] == found


@pytest.mark.parametrize("between", [",", ";", " ", "|", " ; "])
def test_vectors_are_no_classes(write, between):
    rows = "".join(f"x\t{between.join(bits)}\n" for bits in ("010", "101", "000"))
    with pytest.raises(UserError, match=r"a vector that says .*with --task_options.problem=multi"):
        get_task("text_classification", write("a.tsv", f"text\tlabel\n{rows}")).examples("train")


def test_rows_that_prodigys_user_did_not_accept_are_named(write):
    row = {"text": "x", "label": "SPORT", "_task_hash": 1}
    rows = [row | {"answer": answer} for answer in ("accept", "reject")]
    path = write("a.jsonl", "\n".join(map(json.dumps, rows)))
    with pytest.raises(UserError, match='line 2: its annotator.s answer is "reject"; leave out'):
        get_task("text_classification", path).examples("train")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "id,text,food,staff,place\n0,x,0,1,0\n1,y,1,0,1\n2,z,0,0,0\n"),
        ("a.tsv", "text\tfood\tstaff\tplace\nx\t0.0\t1.0\t0.0\ny\tTrue\tFalse\tTRUE\nz\t0\t0\t0\n"),
        ("a.json", json.dumps({"text": ["x", "y", "z"], "food": [0, True, 0.0],
                               "staff": [1, 0, 0], "place": [False, 1.0, 0]})),
    ],
)  # fmt: skip
def test_a_column_a_label(write, name, content):
    path = write(name, content)
    columns = {"label_column": "food, staff, place"}
    task = get_task("text_classification", path, problem="multi_label", **columns)
    found = [example.label for example in task.examples("train")]
    assert found == [("staff",), ("food", "place"), ()]
    assert task.labels == ["food", "staff", "place"]
    again = get_task("text_classification", path, **task.settings())
    assert [example.label for example in again.examples("train")] == found
    for test, label in (("text,food,staff,place\nq,-1,-1,-1\n", None), ("text\nq\n", None),
                        ("text,food,staff,place\nq,,,\n", None),
                        ("text,food,staff,place\nq,0,0,1\n", ("place",))):  # fmt: skip
        write("test.csv", test)
        options = {**columns, "test_file": "test.csv", "problem": "multi_label"}
        (example,) = get_task("text_classification", path, **options).examples("test")
        assert example.label == label
    with pytest.raises(UserError, match="a column a label is problem=multi_label"):
        get_task("text_classification", path, **columns)
    bad = write("bad.csv", "text,food,staff,place\nq,0,2,1\n")
    task = get_task("text_classification", bad, problem="multi_label", **columns)
    with pytest.raises(UserError, match=r'line 2: .* is \["0", "2", "1"\], expected 0 or 1'):
        task.examples("train")


def test_classes_that_differ_in_their_writing_are_told(write, capsys):
    path = write("a.csv", "text,label\n" + "x,1\n" * 3 + "y,1.0\nz,TRUE\n" + "z,true\n" * 2)
    get_task("text_classification", path).examples("train")
    told = capsys.readouterr().err
    assert "'1' (3) and '1.0' (1) are classes of their own" in told
    assert "'true' (2) and 'TRUE' (1) are classes" in told or "'TRUE' (1) and 'true' (2)" in told


@pytest.mark.parametrize("name", ["NA", "None", "null", "nan", "N/A"])
def test_a_class_that_other_libraries_take_for_nothing(write, name):
    table = write("a.csv", f"text,label\nx,{name}\ny,b\n")
    for path in (table, write("a.jsonl", lines([name, "b"]))):
        assert get_task("text_classification", path, dev_fraction=0.0).labels == sorted([name, "b"])
