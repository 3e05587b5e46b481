import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_prep.tasks import get_task, text_groups
from data_prep.tasks.classification.sequence_classification import TextExample
from official_bert.common.errors import UserError

WORDS = st.sampled_from([f"word{number}" for number in range(10)])


def examples_of(*texts, others=0):
    """Return the texts, or pairs of texts, and others of one different word each."""
    texts += tuple((f"w{index}",) for index in range(others))
    return [TextExample(str(index), *pair) for index, pair in enumerate(texts)]


def runs(example):
    words = example.text_a.lower().split()
    return {tuple(words[i : i + 5]) for i in range(max(1, len(words) - 4))}


@given(st.lists(st.lists(WORDS, min_size=1, max_size=9), min_size=1, max_size=12))
def test_the_sides_share_no_text_and_no_five_words(texts):
    examples = examples_of(*((" ".join(words),) for words in texts), others=200)
    train, dev = text_groups.dev_from_train(examples, 50)
    assert len(dev) == 50 and sorted(train + dev, key=lambda e: int(e.id)) == examples
    assert train == sorted(train, key=lambda e: int(e.id))
    assert not set().union(*map(runs, train)) & set().union(*map(runs, dev))


def test_which_ones_follows_from_the_texts_alone():
    examples = examples_of(others=300)
    _, dev = text_groups.dev_from_train(examples, 60)
    _, again = text_groups.dev_from_train(examples[::-1], 60)
    assert {e.id for e in dev} == {e.id for e in again}
    _, more = text_groups.dev_from_train(examples, 90)
    assert {e.id for e in dev} < {e.id for e in more}


def test_pairs_that_share_a_question_stay_together():
    pairs = [(f"q{i}", f"Q{i + 1} ") for i in range(3)] + [("a", "b")]
    examples = examples_of(*pairs, others=500)
    for count in range(1, 80):
        train, _ = text_groups.dev_from_train(examples, count)
        assert sum(example.id in ("0", "1", "2") for example in train) in (0, 3)


def test_a_large_group_stays_in_training():
    examples = examples_of(*((f"what is the best way to w{i}",) for i in range(50)), others=450)
    train, dev = text_groups.dev_from_train(examples, 450)
    assert train == examples[:50]
    with pytest.raises(UserError, match="of 500 training examples at most 450 can be held out"):
        text_groups.dev_from_train(examples, 451)
    with pytest.raises(UserError, match="of 3 training examples at most 2 can"):
        text_groups.dev_from_train(examples_of(others=3), 3)


def test_the_option_of_tasks_of_texts(write, tmp_path):
    rows = "".join(f"text{index} \t{index % 2}\n" for index in range(40))
    write("SST-2/train.tsv", "sentence\tlabel\n" + rows)
    write("SST-2/dev.tsv", "sentence\tlabel\nother\t1\n")
    task = get_task("sst2", data_dir=str(tmp_path), dev_from_train=10)
    train, dev = task.examples("train"), task.examples("dev")
    assert (len(train), len(dev)) == (30, 10)
    assert not {e.text_a for e in train} & {e.text_a for e in dev}
    assert all(e.label == str(int(e.id.removeprefix("train/")) % 2) for e in dev)
    assert task.notes == {"train": {"held_out_for_dev": 10}, "dev": {"from_training_file": 10}}


def test_folds_hold_every_labelled_example_once(write, tmp_path):
    rows = [f"a{i} b{i} c{i} d{i} e{i}\tx {i}\t{i % 2}" for i in range(7)]
    rows += ["a0 b0 c0 d0 e0\tx 8\t1", "other\tx 3\t0"]  # text of others, and in the other file
    for split, lines in (("train", rows[:6]), ("dev", rows[6:])):
        write(f"{split}.tsv", "\n".join(["sentence1\tsentence2\tlabel", *lines]))
    found = []
    for fold in (1, 2, 3):
        task = get_task("text_classification", str(tmp_path), folds=3, fold=fold)
        parts = task.examples("train"), task.examples("dev")
        assert set.isdisjoint(*({t for e in p for t in (e.text_a, e.text_b)} for p in parts))
        assert list(map(len, parts)) == [6, 3]
        found += [example.id for example in parts[1]]
    assert sorted(found) == list("012345678")


def test_folds_of_one_file_and_those_that_cannot_be_had(write, capsys):
    rows = ["text\tlabel", "one\ta", "ONE\tb", *(f"w{i}\t{'ab'[i % 2]}" for i in range(4))]
    path = write("all.tsv", "\n".join(rows))
    found = []
    for fraction in (0.0, 0.3):  # a held-out part is of all examples, too
        for fold in (1, 2, 3):
            options = {"folds": 3, "fold": fold, "dev_fraction": fraction}
            task = get_task("text_classification", str(path), **options)
            found += [example.text_a for example in task.examples("dev")]
    assert sorted(found) == sorted(2 * [row.partition("\t")[0] for row in rows[1:]])
    assert "held out" not in capsys.readouterr().err
    for options, told in (
        ({"folds": 6}, "of 6 examples those that share a text stay together, in 5 groups"),
        ({"folds": 2, "dev_file": "none.tsv"}, "none.tsv"),
    ):
        with pytest.raises(UserError, match=told):
            get_task("text_classification", str(path), **options).examples("dev")


@pytest.mark.slow
def test_sst2_with_twenty_thousand_dev_phrases(data_dir):
    task = get_task("sst2", data_dir=str(data_dir / "glue_data"), dev_from_train=20_000)
    train, dev = task.examples("train"), task.examples("dev")
    assert (len(train), len(dev)) == (47_349, 20_000)
    known = {run for example in train for run in runs(example)}
    assert not any(runs(example) & known for example in dev)


def test_qqp_and_the_rebuilt_qnli(data_dir):
    folder = str(data_dir / "glue_data")
    qqp = get_task("qqp", data_dir=folder)
    train, dev = qqp.examples("train"), qqp.examples("dev")
    assert (len(train), len(dev)) == (20_447, 10_000)
    assert not any(notes["incomplete_rows_skipped"] for notes in qqp.notes.values())
    assert qqp.baseline(train, dev)["accuracy"] == pytest.approx(0.5, abs=1e-3)
    qnli = get_task("qnli", data_dir=folder, train_file="train_rebuilt.tsv")
    assert (len(qnli.examples("train")), len(qnli.examples("dev"))) == (14_815, 5_463)
