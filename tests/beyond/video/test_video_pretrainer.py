"""VideoBERT's model: rows that stay, rows from centroids, what alignment reads."""

import dataclasses

import keras
import numpy as np
import pytest
from keras import ops

from experiments.beyond.video import model as video
from official_bert import BertConfig
from official_bert.pretraining import BertPretrainer

CONFIG = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
                    intermediate_size=8, max_position_embeddings=8)  # fmt: skip
ROWS = np.arange(24, dtype="float32").reshape(3, 8) / 24  # ids 6 to 8


def array(x):
    return ops.convert_to_numpy(x)


@pytest.fixture
def batch():
    return {
        "input_ids": np.array([[1, 4, 5, 6, 7, 2], [1, 6, 3, 8, 2, 0]], "int32"),
        "input_mask": np.array([[1] * 6, [1] * 5 + [0]], "int32"),
        "segment_ids": np.array([[0, 0, 0, 0, 1, 1], [0, 1, 1, 1, 1, 0]], "int32"),
        "masked_lm_positions": np.array([[2, 4], [2, 0]], "int32"),
        "masked_lm_ids": np.array([[5, 8], [7, 0]], "int32"),
        "masked_lm_weights": np.array([[1, 1], [1, 0]], "float32"),
        "alignment_labels": np.array([[1], [0]], "int32"),
        "alignment_weights": np.array([[1], [0]], "float32"),
    }


@pytest.mark.parametrize("frozen", [True, False])
def test_frozen_rows_do_not_move(batch, frozen):
    model = video.pretrainer(CONFIG, ROWS, frozen, seed=0)
    embeddings = model.encoder.embeddings
    assert tuple(embeddings.word_embeddings.shape) == (9, 8)
    np.testing.assert_array_equal(array(embeddings.word_embeddings)[6:], ROWS)
    text = array(embeddings.text_rows)
    model.compile(keras.optimizers.AdamW(0.1, weight_decay=0.1), run_eagerly=True)
    for _ in range(3):
        model.train_on_batch(batch)
    moved = array(embeddings.word_embeddings)
    assert (moved[6:] == ROWS).all() == frozen and (frozen or (moved[6:] != ROWS).any())
    assert (moved[:6] != text).any(axis=1).all(), "those of text do"
    logits = array(model(batch)["masked_lm_logits"])
    assert logits.shape == (2, 2, 9), "visual words are told apart as pieces are"


def test_alignment_reads_the_last_state_of_cls(batch):
    model = video.pretrainer(CONFIG, ROWS, True, seed=0)
    outputs, encoded = model(batch), model.encoder(batch)
    logits = array(outputs["alignment_logits"])
    np.testing.assert_allclose(
        logits, array(model.alignment(encoded["sequence_output"][:, 0])), atol=1e-6
    )
    terms = model.loss_terms(batch, outputs)
    assert list(terms) == ["masked_lm_loss", "alignment_loss"]
    total, weight = (float(x) for x in terms["alignment_loss"])
    # Rows of one kind alone do not count.
    wanted = np.log(np.exp(logits[0]).sum()) - logits[0, 1]
    assert (total, weight) == (pytest.approx(float(wanted), rel=1e-5), 1.0)


@pytest.mark.parametrize("frozen", [True, False])
def test_begins_as_another_bert(batch, frozen):
    """The BERT has 5 pieces; rows behind them belong to no piece. On text both are one model."""
    other = BertPretrainer(dataclasses.replace(CONFIG, vocab_size=8), seed=1)
    other.masked_lm.bias.assign(np.arange(8))
    model = video.pretrainer(CONFIG, ROWS, frozen, seed=0)
    before = array(model.encoder.embeddings.word_embeddings)
    video.begin_as(model, other, 5)
    np.testing.assert_array_equal(array(model.encoder.embeddings.word_embeddings)[5:], before[5:])
    batch["input_ids"] = batch["input_ids"] % 5
    batch["next_sentence_labels"] = batch["alignment_labels"]
    found, wanted = (array(one(batch)["masked_lm_logits"])[..., :5] for one in (model, other))
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_rows_of_centroids_by_hand():
    # About the mean (3, 1) they lie 2 to the left and right, and 1 above and below.
    centroids = np.array([[1, 1], [5, 1], [3, 2], [3, 0]], "float32")
    scale = np.sqrt(2.5)  # of squares 4, 4, 1, 1
    wide = video.rows_of_centroids(centroids, 3)
    wanted = np.array([[2, 0, 0], [2, 0, 0], [0, 1, 0], [0, 1, 0]]) / scale
    np.testing.assert_allclose(np.abs(wide), wanted, atol=1e-6)
    assert wide[0, 0] == -wide[1, 0] and wide[2, 1] == -wide[3, 1]
    narrow = video.rows_of_centroids(centroids, 1)
    np.testing.assert_allclose(np.abs(narrow[:, 0]), np.array([2, 2, 0, 0]) / np.sqrt(2), atol=1e-6)
    assert not video.rows_of_centroids(centroids[:1], 2).any(), "one word has no direction"
