"""RoBERTa from text to answers on made-up sentences: its vocabulary, rows, training and tasks."""

import dataclasses
import json

import pytest
import tiny_runs

import official_bert
from data_prep.create_pretraining_data import create
from data_prep.jobs import vocabularies
from data_prep.tasks import get_task
from data_prep.tasks.featurize import cache_key, featurize
from experiments import evaluate, finetune, predict, pretrain
from experiments.beyond.byte_pair.learner import learn_byte_pairs
from experiments.beyond.byte_pair.tokenizer import BytePairTokenizer
from experiments.training.settings.config import FinetuneConfig, Phase
from experiments.training.settings.config_files import load_config
from official_bert.common.errors import UserError

pytest.importorskip("tokenizers")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return a folder with tokenizer.json and records of single segments, and of pairs."""
    folder = tmp_path_factory.mktemp("roberta")
    text = tiny_runs.write_text(folder / "text.txt")
    tokenizer = learn_byte_pairs([str(text)], 320)
    vocabularies.write_tokenizer(str(folder / "tokenizer.json"), tokenizer)
    for packing in ("single", "segments", "consecutive"):
        options = {"max_seq_length": 24, "max_predictions_per_seq": 4, "dynamic_masking": True}
        create(
            str(text), str(folder / "tokenizer.json"), str(folder / packing), packing=packing,
            dupe_factor=2, num_workers=1, progress=False, **options,
        )  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def config(data):
    base = load_config("roberta:smoke")
    size = BytePairTokenizer(data / "tokenizer.json").vocab_size
    shape = {"vocab_size": size, "hidden_size": 16, "intermediate_size": 32}
    single = str(data / "single")
    return dataclasses.replace(
        base,
        bert=dataclasses.replace(base.bert, **shape),
        phases=(Phase(single, 24, 4, single),),
        max_heldout_examples=16,
        train_batch_size=8,
        num_warmup_steps=2,
    )


@pytest.fixture(scope="module")
def pretrained(config, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("pretrained")
    return workdir, pretrain.run(config, workdir, progress=False)


def test_learnt_vocabularies_have_robertas_layout(data):
    tokenizer = BytePairTokenizer(data / "tokenizer.json")
    assert tokenizer.vocab[:4] == ["<s>", "<pad>", "</s>", "<unk>"]
    assert tokenizer.vocab[-1] == "<mask>" and len(tokenizer.tokenize(" .")) == 1
    assert tokenizer.vocab_size == 320 and len(tokenizer.merges) == 320 - 256 - 5
    with pytest.raises(UserError, match="the bytes and special tokens are 261"):
        learn_byte_pairs([str(data / "text.txt")], 200)


def test_pretraining_and_evaluation(pretrained, data):
    workdir, results = pretrained
    assert results.steps == 4 and "next_sentence_accuracy" not in results.heldout
    loaded = official_bert.load(workdir / "model")
    assert loaded.tokenizer.vocab_size == loaded.config.vocab_size
    assert loaded.config.type_vocab_size == 1 and loaded.config.layer_norm_eps == 1e-5
    found = evaluate.run(str(workdir / "model"), str(data / "single"), max_examples=16)
    assert found["masked_lm_loss"] == pytest.approx(results.heldout["masked_lm_loss"], rel=0.1)
    answer = loaded.fill_mask("the old <mask> sees the sun.", top_k=2)
    assert len(answer["masks"][0]) == 2 and "<mask>" not in answer["text"]


@pytest.mark.parametrize(
    ("packing", "objective", "message"),
    [
        ("single", "next_sentence", "rows of a single segment, and next_sentence needs two"),
        ("segments", "sentence_order", "two separators in a pair"),
        ("consecutive", "next_sentence", "hardly a second segment is random"),
        (
            "segments",
            {"name": "sentence_order", "random_as_swapped": True},
            "half of the second segments are random.*--packing=consecutive",
        ),
    ],
)
def test_records_that_objectives_cannot_use(config, data, tmp_path, packing, objective, message):
    phases = (Phase(str(data / packing), 24, 4),)
    wrong = dataclasses.replace(config, phases=phases, objectives=("masked_lm", objective))
    with pytest.raises(UserError, match=message):
        pretrain.run(wrong, tmp_path, progress=False)
    if packing != "segments":
        return
    none = dataclasses.replace(wrong, phases=(dataclasses.replace(phases[0], pairs=False),))
    with pytest.raises(UserError, match="no phase has pairs, so nothing would train sentence_ord"):
        pretrain.run(none, tmp_path / "none", progress=False)


@pytest.mark.slow
def test_finetuning_and_prediction(pretrained, tmp_path):
    texts = tiny_runs.write_labelled_texts(tmp_path)
    config = FinetuneConfig(
        task="text_classification", data_dir=str(texts), model=str(pretrained[0] / "model"),
        max_seq_length=24, train_batch_size=16, num_train_epochs=0.5, dropout=0.0,
    )  # fmt: skip
    assert finetune.run(config, tmp_path / "run", progress=False).steps == 5
    (tmp_path / "in.txt").write_text("the cat sees one house\n\nred\n", encoding="utf-8")
    model, output = str(tmp_path / "run" / "model"), tmp_path / "out.jsonl"
    predict.run(model, str(tmp_path / "in.txt"), str(output), progress=False)
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    expected = official_bert.load(model).predict(["the cat sees one house", "red"])
    assert [row["label"] for row in rows if "label" in row] == [a["label"] for a in expected]


def test_features_of_questions_and_tags(data, tmp_path):
    tokenizer = BytePairTokenizer(data / "tokenizer.json")
    squad = get_task("squad_v1.1", str(data))
    example = squad.example({"id": "1", "question": "who sees?", "context": "the cat sees. red"})
    [row] = squad.features(example, tokenizer, 32)
    question = tokenizer.encode("who sees?")
    assert row["input_ids"][: len(question) + 3] == [0, *question, 2, 2]
    assert row["context_start"] == len(question) + 3 == row["segment_ids"].index(1)
    places = zip(row["token_starts"], row["token_ends"], strict=True)
    pieces = ["the cat sees. red"[start:end] for start, end in places]
    assert "".join(pieces) == "thecatsees.red"

    (tmp_path / "train.txt").write_text("the O\ncat B-X\n. O\n\n" * 2)
    ner = get_task("ner", str(tmp_path))
    tags = ner.example({"text": "the cat."})
    row = featurize(ner, [tags], tokenizer, 24, num_processes=1)[0]
    words = [tokenizer.encode(f" {word}") for word in ("the", "cat", ".")]
    assert list(row["input_ids"]) == [0, *sum(words, []), 2]

    other = BytePairTokenizer(tokenizer.vocab, tokenizer.merges[::-1])
    assert cache_key(ner, [tags], tokenizer, 16) != cache_key(ner, [tags], other, 16)
