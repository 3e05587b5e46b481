"""Objectives of ALBERT, ELECTRA and SpanBERT against hand-worked examples, on any backend."""

import keras
import numpy as np
import pytest
from scipy.special import erf, log_softmax

from experiments.beyond.albert.objective import SentenceOrder, swap_segments
from experiments.beyond.common.draws import draw
from experiments.beyond.spanbert.objective import SpanBoundary, span_ends
from official_bert import BertPretrainer
from official_bert.randomness import make_seed


def tensors(batch):
    return {name: keras.ops.convert_to_tensor(x) for name, x in batch.items()}


def arrays(batch):
    return {name: keras.ops.convert_to_numpy(x) for name, x in batch.items()}


def test_swapped_segments_by_hand():
    """[CLS] a a [SEP] b [SEP] becomes [CLS] b [SEP] a a [SEP]; predictions move along."""
    batch = {
        "input_ids": np.array([[1, 10, 11, 2, 20, 2, 0], [1, 10, 11, 2, 0, 0, 0]] * 2, "int32"),
        "input_mask": np.array([[1, 1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 0, 0, 0]] * 2, "int32"),
        "segment_ids": np.array([[0, 0, 0, 0, 1, 1, 0], [0, 0, 0, 0, 0, 0, 0]] * 2, "int32"),
        "masked_lm_positions": np.array([[2, 4, 0], [2, 0, 0]] * 2, "int32"),
    }
    swapped = keras.ops.convert_to_tensor(np.array([1, 1, 0, 0], "int32"))
    found = arrays(swap_segments(tensors(batch), swapped))
    assert found["input_ids"][0].tolist() == [1, 20, 2, 10, 11, 2, 0]
    assert found["segment_ids"][0].tolist() == [0, 0, 0, 1, 1, 1, 0]
    assert found["masked_lm_positions"][0].tolist() == [4, 1, 0]
    for name, before in batch.items():  # one segment, and rows that stay
        np.testing.assert_array_equal(found[name][1:], before[1:])


def test_sentence_order_counts_pairs_that_belong_together(config, pretraining_batch):
    model = BertPretrainer(config, ["masked_lm", "sentence_order"], seed=0)
    batch = {**pretraining_batch, "next_sentence_labels": np.array([[0], [1]] * 4, "int32")}
    found = model(batch)
    outputs = arrays(found)
    assert outputs["sentence_order_labels"].tolist() == [0, 1] * 4  # in evaluation
    assert outputs["sentence_order_weights"].tolist() == [1, 0] * 4
    logits = outputs["sentence_order_logits"][::2]
    expected = (np.log(np.exp(logits).sum(-1)) - logits[:, 0]).sum()
    total, weight = model.loss_terms(tensors(batch), found)["sentence_order_loss"]
    assert float(weight) == 4
    np.testing.assert_allclose(float(total), expected, rtol=1e-5)
    drawn = [model(batch, training=True, seed=make_seed(0, step)) for step in range(20)]
    swapped = [keras.ops.convert_to_numpy(o["sentence_order_labels"]) for o in drawn]
    assert 0.3 < np.mean(swapped) < 0.7 and len({x.tobytes() for x in swapped}) > 15


@pytest.mark.parametrize(
    ("random_as_swapped", "labels", "weights"),
    [
        (False, [0, 1, 0, 1, 0, 1], [1, 1, 0, 0, 0, 0]),
        (True, [0, 1, 1, 1, 0, 1], [1, 1, 1, 1, 0, 0]),
    ],
)
def test_sentence_order_by_hand(random_as_swapped, labels, weights):
    """Two rows whose B follows, two whose B is random, and two of one segment, as in evaluation."""
    pair, single = [1, 10, 11, 2, 20, 2, 0], [1, 10, 11, 2, 0, 0, 0]
    ids = np.array([pair] * 4 + [single] * 2, "int32")
    batch = {
        "input_ids": ids,
        "input_mask": (ids > 0).astype("int32"),
        "segment_ids": np.array([[0, 0, 0, 0, 1, 1, 0]] * 4 + [[0] * 7] * 2, "int32"),
        "masked_lm_positions": np.array([[2, 4]] * 6, "int32"),
        "next_sentence_labels": np.array([[0], [0], [1], [1], [0], [0]], "int32"),
    }
    one = SentenceOrder(random_as_swapped)
    found = arrays(one.corrupt(None, tensors(batch), None))
    assert found["sentence_order_labels"].tolist() == labels
    assert found["sentence_order_weights"].tolist() == weights
    # A row that does not count may be swapped or not; one that counts as random stays.
    swapped = (found["input_ids"] != ids).any(axis=1)
    assert swapped.tolist() == [False, True, False, not random_as_swapped, False, False]
    assert found["input_ids"][1].tolist() == [1, 20, 2, 10, 11, 2, 0]
    assert found["masked_lm_positions"].tolist() == [[4, 1] if s else [2, 4] for s in swapped]

    logits = np.random.default_rng(0).normal(size=(6, 2)).astype("float32")
    outputs = tensors({**found, "sentence_order_logits": logits})
    losses = -log_softmax(logits, axis=1)[np.arange(6), labels]
    total, weight = one.loss_terms(batch, outputs)["sentence_order_loss"]
    assert float(weight) == sum(weights)
    np.testing.assert_allclose(float(total), losses @ np.array(weights), rtol=1e-6)
    hits, weight = one.metric_terms(batch, outputs)["sentence_order_accuracy"]
    assert float(hits) == (logits.argmax(1) == labels) @ np.array(weights)
    assert one.to_spec() == (
        "sentence_order"
        if not random_as_swapped
        else {"name": "sentence_order", "random_as_swapped": True}
    )


