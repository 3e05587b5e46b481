"""Files of texts that belong together: what they are taken for, what is refused, scores by hand."""

import json

import numpy as np
import pytest

from data_prep.tasks import get_task
from experiments.beyond.sentence_vectors.similarity import TextVectors
from experiments.training.settings.config import FinetuneConfig
from experiments.training.settings.config_files import load_config
from experiments.training.settings.options import replaced
from official_bert import BertTokenizer, UserError, named_config

SCORED = "sentence1\tsentence2\tscore\na b\tb a\t5.0\nc\td\t0.5\n"
TRIPLETS = "anchor,positive,negative\na,b,c\nd,e,\n"


@pytest.fixture
def task(tmp_path):
    """Return made(options, **files) -> the task on files, by their names without "__"."""

    def make(options=None, **files):
        for name, text in files.items():
            (tmp_path / name.replace("__", ".")).write_text(text)
        return get_task("sentence_vectors", str(tmp_path), **(options or {}))

    return make


def read(task, split):
    return [(one.texts, one.score) for one in task.examples(split)]


def test_columns_say_what_a_file_is(task):
    made = task(train__csv=TRIPLETS, dev__tsv=SCORED)
    assert read(made, "train") == [(("a", "b", "c"), None), (("d", "e", ""), None)]
    assert read(made, "dev") == [(("a b", "b a"), 5.0), (("c", "d"), 0.5)]
    assert (made.objective, made.whole_batches) == ("in_batch", True)
    assert made.metrics == ("spearman", "pearson")


def test_scored_pairs_are_divided_and_bounded(task):
    made = task({"highest_score": 5.0}, train__tsv=SCORED, dev__csv=TRIPLETS)
    assert read(made, "train") == [(("a b", "b a"), 1.0), (("c", "d"), 0.1)]
    assert (made.objective, made.metrics[0]) == ("cosine", "mrr")
    with pytest.raises(UserError, match=r"train.tsv line 2: score is 5; .*highest_score=5 \(say\)"):
        task(train__tsv=SCORED).examples("train")
    with pytest.raises(UserError, match="line 2: score is 'high', expected a number"):
        task(train__tsv=SCORED.replace("5.0", "high")).examples("train")


def test_texts_alone_are_their_own_second_texts(task):
    made = task(train__txt="One text.\nAnother, with a comma.\n", dev__tsv=SCORED)
    assert read(made, "train")[1] == (("Another, with a comma.",) * 2, None)
    bert = named_config("tiny")
    config = FinetuneConfig(task="sentence_vectors", dropout=0.0)
    with pytest.raises(UserError, match="each is compared with itself under another dropout"):
        made.check_training(config, bert)
    made.check_training(replaced(config, dropout=0.1), bert)
    with pytest.raises(UserError, match="texts alone are for training; dev needs pairs"):
        task(dev__tsv="text\nx\n").examples("dev")


