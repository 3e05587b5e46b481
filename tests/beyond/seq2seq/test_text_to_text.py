"""Texts to texts: files, features, scores against the libraries' own, halves, what is refused."""

import json
import pathlib

import numpy as np
import pytest

from data_prep.tasks import get_task
from data_prep.tasks.featurize import featurize
from experiments import finetune
from experiments.beyond.seq2seq import baselines
from experiments.beyond.seq2seq.head import TEXT, WriterSettings
from experiments.beyond.seq2seq.task import Pair, longer_half
from experiments.tables.judging.measures import measured
from experiments.training.finetuning import example_scores
from experiments.training.settings.config import FinetuneConfig
from official_bert.common.errors import UserError
from official_bert.tokenization import BertTokenizer

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh", ".", "é"]
PAIRS = [("a b c", "C b a."), ("a", "é a b c d"), ("d e f g h", "h g f e d"), ("b b", "a b c d")]
FOUND = ["c b a.", "e a b c e", "h g f f d", "d"]


@pytest.fixture
def tokenizer():
    return BertTokenizer(WORDS)


def folder_of(tmp_path, lines=None, name="dev.tsv"):
    lines = lines or ["source\ttarget", *map("\t".join, PAIRS)]
    for split in ("train.tsv", name):
        (tmp_path / split).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(tmp_path)


def scored(tmp_path, tokenizer, **options):
    task = get_task("text_to_text", folder_of(tmp_path), **options)
    task.tokenizer = tokenizer
    examples = task.examples("dev")
    return task, examples, [{"id": "", "output": text} for text in FOUND]


def test_the_same_pairs_from_every_format(tmp_path):
    expected = [Pair(str(i), *pair) for i, pair in enumerate(PAIRS)]
    assert get_task("text_to_text", folder_of(tmp_path)).examples("dev") == expected
    rows = [dict(zip(("es", "en"), pair, strict=True)) for pair in PAIRS]
    (tmp_path / "test.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    options = {"source_column": "es", "target_column": "en"}
    task = get_task("text_to_text", str(tmp_path), **options)
    assert task.examples("test") == expected
    (tmp_path / "test.jsonl").write_text('{"es": "a b"}\n')
    assert task.examples("test") == [Pair("0", "a b")]
    bare = get_task(
        "text_to_text", folder_of(tmp_path, ["a b\tb", "c\tc"]), columns="source,target"
    )
    assert bare.examples("dev") == [Pair("0", "a b", "b"), Pair("1", "c", "c")]


def test_features(tmp_path, tokenizer):
    task = get_task("text_to_text", folder_of(tmp_path), max_target_length=6)
    features = featurize(task, task.examples("dev"), tokenizer, 8, num_processes=1)
    begin, end = tokenizer.cls_id, tokenizer.sep_id
    ids = [[begin, *tokenizer.encode(text), end] for _, text in PAIRS]
    found = [features[i]["label_ids"].tolist() for i in range(4)]
    assert found == [ids[0], [*ids[1][:5], end], [*ids[2][:5], end], ids[3]]
    assert [int(features[i]["truncated"]) for i in range(4)] == [0, 1, 1, 0]
    assert features.lengths.tolist() == [6, 6, 7, 6], "of source or target, whichever is longer"
    assert task.tokenizer is tokenizer
    with pytest.raises(UserError, match="max_target_length=6 is above max_seq_length=5"):
        featurize(task, task.examples("dev"), tokenizer, 5, num_processes=1)


def test_written_ids_are_texts(tmp_path, tokenizer):
    task, examples, _ = scored(tmp_path, tokenizer)
    rows = [[5, 6, -1, -1], [7, -1, -1, 9], [-1] * 4, [99, 8, 8, -1]]
    found = task.predictions(examples, None, {"output_ids": np.array(rows, "float32")})
    assert [one["output"] for one in found] == ["a b", "c e", "", "d d"]
    path, *_ = task.write(tmp_path, found)
    assert pathlib.Path(path).read_text() == "a b\nc e\n\nd d\n"


def test_scores_are_the_libraries_own(tmp_path, tokenizer):
    import sacrebleu
    from rouge_score.rouge_scorer import RougeScorer

    task, examples, predictions = scored(tmp_path, tokenizer)
    gold = ["c b a.", "e a b c d", "h g f e d", "a b c d"]  # as the vocabulary writes them
    scores = task.score(examples, predictions)
    assert scores["bleu"] == pytest.approx(sacrebleu.corpus_bleu(FOUND, [gold]).score / 100)
    scorer = RougeScorer(["rouge1", "rougeL"])
    each = [scorer.score(truth, text) for truth, text in zip(gold, FOUND, strict=True)]
    assert scores["rouge_1"] == pytest.approx(np.mean([one["rouge1"].fmeasure for one in each]))
    assert scores["rouge_l"] == pytest.approx(np.mean([one["rougeL"].fmeasure for one in each]))
    # Words of the sources: 3, 1, 5, 2.
    assert longer_half(examples).tolist() == [True, False, True, False]
    long = sacrebleu.corpus_bleu([FOUND[0], FOUND[2]], [[gold[0], gold[2]]]).score / 100
    short = sacrebleu.corpus_bleu([FOUND[1], FOUND[3]], [[gold[1], gold[3]]]).score / 100
    assert scores["bleu_long"] == pytest.approx(long)
    assert scores["bleu_short"] == pytest.approx(short)
    assert scores["bleu_gap"] == pytest.approx(long - short)
    task.tokenizer = BertTokenizer(WORDS, do_lower_case=False)
    cased = sacrebleu.corpus_bleu(FOUND, [[target for _, target in PAIRS]]).score / 100
    assert task.score(examples, predictions)["bleu"] == pytest.approx(cased) != scores["bleu"]
    assert task.baseline([], examples)["bleu"] < scores["bleu"]


def test_intervals_know_what_bleu_is_made_of(tmp_path, tokenizer):
    task, examples, predictions = scored(tmp_path, tokenizer)
    scores = task.score(examples, predictions)
    found = example_scores.statistics(task, examples, predictions)
    assert set(found) == set(task.metrics)
    for metric, (measure, rows) in found.items():
        value = measured(measure)(rows.sum(axis=0))
        assert value == pytest.approx(100 * scores[metric]), metric
    nothing = np.zeros(10)
    assert measured("bleu")(nothing) == 0
    assert measured("bleu")(np.array([0, 0, 0, 0, 4, 3, 2, 1, 4, 4.0])) == 0


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["source\ttarget", "a\t "], r"dev\.tsv line 2: target is not text"),
        (["source\ttarget", " \tb"], r"dev\.tsv line 2: source is empty"),
        (["source\tlabel", "a\tb"], r"dev\.tsv.*target"),
    ],
)
def test_files_that_are_refused(tmp_path, lines, message):
    with pytest.raises(UserError, match=message):
        get_task("text_to_text", folder_of(tmp_path, lines)).examples("dev")


