"""BertPretrainer: losses against numpy, both objectives, `compile` and `fit`."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy.special import log_softmax

from official_bert import BertAdamW, BertPretrainer
from official_bert.objectives.masked_lm import restore_masked_tokens
from official_bert.objectives.next_token import NextToken
from official_bert.randomness import make_seed


@pytest.fixture
def left_to_right(config):
    return dataclasses.replace(config, attention_direction="left_to_right")


def restored(batch):
    tensors = {name: tf.constant(value) for name, value in batch.items()}
    return restore_masked_tokens(tensors)["input_ids"].numpy()


def dataset(batch, steps):
    return tf.data.Dataset.from_tensors(batch).repeat(steps)


def test_losses_equal_the_formulas(config, pretraining_batch):
    batch = pretraining_batch
    model = BertPretrainer(config, seed=0)
    outputs = model(batch)
    log_probabilities = log_softmax(outputs["masked_lm_logits"].numpy(), axis=-1)
    picked = np.take_along_axis(log_probabilities, batch["masked_lm_ids"][..., None], -1)[..., 0]
    weights = batch["masked_lm_weights"]
    masked_lm = -(picked * weights).sum() / (weights.sum() + 1e-5)
    next_log = log_softmax(outputs["next_sentence_logits"].numpy(), axis=-1)
    next_sentence = -np.take_along_axis(next_log, batch["next_sentence_labels"], 1).mean()
    terms = {name: float(s / w) for name, (s, w) in model.loss_terms(batch, outputs).items()}
    np.testing.assert_allclose(terms["masked_lm_loss"], masked_lm, rtol=1e-5)
    np.testing.assert_allclose(terms["next_sentence_loss"], next_sentence, rtol=1e-5)
    loss = model.compute_loss(x=batch, y_pred=outputs)
    np.testing.assert_allclose(float(loss), masked_lm + next_sentence, rtol=1e-5)


def test_biases_and_sentence_scores_are_float32_in_bfloat16(config, pretraining_batch):
    model = BertPretrainer(config, seed=0, dtype="mixed_bfloat16")
    before = model(pretraining_batch)
    assert before["next_sentence_logits"].dtype == tf.float32
    bias = np.linspace(0, 1e-5, 50, dtype="float32") + 1  # 1 and 1 + 1e-5 are one bfloat16
    model.masked_lm.bias.assign(bias)
    after = model(pretraining_batch)["masked_lm_logits"]
    difference = after.numpy() - before["masked_lm_logits"].numpy()
    np.testing.assert_allclose(difference, np.broadcast_to(bias, difference.shape), atol=2e-6)


def test_scores_are_tied_to_the_token_table(config, pretraining_batch):
    model = BertPretrainer(config, seed=0)
    before = model(pretraining_batch)["masked_lm_logits"].numpy()
    table = model.encoder.embeddings.word_embeddings
    changed = table.numpy()
    changed[0] += np.linspace(-1, 1, 16)  # [PAD]: as an input it stands only behind the mask
    table.assign(changed)
    after = model(pretraining_batch)["masked_lm_logits"].numpy()
    assert np.abs(after - before)[..., 0].max() > 1e-3
    np.testing.assert_allclose(after[..., 1:], before[..., 1:], atol=1e-5)


def test_restoring_masked_tokens(pretraining_batch):
    expected = pretraining_batch["input_ids"].copy()
    places, ids = (pretraining_batch[f"masked_lm_{name}"] for name in ("positions", "ids"))
    np.put_along_axis(expected, places[:, :3], ids[:, :3], axis=1)  # the fourth place is empty
    np.testing.assert_array_equal(restored(pretraining_batch), expected)


def test_left_to_right_predicts_every_next_token(left_to_right, pretraining_batch):
    model = BertPretrainer(left_to_right, ["next_token"], seed=0)
    outputs = model(pretraining_batch)
    following = restored(pretraining_batch)[:, 1:], pretraining_batch["input_mask"][:, 1:]
    np.testing.assert_array_equal(outputs["masked_lm_ids"], following[0])
    np.testing.assert_array_equal(outputs["masked_lm_weights"], following[1])
    assert outputs["masked_lm_logits"].shape == (8, 15, 50)
    assert list(model.loss_terms(pretraining_batch, outputs)) == ["masked_lm_loss"]


@pytest.mark.slow
def test_left_to_right_on_a_fraction_of_the_positions(left_to_right, pretraining_batch):
    every = BertPretrainer(left_to_right, ["next_token"], seed=0)
    some = BertPretrainer(left_to_right, [NextToken(fraction=0.4)], seed=0)
    all_ids = every(pretraining_batch)["masked_lm_ids"].numpy()
    seen = set()
    for step in range(20):
        outputs = some(pretraining_batch, training=True, seed=make_seed(0, step))
        assert outputs["masked_lm_logits"].shape == (8, 6, 50)
        # Row 1 has 8 next tokens, more than the 6 drawn: padding is never chosen.
        assert outputs["masked_lm_weights"].numpy().all()
        for row, ids in enumerate(outputs["masked_lm_ids"].numpy()):
            assert set(ids) <= set(all_ids[row])
        seen.add(outputs["masked_lm_ids"].numpy().tobytes())
    assert len(seen) == 20
    assert some(pretraining_batch)["masked_lm_ids"].shape == (8, 15)  # evaluation reads all


def test_left_to_right_in_a_graph_of_any_length(left_to_right, pretraining_batch):
    model = BertPretrainer(left_to_right, [NextToken(fraction=0.4)], seed=0)
    shapes = {name: tf.TensorSpec([None, None], x.dtype) for name, x in pretraining_batch.items()}
    seed = make_seed(0, 1)
    compiled = tf.function(
        lambda batch: model(batch, training=True, seed=seed), input_signature=[shapes]
    )
    traced = compiled(pretraining_batch)
    expected = model(pretraining_batch, training=True, seed=seed)
    np.testing.assert_array_equal(traced["masked_lm_ids"], expected["masked_lm_ids"])
    np.testing.assert_allclose(
        traced["masked_lm_logits"], expected["masked_lm_logits"], atol=1e-5, rtol=1e-5
    )


@pytest.mark.parametrize(
    "objectives",
    [("masked_lm", "next_sentence"), pytest.param(("masked_lm",), marks=pytest.mark.slow)],
)
def test_fit_learns_and_reports(config, pretraining_batch, objectives):
    """Without next-sentence prediction pooler and head keep their values."""
    keras.utils.set_random_seed(0)
    model = BertPretrainer(dataclasses.replace(config, num_hidden_layers=1), objectives, seed=0)
    unused = [model.encoder.pooler.kernel, model.next_sentence.kernel]
    before = [weights.numpy() for weights in unused]
    model.compile(optimizer=BertAdamW(1e-2))
    history = model.fit(dataset(pretraining_batch, 30), epochs=2, verbose=0).history
    assert history["masked_lm_loss"][-1] < 0.7 * history["masked_lm_loss"][0]
    np.testing.assert_allclose(
        history["masked_lm_perplexity"], np.exp(history["masked_lm_loss"]), rtol=1e-4
    )
    with_next_sentence = "next_sentence" in objectives
    assert ("next_sentence_accuracy" in history) == with_next_sentence
    for weights, old in zip(unused, before, strict=True):
        assert np.array_equal(weights.numpy(), old) != with_next_sentence
    results = model.evaluate(dataset(pretraining_batch, 1), return_dict=True, verbose=0)
    assert results["masked_lm_accuracy"] > 0.5


def test_saved_and_loaded_as_a_keras_file(left_to_right, pretraining_batch, tmp_path):
    model = BertPretrainer(left_to_right, [NextToken(fraction=0.5)], seed=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.objectives == (NextToken(fraction=0.5),)
    np.testing.assert_array_equal(
        loaded(pretraining_batch)["masked_lm_logits"], model(pretraining_batch)["masked_lm_logits"]
    )
