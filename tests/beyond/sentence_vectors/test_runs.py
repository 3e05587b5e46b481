"""Sentence vectors from files to folders: scores, answers, other libraries' losses and vectors."""

import json

import keras
import numpy as np
import pytest
import tiny_runs

import official_bert as ob
from experiments import convert, evaluate, finetune, predict
from experiments.beyond.sentence_vectors import compare_texts
from experiments.beyond.sentence_vectors.model import SentenceEncoder
from experiments.training.settings.config_files import load_config
from experiments.training.settings.options import replaced
from experiments.training.start import finetuning_preflight
from official_bert.common.errors import UserError

COLOURS, THINGS = ("red", "green", "blue", "white"), ("house", "dog", "tree", "river")


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Return a folder of questions with answers, and of the same as scored pairs."""
    folder = tmp_path_factory.mktemp("texts")
    pairs = [(f"who has a {c} {t}", f"the {c} {t} is ours") for c in COLOURS for t in THINGS]
    rows = [(*one, pairs[i - 1][1]) for i, one in enumerate(pairs)]
    table = "".join("\t".join(row) + "\n" for row in rows)
    for name in ("train", "dev"):
        (folder / f"{name}.tsv").write_text("anchor\tpositive\tnegative\n" + table)
    scored = [f"{a}\t{b}\t5\n{a}\t{c}\t1\n" for a, b, c in rows]
    (folder / "scored.tsv").write_text("sentence1\tsentence2\tscore\n" + "".join(scored))
    (folder / "alone.txt").write_text("".join(f"{text}\n" for pair in pairs for text in pair))
    return folder


def config_of(texts, **fields):
    usual = {
        "data_dir": str(texts), "max_seq_length": 16, "train_batch_size": 8, "log_every": 1,
        "num_train_epochs": 2.0, "learning_rate": 1e-3, "length_buckets": False,
    }  # fmt: skip
    return replaced(load_config("sentence_vectors:small"), **{**usual, **fields})


@pytest.fixture(scope="module")
def trained(texts, tmp_path_factory):
    """Return (results, model folder) of in-batch negatives with hard ones."""
    folder = tmp_path_factory.mktemp("run") / "run"
    return finetune.run(config_of(texts), folder, progress=False), folder / "model"


def test_in_batch_negatives_find_the_answers(trained, texts, tmp_path):
    results, folder = trained
    before = compare_texts.run("tiny-wikipedia", str(texts / "dev.tsv"))
    assert results.dev["mrr"] > before["scores"]["mrr"]
    assert before["tfidf"] == pytest.approx(results.baseline) and before["rows"] == 16
    after = compare_texts.run(str(folder), str(texts / "dev.tsv"))
    assert after["scores"] == pytest.approx(results.dev, abs=1e-6)
    scores, _ = evaluate.on_task(str(folder), str(texts))
    assert scores == pytest.approx(results.dev, abs=1e-6)
    (tmp_path / "asked.tsv").write_text("anchor\tpositive\nwho has a dog\tours\n")
    predict.run(str(folder), str(tmp_path / "asked.tsv"), str(tmp_path / "out.tsv"), progress=False)
    header, row = (tmp_path / "out.tsv").read_text().splitlines()
    vectors = ob.load(folder).embed(["who has a dog", "ours"], normalize=True)
    assert header.split("\t")[-1] == "similarity"
    assert float(row.split("\t")[-1]) == pytest.approx(vectors[0] @ vectors[1], abs=1e-5)


@pytest.mark.slow
def test_other_objectives_go_on_from_its_model(trained, texts, tmp_path):
    _, folder = trained
    options = {"train_file": "scored.tsv", "dev_file": "scored.tsv", "highest_score": 5.0}
    config = config_of(texts, model=str(folder), task_options=options)
    results = finetune.run(config, tmp_path / "cosine", progress=False)
    losses = tiny_runs.logged(tmp_path / "cosine", "cosine_loss")
    assert losses[-1] < losses[0] and set(results.dev) == {"spearman", "pearson"}
    options = {"train_file": "alone.txt", "dev_file": "scored.tsv"}
    config = config_of(texts, dropout=0.1, pooling="cls", task_options=options)
    finetune.run(config, tmp_path / "simcse", progress=False)
    assert ob.load(tmp_path / "simcse" / "model").vectors.poolings == ("cls",)


def test_the_pooling_of_a_folder_of_sentence_transformers_is_kept(trained, texts, tmp_path):
    _, folder = trained
    settings = json.loads((folder / "model.json").read_text())["embedding"]
    settings |= {"poolings": ["cls", "mean"], "steps": ["normalize"]}
    loaded = ob.load(folder)
    ob.save(tmp_path / "own", loaded.encoder, loaded.tokenizer, {"embedding": settings})
    convert.convert(str(tmp_path / "own"), str(tmp_path / "theirs"), target="huggingface")
    config = config_of(texts, model=str(tmp_path / "theirs"))
    source, (task, examples), _ = finetuning_preflight.finetuning(config)
    start = source.finetuning_start(config, task, examples)
    model = start.model(config, task.head_on(start.head, config), seed=0)
    ob.save(tmp_path / "again", model, start.tokenizer)
    vectors = ob.load(tmp_path / "again").vectors
    assert (vectors.poolings, vectors.steps) == (("cls", "mean"), ("normalize",))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"task_options": {"train_file": "alone.txt"}},
            "this model has none; set --config.dropout",
        ),
        ({"bilstm": True}, "--config.bilstm is not for sentence_vectors"),
        ({"gradient_accumulation": 2}, "in-batch negatives are of the whole batch"),
        ({"best_metric": "f1"}, "it is one of mrr, recall_at_1, recall_at_10"),
        ({"pooling": "mid"}, "pooling='mid'"),
    ],
)
def test_what_is_refused_before_it_begins(texts, fields, message):
    with pytest.raises(UserError, match=message):
        finetuning_preflight.finetuning(config_of(texts, **fields))


def test_its_options_are_for_this_task(tmp_path):
    texts = tiny_runs.write_labelled_texts(tmp_path)
    config = config_of(texts, task="text_classification", task_options={}, pooling="cls")
    with pytest.raises(UserError, match="--config.pooling is for sentence_vectors"):
        finetuning_preflight.finetuning(config)


@pytest.mark.parity
@pytest.mark.parametrize(("pooling", "steps"), [("mean", ("normalize",)), ("cls", ())])
def test_sentence_transformers_opens_the_folder(trained, tmp_path, pooling, steps):
    library = pytest.importorskip("sentence_transformers")
    loaded = ob.load(trained[1])
    model = SentenceEncoder(loaded.encoder, poolings=(pooling,), normalize=bool(steps))
    ob.save(tmp_path / "own", model, loaded.tokenizer, {"max_seq_length": 16})
    convert.convert(str(tmp_path / "own"), str(tmp_path / "theirs"), target="huggingface")
    texts = ["Who has a dog?", "the river " * 20, "Ours, they say."]
    theirs = library.SentenceTransformer(str(tmp_path / "theirs"), device="cpu")
    for folder in ("own", "theirs"):
        with pytest.warns(UserWarning, match="1 of 3 texts are longer than 16 tokens"):
            found = ob.load(tmp_path / folder).embed(texts)
        np.testing.assert_allclose(found, theirs.encode(texts), rtol=1e-6, atol=1e-6)
    assert theirs.max_seq_length == 16


@pytest.mark.parity
def test_losses_and_gradients_are_those_of_sentence_transformers():
    torch = pytest.importorskip("torch")
    losses = pytest.importorskip("sentence_transformers.losses")
    draw = np.random.default_rng(1)
    vectors = draw.normal(size=(5, 3, 8)).astype("float32")
    labels = draw.uniform(-1, 1, 5).astype("float32")
    encoder = ob.BertEncoder(tiny_runs.bert(), seed=1)
    batch = {"input_mask": np.ones((5, 3, 2), "int32"), "label_ids": labels}
    for objective, theirs, count in (
        ("in_batch", losses.MultipleNegativesRankingLoss(torch.nn.Identity(), scale=20.0), 3),
        ("cosine", losses.CosineSimilarityLoss(torch.nn.Identity()), 2),
    ):
        model = SentenceEncoder(encoder, objective, temperature=0.05)
        given = torch.tensor(vectors[:, :count], requires_grad=True)
        expected = theirs.compute_loss_from_embeddings(list(given.unbind(1)), torch.tensor(labels))
        expected.backward()
        total, gradient = _with_gradient(model, batch, vectors[:, :count])
        assert total == pytest.approx(expected.item(), rel=1e-6)
        np.testing.assert_allclose(gradient, given.grad.numpy(), atol=1e-6)


def _with_gradient(model, batch, vectors):
    import tensorflow as tf

    batch = {**batch, "input_mask": batch["input_mask"][:, : vectors.shape[1]]}
    given = tf.Variable(vectors)
    with tf.GradientTape() as tape:
        ((total, weight),) = model.loss_terms(batch, {"vectors": given}).values()
        loss = total / weight
    return float(loss), keras.ops.convert_to_numpy(tape.gradient(loss, given))
