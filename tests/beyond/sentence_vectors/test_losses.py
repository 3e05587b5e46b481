"""The losses of sentence vectors by hand, what is no candidate, and what is refused."""

import keras
import numpy as np
import pytest
import tiny_runs
from keras import ops

from experiments.beyond.sentence_vectors.model import SentenceEncoder
from experiments.training.settings.options import replaced
from official_bert import BertEncoder, UserError
from official_bert.checkpoints.sentence_vectors import POOLINGS

ROWS, TEXTS, LENGTH = 4, 3, 6


@pytest.fixture(scope="module")
def encoder():
    return BertEncoder(tiny_runs.bert(), seed=3)


@pytest.fixture(scope="module")
def batch():
    draw = np.random.default_rng(0)
    ids = draw.integers(5, 14, (ROWS, TEXTS, LENGTH)).astype("int32")
    mask = (np.arange(LENGTH) < draw.choice([3, LENGTH], (ROWS, TEXTS, 1))).astype("int32")
    mask[1, 2] = 0  # one example has no hard negative
    return {
        "input_ids": ids, "input_mask": mask, "segment_ids": np.zeros_like(ids),
        "label_ids": np.array([0.1, 0.9, -0.3, 1.0], "float32"),
    }  # fmt: skip


def values(x):
    return ops.convert_to_numpy(x).astype(np.float64)


@pytest.fixture(scope="module")
def pooled(encoder, batch):
    """Return the mean vectors [B, T, D], one text at a time."""
    rows = np.zeros((ROWS, TEXTS, encoder.config.hidden_size))
    for place in np.ndindex(ROWS, TEXTS):
        count = max(1, batch["input_mask"][place].sum())
        ids = batch["input_ids"][place][None, :count]
        states = encoder({"input_ids": ids, "input_mask": np.ones_like(ids)})["sequence_output"]
        rows[place] = values(states)[0].mean(axis=0)
    return rows


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def in_batch(vectors, mask, weights, temperature):
    """Return the sum of the losses of rows that count, one softmax at a time."""
    vectors, total = unit(vectors), 0.0
    candidates = [(row, text) for text in range(1, TEXTS) for row in range(ROWS)]
    candidates = [(row, text) for row, text in candidates if weights[row] and mask[row, text].any()]
    for row in np.flatnonzero(weights):
        scores = np.array([vectors[row, 0] @ vectors[other] / temperature for other in candidates])
        own = candidates.index((row, 1))
        total += np.log(np.exp(scores - scores[own]).sum()) * weights[row]
    return total


@pytest.mark.parametrize("weights", [[1, 1, 1, 1], [1, 1, 1, 0]])
def test_in_batch_negatives_by_hand(encoder, batch, pooled, weights):
    model = SentenceEncoder(encoder, temperature=0.1)
    given = {**batch, "example_weights": np.array(weights, "float32")}
    outputs = model(given)
    np.testing.assert_allclose(values(outputs["vectors"]), pooled, atol=1e-5)
    ((total, weight),) = model.loss_terms(given, outputs).values()
    expected = in_batch(pooled, batch["input_mask"], np.array(weights), 0.1)
    assert float(weight) == sum(weights)
    assert float(total) == pytest.approx(expected, rel=1e-4)
    # The hard negatives count: with a text nearer to the first it is above, without them below.
    pairs = {name: x[:, :2] if x.ndim == 3 else x for name, x in given.items()}
    assert float(model.loss_terms(pairs, model(pairs))["in_batch_loss"][0]) < float(total)
    (hits, _) = model.metric_terms(given, outputs)["accuracy"]
    assert 0 <= float(hits) <= sum(weights)


def test_cosines_by_hand(encoder, batch, pooled):
    model = SentenceEncoder(encoder, objective="cosine")
    weights = np.array([1, 1, 0, 1], "float32")
    given = {**batch, "example_weights": weights}
    first, second, _ = unit(pooled).swapaxes(0, 1)
    expected = ((np.sum(first * second, axis=1) - batch["label_ids"]) ** 2 * weights).sum()
    ((total, weight),) = model.loss_terms(given, model(given)).values()
    assert (float(weight), float(total)) == (3, pytest.approx(expected, rel=1e-4))
    assert model.metric_terms(given, model(given)) == {}


def test_two_dropouts_of_one_text_differ_and_are_found_again(encoder, batch):
    dropping = BertEncoder(replaced(encoder.config, hidden_dropout_prob=0.2), seed=3)
    model = SentenceEncoder(dropping, seed=1)
    twice = {name: np.stack([batch[name][:, 0]] * 2, axis=1) for name in list(batch)[:3]}
    seed = np.array([5, 7], "int32")
    vectors, again = (values(model(twice, training=True, seed=seed)["vectors"]) for _ in "ab")
    np.testing.assert_array_equal(vectors, again)
    assert np.abs(vectors[:, 0] - vectors[:, 1]).max() > 1e-3
    still = values(model(twice)["vectors"])
    np.testing.assert_allclose(still[:, 0], still[:, 1], atol=1e-6)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_absent_texts_leave_finite_gradients(encoder, batch, pooling):
    tf = pytest.importorskip("tensorflow")
    model = SentenceEncoder(encoder, poolings=(pooling,))
    with tf.GradientTape() as tape:
        ((total, weight),) = model.loss_terms(batch, model(batch)).values()
    for gradient in tape.gradient(total / weight, model.trainable_variables):
        assert gradient is None or np.isfinite(tf.convert_to_tensor(gradient)).all()


def test_kept_in_a_keras_file(encoder, batch, tmp_path):
    model = SentenceEncoder(encoder, "cosine", poolings=("cls", "max"), normalize=True)
    model.save(tmp_path / "x.keras")
    again = keras.saving.load_model(tmp_path / "x.keras")
    assert (again.objective, again.vectors) == ("cosine", model.vectors)
    np.testing.assert_array_equal(*(values(one(batch)["vectors"]) for one in (model, again)))
    with pytest.raises(UserError, match=r"trained on \[examples, texts, tokens\]"):
        model({"input_ids": batch["input_ids"][:, 0]})
    with pytest.raises(UserError, match="objective='far'.*in_batch, cosine"):
        SentenceEncoder(encoder, "far")


def test_plain_fit_learns(batch):
    model = SentenceEncoder(BertEncoder(tiny_runs.bert(), seed=3), seed=0)
    model.compile(keras.optimizers.Adam(1e-2))
    inputs = {name: batch[name] for name in list(batch)[:3]}
    losses = model.fit(inputs, epochs=12, batch_size=ROWS, shuffle=False, verbose=0).history["loss"]
    assert min(losses[-3:]) < losses[0]