def test_replaced_tokens_by_hand(config, pretraining_batch):
    """The encoder's input, the tokens that count as replaced, and both losses."""
    model = BertPretrainer(config, [{"name": "replaced_token", "generator": 0.5}], seed=0)
    assert [block.attention.heads for block in model.generator.blocks] == [1, 1]
    seed = make_seed(0, 1)
    read = arrays(model.objectives[0].corrupt(model, tensors(pretraining_batch), seed))
    original, places = pretraining_batch["input_ids"].copy(), pretraining_batch
    rows = np.arange(len(original))[:, None]
    at, real = places["masked_lm_positions"][:, :3], places["masked_lm_ids"][:, :3]
    original[rows, at] = real
    np.testing.assert_array_equal(read["replaced_token_labels"], read["input_ids"] != original)
    changed = np.argwhere(read["replaced_token_labels"])
    assert set(changed[:, 1]) <= {1, 3, 5} and len(changed) > 15  # of 24, 50 pieces

    found = model(pretraining_batch)
    outputs = arrays(found)
    logits, labels = outputs["replaced_token_logits"], outputs["replaced_token_labels"]
    chance = 1 / (1 + np.exp(-logits.astype("float64")))
    losses = -np.where(labels == 1, np.log(chance), np.log(1 - chance))
    mask = pretraining_batch["input_mask"]
    mean = (losses * mask).sum() / mask.sum()
    picked = log_softmax(outputs["masked_lm_logits"], -1)[rows, np.arange(3), real]
    loss = model.compute_loss(x=tensors(pretraining_batch), y_pred=found)
    np.testing.assert_allclose(float(loss), 50 * mean - picked.mean(), rtol=1e-5)


def test_ends_of_spans_by_hand():
    positions = np.array([[2, 3, 4, 7, 9, 10], [1, 5, 6, 0, 0, 0]], "int32")
    ends = span_ends(keras.ops.convert_to_tensor(positions))
    first, last = map(keras.ops.convert_to_numpy, ends)
    assert first.tolist() == [[2, 2, 2, 7, 9, 9], [1, 5, 5, 0, 0, 0]]
    assert last.tolist() == [[4, 4, 4, 7, 10, 10], [1, 6, 6, 0, 0, 0]]


def test_span_boundary_by_hand(config, pretraining_batch):
    """A span of two tokens: both are predicted from the tokens outside it and their places."""
    model = BertPretrainer(config, ["masked_lm", SpanBoundary(position_size=6, most=4)], seed=0)
    batch = {**pretraining_batch, "masked_lm_positions": np.tile([[3, 4, 6, 0]], (8, 1))}
    batch["masked_lm_positions"] = batch["masked_lm_positions"].astype("int32")
    found = model(batch)
    outputs = arrays(found)
    sequence = keras.ops.convert_to_numpy(model.encoder(batch)["sequence_output"])

    def layer(x, dense, norm):
        x = x @ dense.kernel.numpy() + dense.bias.numpy()
        x = x * (1 + erf(x / np.sqrt(2))) / 2
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
        return x * norm.gamma.numpy() + norm.beta.numpy()

    head, scores = model.span_boundary, model.span_boundary.scores
    table = model.encoder.embeddings.word_embeddings.numpy()
    places = head.position_embeddings.numpy()
    for slot, (left, right, place) in enumerate([(2, 5, 0), (2, 5, 1), (5, 7, 0)]):
        where = np.tile(places[place], (8, 1))
        x = np.concatenate([sequence[:, left], sequence[:, right], where], axis=-1)
        x = layer(layer(x, head.dense, head.norm), scores.transform, scores.norm)
        expected = x @ table.T + scores.bias.numpy()
        np.testing.assert_allclose(outputs["span_boundary_logits"][:, slot], expected, atol=1e-5)
    log = log_softmax(outputs["span_boundary_logits"].astype("float64"), -1)
    picked = np.take_along_axis(log, batch["masked_lm_ids"][..., None], -1)[..., 0]
    total, weight = model.loss_terms(tensors(batch), found)["span_boundary_loss"]
    assert float(weight) == 24
    np.testing.assert_allclose(float(total), -picked[:, :3].sum(), rtol=1e-5)


def test_draws_follow_the_probabilities():
    logits = np.log(np.array([0.6, 0.3, 0.1], "float32"))
    drawn = draw(np.tile(logits, (20_000, 1)), make_seed(3, 0))
    shares = np.bincount(keras.ops.convert_to_numpy(drawn), minlength=3) / 20_000
    np.testing.assert_allclose(shares, [0.6, 0.3, 0.1], atol=0.015)  # 4 standard errors
