"""Long texts cut into windows, token by token."""

import pytest

from data_prep.tasks import batches, featurize, get_task
from official_bert import BertTokenizer, UserError
from official_bert.tokenization import SPECIAL_TOKENS
from official_bert.tokenization.windows import pack_windows

WORDS = [f"w{i}" for i in range(20)]
TOKENIZER = BertTokenizer([*SPECIAL_TOKENS, *WORDS])
CLS, SEP = 2, 3


def rows(most, ids, overlap=0, length=6, truncation="head"):
    found, cut = pack_windows(TOKENIZER, list(ids), None, length, truncation, most, overlap)
    for row in found:
        ids = row["input_ids"]
        assert ids[0] == CLS and ids[-1] == SEP and len(ids) <= length
    return [row["input_ids"][1:-1] for row in found], cut


@pytest.mark.parametrize(
    ("most", "overlap", "count", "expected", "truncated"),
    [
        (3, 0, 10, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]], False),
        (3, 0, 8, [[0, 1, 2, 3], [4, 5, 6, 7]], False),
        (3, 0, 0, [[]], False),
        (2, 0, 10, [[0, 1, 2, 3], [4, 5, 6, 7]], True),
        (3, 1, 8, [[0, 1, 2, 3], [3, 4, 5, 6], [6, 7]], False),
        (3, 1, 7, [[0, 1, 2, 3], [3, 4, 5, 6]], False),
        (2, 3, 6, [[0, 1, 2, 3], [1, 2, 3, 4]], True),
    ],
)
def test_windows_by_hand(most, overlap, count, expected, truncated):
    assert rows(most, range(count), overlap) == (expected, truncated)


def test_the_end_of_a_text_may_be_kept():
    assert rows(2, range(10), truncation="tail") == ([[2, 3, 4, 5], [6, 7, 8, 9]], True)
    head_and_tail, _ = rows(2, range(12), truncation="head+tail")
    assert head_and_tail == [[0, 1, 6, 7], [8, 9, 10, 11]]


def test_windows_that_cannot_be():
    with pytest.raises(UserError, match="windows of max_seq_length=6 hold 4 tokens"):
        rows(2, range(9), overlap=4)
    # Half a window is sure to hold the longer text, whatever the other one is.
    with pytest.raises(UserError, match="hold 4 tokens of the longer text; the overlap must be"):
        pack_windows(TOKENIZER, [7], [8], 10, "head", 2, 4)


@pytest.fixture
def folder(tmp_path):
    rows = "text\tlabel", f"{' '.join(WORDS)}\tlong", "w1 w2\tshort"
    (tmp_path / "train.tsv").write_text("\n".join(rows))
    return tmp_path


def test_a_batch_of_texts_in_windows(folder):
    task = get_task("text_classification", str(folder), windows=3, window_pooling="max")
    assert task.head["windows"] == "max"
    again = get_task("text_classification", **task.settings())
    assert (again.settings(), again.head) == (task.settings(), task.head)
    features = featurize.featurize(task, task.examples("train"), TOKENIZER, 8, num_processes=1)
    assert features.notes["truncated_examples"] == 1
    [(_, batch)] = batches.eval_batches(features, 4, 4)
    assert batch["input_ids"].shape == batch["segment_ids"].shape == (4, 3, 8)
    assert batch["input_mask"].sum(-1).tolist() == [[8, 8, 8], [4, 0, 0], [1, 1, 1], [1, 1, 1]]
    plain = get_task("text_classification", str(folder))
    assert "windows" not in plain.head and "windows" not in plain.settings()


@pytest.mark.parametrize(
    ("most", "overlap", "first", "second", "expected", "truncated"),
    [
        # Seven places beside [CLS] and the two [SEP].
        (2, 0, "aa", "bbb", ["aa|bbb"], False),
        (3, 0, "aa", "cdefghi", ["aa|cdefg", "aa|hi"], False),
        (3, 0, "cdefghi", "aa", ["cdefg|aa", "hi|aa"], False),
        (2, 1, "aa", "cdefghijkl", ["aa|cdefg", "aa|ghijk"], True),
        (2, 0, "abcd", "efgh", ["abc|efgh"], True),
        (2, 0, "", "abcdefgh", ["|abcdefg", "|h"], False),
    ],
)
def test_pairs_by_hand(most, overlap, first, second, expected, truncated):
    """The longer text is cut, at a tie the second; of the other half a window is kept."""
    codes = ([ord(char) for char in text] for text in (first, second))
    rows, cut = pack_windows(TOKENIZER, *codes, 10, "head", most, overlap)
    found = []
    for row in rows:
        ids, segments = row["input_ids"], row["segment_ids"]
        assert len(ids) == len(segments) <= 10 and ids[0] == CLS
        end = segments.index(1)  # the separator of the first text is counted to it
        assert ids[end - 1 :: len(ids) - end] == [SEP, SEP]
        found.append("|".join("".join(map(chr, text)) for text in (ids[1 : end - 1], ids[end:-1])))
    assert (found, cut) == (expected, truncated)


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
