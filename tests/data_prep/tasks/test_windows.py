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
    feature = windows.feature(TOKENIZER, list(ids), None, length, truncation)
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


@pytest.mark.parametrize(
    ("windows", "first", "second", "expected", "truncated"),
    [
        # Seven places beside [CLS] and the two [SEP].
        (Windows(2), "aa", "bbb", ["aa|bbb", ""], 0),
        (Windows(3), "aa", "cdefghi", ["aa|cdefg", "aa|hi", ""], 0),
        (Windows(3), "cdefghi", "aa", ["cdefg|aa", "hi|aa", ""], 0),
        (Windows(2, overlap=1), "aa", "cdefghijkl", ["aa|cdefg", "aa|ghijk"], 1),
        (Windows(2), "abcd", "efgh", ["abc|efgh", ""], 1),
        (Windows(2), "", "abcdefgh", ["|abcdefg", "|h"], 0),
    ],
)
def test_pairs_by_hand(windows, first, second, expected, truncated):
    """The longer text is cut, at a tie the second; of the other half a window is kept."""
    codes = ([ord(char) for char in text] for text in (first, second))
    feature = windows.feature(TOKENIZER, *codes, 10, "head")
    found = []
    for ids, segments in zip(feature["input_ids"], feature["segment_ids"], strict=True):
        assert len(ids) == len(segments) <= 10 and ids[:1] == [CLS][: len(ids)]
        end = segments.index(1) if ids else 0  # the separator of the first text is counted to it
        assert ids[end - 1 :: len(ids) - end or 1] == [SEP, SEP] if ids else not segments
        texts = ids[1 : end - 1], ids[end:-1]
        found.append("|".join("".join(map(chr, text)) for text in texts) if ids else "")
    assert (found, feature["truncated"]) == (expected, truncated)


def test_windows_of_pairs_that_cannot_be():
    """Half a window is sure to hold the longer text, whatever the other one is."""
    with pytest.raises(UserError, match="hold 4 tokens of the longer text; the overlap must be"):
        Windows(2, overlap=4).feature(TOKENIZER, [7], [8], 10, "head")
    with pytest.raises(UserError, match="window_pooling and window_overlap are of windows"):
        get_task("mrpc", window_overlap=4)
    for name, why in (("swag", "raise max_seq_length"), ("ner", "stride"), ("squad", "doc_stride")):
        with pytest.raises(UserError, match=f"unknown option windows of task .*; .*{why}"):
            get_task(name, windows=2)


@pytest.mark.parametrize(
    ("name", "columns", "label", "texts", "counts"),
    [
        ("SST-2", "sentence", "1", ["w1 w2 w3", " ".join(WORDS[:9])], [1, 2]),
        ("QNLI", "question\tsentence", "entailment",
         ["w1 w2\tw3", "w1 w2\t" + " ".join(WORDS[:6])], [1, 3]),
    ],
)  # fmt: skip
def test_glue_in_windows(name, columns, label, texts, counts, tmp_path):
    lines = [f"{i}\t{text}\t{label}" for i, text in enumerate(texts)]
    (tmp_path / "train.tsv").write_text("\n".join([f"index\t{columns}\tlabel", *lines]) + "\n")
    options = {"windows": 3, "window_pooling": "first_last", "window_overlap": 1}
    task = get_task(name, str(tmp_path), **options)
    assert task.head["windows"] == "first_last" and task.settings() == options
    assert get_task(name, **options).head == task.head
    assert get_task(name).settings() == {} and "windows" not in get_task(name).head
    features = featurize.featurize(task, task.examples("train"), TOKENIZER, 8, num_processes=1)
    [(order, batch)] = batches.eval_batches(features, 2, 2)
    assert batch["input_ids"].shape == (2, 3, 8) and batch["label_ids"].shape == (2,)
    windows = (batch["input_mask"].sum(-1) > 0).sum(-1)
    assert [windows[list(order).index(i)] for i in range(2)] == counts
    assert batch["segment_ids"].any() == (name == "QNLI")