def test_options_that_are_refused():
    for name, value, told in (
        ("beams", 0, "from 1 to 256, not 0"),
        ("beams", 10**12, "from 1 to 256, not 1000000000000"),
        ("length_penalty", float("nan"), "from -1,000,000 to 1,000,000, not NaN"),
        ("max_target_length", 10**9, "from 1 to 65,536, not 999999999"),
    ):
        with pytest.raises(UserError, match=f"must be a .*number {told}"):
            get_task("text_to_text", **{name: value})


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("longest", 10**9, "longest must be a whole number from 1 to 65,536, not 10"),
        ("beams", 10**7, "beams must be a whole number from 1 to 256, not 10"),
        ("length_penalty", 10**400, "length_penalty must be a number from -1,000,000"),
        ("longest", True, "longest must be a whole number, not true"),
    ],
)
def test_a_folder_with_absurd_numbers(name, value, told):
    """They ended in the memory or in an error of TensorFlow."""
    settings = {"decoder": "rnn", "longest": 7, "beams": 1, "length_penalty": 1.0, name: value}
    with pytest.raises(UserError, match=rf"m/model\.json: {told}"):
        TEXT.check(settings, pathlib.Path("m/model.json"))


def test_an_export_with_absurd_numbers():
    with pytest.raises(UserError, match="beams must be a whole number from 1 to 256"):
        WriterSettings(beams=10**7)
    with pytest.raises(UserError, match="length_penalty must be a number"):
        WriterSettings(length_penalty=float("inf"))


def test_libraries_are_named(tmp_path, monkeypatch):
    task = get_task("text_to_text", folder_of(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install 'official-bert\[generation\]'"):
        task.examples("dev")


@pytest.mark.parametrize("name", ["nearest-source", "ibm-model-1"])
def test_texts_without_words_teach_no_baseline(tmp_path, name):
    """They ended in an IndexError or in an error of scikit-learn."""
    folder = folder_of(tmp_path, ["source\ttarget", "?!\ta", "!\tb"])
    config = FinetuneConfig(task="text_to_text", model=name, data_dir=folder)
    task = get_task("text_to_text", folder)
    with pytest.raises(UserError, match="no source of train has a word to learn from"):
        baselines.TextBaseline().learn(config, task, task.examples("train"), None)


def test_baselines_by_hand():
    """Model 1 learns which words belong together from which sentences share them."""
    pairs = [("la casa", "the house"), ("la flor", "the flower"), ("casa", "house")]
    assert baselines.ibm_model_1(pairs)(["casa la flor", "la rosa"]) == [
        "house the flower",
        "the rosa",
    ]
    assert baselines.nearest_source(pairs)(["una flor", "casa"]) == ["the flower", "house"]
    asked = [("x", "who was a?"), ("y", "who was b?"), ("z", "what is c?")]
    assert baselines.opening(asked)(["she saw ann."])[0].endswith(" she saw ann?"), "no answer"
    assert baselines.opening(asked)(["ann: ann saw bob.", "ann: she saw ann."]) == [
        "who was saw bob?",
        "who was she saw?",
    ]


def test_model_1_parts_words_that_stand_together():
    """Once "a" has learnt "x" from the second pair, "y" is left for "b"; order is the source's."""
    written = baselines.ibm_model_1([("a b", "x y"), ("a", "x")])
    assert written(["b a", "c"]) == ["y x", "c"]


def test_a_baseline_runs(tmp_path):
    for split in ("train", "dev"):
        (tmp_path / f"{split}.tsv").write_text("source\ttarget\nÉl va\tHe GOES\n")
    config = FinetuneConfig(
        task="text_to_text", model="nearest-source", data_dir=str(tmp_path), save_model=False
    )
    results = finetune.run(config, tmp_path / "run", progress=False)
    assert results.dev["rouge_1"] == 1 and results.steps == 0