def test_lists_of_negatives_and_columns_of_other_names(task):
    rows = [
        {"id": "q", "ask": "a", "reply": "b", "bad": ["c", "d"], "worse": "e"},
        {"ask": "f", "reply": "g", "bad": [], "worse": None},
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    options = {"text_column": "ask", "text_b_column": "reply", "negative_column": "bad,worse"}
    made = task(options, train__jsonl=text)
    assert read(made, "train") == [(tuple("abcde"), None), (("f", "g", "", "", ""), None)]
    assert made.examples("train")[0].id == "q"
    with pytest.raises(UserError, match="which columns are the texts"):
        task(train__jsonl=text).examples("train")


def test_rows_of_one_value_are_kept_and_labels_are_not_guessed(task):
    text = "premise\thypothesis\tlabel\na\tb\tentailment\na\tc\tneutral\nd\te\tentailment\n"
    made = task({"keep": "label=entailment"}, train__tsv=text)
    assert [texts for texts, _ in read(made, "train")] == [("a", "b"), ("d", "e")]
    assert made.notes["train"] == {"rows_left_out": 1}
    scored = task({"keep": "label=entailment"}, dev__tsv=SCORED)
    assert len(scored.examples("dev")) == 2
    with pytest.raises(UserError, match="no column kind"):
        task({"keep": "kind=x", "train_file": "t.csv"}, t__csv=TRIPLETS).examples("train")
    with pytest.raises(UserError, match="the column label says which texts belong together"):
        task(train__tsv=text).examples("train")
    with pytest.raises(UserError, match="no row has label=yes"):
        task({"keep": "label=yes"}, train__tsv=text).examples("train")
    both = "anchor\tpositive\tnegative\tscore\na\tb\tc\t1\n"
    with pytest.raises(UserError, match="it has scores .* and hard negatives"):
        task(train__tsv=both).examples("train")
    with pytest.raises(UserError, match="keep=label is not COLUMN=VALUE"):
        task({"keep": "label"})


def test_features_are_rows_of_one_text_each(task):
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcde"]
    tokenizer = BertTokenizer(vocabulary)
    made = task({"highest_score": 5.0}, train__csv=TRIPLETS, dev__tsv=SCORED)
    (feature,) = made.features(made.examples("train")[1], tokenizer, 8)
    assert feature["input_ids"] == [[2, 8, 3], [2, 9, 3], []] and "label_ids" not in feature
    (feature,) = made.features(made.examples("dev")[0], tokenizer, 8)
    assert feature["label_ids"] == 1.0 and feature["truncated"] == 0


def test_ranks_by_brute_force():
    draw = np.random.default_rng(0)
    texts = [(f"q{i % 17}", f"p{i % 23}", f"n{i}" if i % 2 else "") for i in range(40)]
    names = sorted({text for each in texts for text in each if text})
    vectors = dict(zip(names, draw.normal(size=(len(names), 5)), strict=True))
    known = TextVectors.of(names, list(vectors.values()))
    candidates = {text for each in texts for text in each[1:] if text}

    def cosine(one, two):
        one, two = vectors[one], vectors[two]
        return one @ two / np.linalg.norm(one) / np.linalg.norm(two)

    for (first, second, *_), found in zip(texts, known.ranks(texts), strict=True):
        others = candidates - {right for asked, right, _ in texts if asked == first}
        own = cosine(first, second)
        assert found == 1 + sum(cosine(first, other) >= own for other in others)
    assert known.cosines(texts) == pytest.approx([cosine(*each[:2]) for each in texts])


def test_scores_by_hand_and_a_model_that_says_the_same_of_all(task):
    rows = "query\tpassage\nwhat is red\ta red rose\nwho runs\tthe dog runs\nwhere\tat home\n"
    made = task(train__tsv=rows, dev__tsv=rows)
    examples = made.examples("dev")
    vectors = [np.array([[1, 0], x], float) for x in ([1, 0], [0, 1], [1, 1])]
    found = made.predictions(examples, None, {"vectors": vectors})
    # The right ones have cosines 1, 0 and 0.7 to every first text: first, last and second.
    assert [one["rank"] for one in found] == [1, 3, 2]
    scores = made.score(examples, found)
    expected = {"mrr": (1 + 1 / 3 + 1 / 2) / 3, "recall_at_1": 1 / 3, "recall_at_10": 1}
    assert scores == pytest.approx(expected)
    same = made.predictions(examples, None, {"vectors": [np.ones((2, 2))] * 3})
    assert [one["rank"] for one in same] == [3, 3, 3]
    # Words: two of three share one with their own text alone, the third with none.
    assert made.baseline(examples, examples)["recall_at_1"] == pytest.approx(2 / 3)
    assert made.clusters(examples) == [0, 1, 2]


def test_correlations_are_those_of_the_cosines(task):
    made = task({"highest_score": 5.0}, train__tsv=SCORED, dev__tsv=SCORED + "e\te\t1\n")
    examples = made.examples("dev")
    found = [{"similarity": value} for value in (0.9, 0.2, 0.1)]
    assert made.score(examples, found)["spearman"] == pytest.approx(0.5)
    assert set(made.statistics(examples, found)) == {"spearman", "pearson"}


def test_options_and_refusals(task):
    made = task(train__csv=TRIPLETS, dev__tsv=SCORED)
    config = load_config("sentence_vectors:small")
    with pytest.raises(UserError, match="gradient_accumulation=2: in-batch negatives"):
        made.check_training(replaced(config, gradient_accumulation=2), None)
    cls = made.head_on({}, replaced(config, pooling="cls", temperature=0.1))
    assert (cls["poolings"], cls["temperature"], cls["normalize"]) == (("cls",), 0.1, False)
    own = {"embedding": {"poolings": ["max"], "steps": ["normalize"]}}
    head = made.head_on(own, config)
    assert (head["poolings"], head["normalize"], head["objective"]) == (("max",), True, "in_batch")
    prompted = {
        "embedding": {"poolings": ["max"], "steps": [], "prompts": {"q": "ask: "}, "prompt": "q"}
    }
    with pytest.raises(UserError, match="made as is not trained here .*ask: "):
        made.head_on(prompted, config)
    assert made.head_on(prompted, replaced(config, pooling="max"))["poolings"] == ("max",)
    with pytest.raises(UserError, match="temperature is -1"):
        replaced(config, temperature=-1.0)
