"""Long texts cut into windows, token by token."""

import csv

import pytest

from data_prep.tasks import batches, featurize, get_task
from data_prep.tasks.windows import Windows
from official_bert import BertTokenizer, UserError

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [f"w{i}" for i in range(20)]
TOKENIZER = BertTokenizer([*SPECIAL, *WORDS])
CLS, SEP = 2, 3


def rows(windows, ids, length=6, truncation="head"):
    feature = windows.feature(TOKENIZER, list(ids), length, truncation)
    for row in filter(None, feature["input_ids"]):
        assert row[0] == CLS and row[-1] == SEP and len(row) <= length
    return [row[1:-1] for row in feature["input_ids"]], feature["truncated"]


@pytest.mark.parametrize(
    ("windows", "count", "expected", "truncated"),
    [
        (Windows(3), 10, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]], 0),
        (Windows(3), 8, [[0, 1, 2, 3], [4, 5, 6, 7], []], 0),
        (Windows(3), 0, [[], [], []], 0),
        (Windows(2), 10, [[0, 1, 2, 3], [4, 5, 6, 7]], 1),
        (Windows(3, overlap=1), 8, [[0, 1, 2, 3], [3, 4, 5, 6], [6, 7]], 0),
        (Windows(3, overlap=1), 7, [[0, 1, 2, 3], [3, 4, 5, 6], []], 0),
        (Windows(2, overlap=3), 6, [[0, 1, 2, 3], [1, 2, 3, 4]], 1),
    ],
)
def test_windows_by_hand(windows, count, expected, truncated):
    assert rows(windows, range(count)) == (expected, truncated)


def test_the_end_of_a_text_may_be_kept():
    assert rows(Windows(2), range(10), truncation="tail") == ([[2, 3, 4, 5], [6, 7, 8, 9]], 1)
    head_and_tail, _ = rows(Windows(2), range(12), truncation="head+tail")
    assert head_and_tail == [[0, 1, 6, 7], [8, 9, 10, 11]]


def test_windows_that_cannot_be():
    for options, message in (
        ({"most": -1}, "windows=-1"),
        ({"most": 2, "overlap": -1}, "window_overlap=-1"),
        ({"most": 2, "pooling": "sum"}, "window_pooling='sum'; it is one of mean, max, first_last"),
    ):
        with pytest.raises(UserError, match=message):
            Windows(**options)
    with pytest.raises(UserError, match="windows of max_seq_length=6 hold 4 tokens"):
        rows(Windows(2, overlap=4), range(9))


@pytest.fixture
def folder(tmp_path):
    with open(tmp_path / "train.tsv", "w", newline="") as file:
        writer = csv.writer(file, delimiter="\t")
        writer.writerow(["text", "label"])
        writer.writerow([" ".join(WORDS), "long"])
        writer.writerow(["w1 w2", "short"])
    return tmp_path


def test_a_batch_of_texts_in_windows(folder):
    task = get_task("text_classification", str(folder), windows=3, window_pooling="max")
    assert task.head["windows"] == "max"
    again = get_task("text_classification", **task.settings())
    assert (again.windows, again.head) == (task.windows, task.head)
    features = featurize.featurize(task, task.examples("train"), TOKENIZER, 8, num_processes=1)
    assert features.notes["truncated_examples"] == 1
    [(_, batch)] = batches.eval_batches(features, 4, 4)
    assert batch["input_ids"].shape == batch["segment_ids"].shape == (4, 3, 8)
    assert batch["input_mask"].sum(-1).tolist() == [[8, 8, 8], [4, 0, 0], [1, 1, 1], [1, 1, 1]]
    plain = get_task("text_classification", str(folder))
    assert "windows" not in plain.head and "windows" not in plain.settings()


def test_pairs_have_no_windows(tmp_path):
    (tmp_path / "train.tsv").write_text("premise\thypothesis\tlabel\na\tb\tx\nc\td\ty\n")
    task = get_task("text_classification", str(tmp_path), windows=2)
    with pytest.raises(UserError, match="windows are of one text; these are pairs"):
        task.features(task.examples("train")[0], TOKENIZER, 8)
