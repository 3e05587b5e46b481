"""`fit(x, y)` as Keras users call it, and what they are told where they call it wrongly."""

import dataclasses
from unittest import mock

import keras
import numpy as np
import pytest

from official_bert import BertAdamW, BertClassifier, BertEncoder, BertSpan, BertTagger, UserError

LABELS = np.array([0, 1, 2, 0, 1, 2, 0, 1])


@pytest.fixture
def classifier(config):
    model = BertClassifier(BertEncoder(config, seed=0), 3, seed=1)
    model.compile(BertAdamW(1e-3))
    return model


def test_weights_of_rows_and_classes_weigh_the_loss(classifier, inputs):
    rows = {name: np.concatenate([x, x]) for name, x in inputs.items()}
    weights = np.array([1.0] * 8 + [3.0] * 8)
    labels = np.concatenate([LABELS, LABELS[::-1]])
    weighted = classifier.evaluate(rows, labels, sample_weight=weights, verbose=0, batch_size=16)
    repeated = {name: np.concatenate([x] * 4) for name, x in inputs.items()}
    four = np.concatenate([LABELS] + [LABELS[::-1]] * 3)
    plain = classifier.evaluate(repeated, four, verbose=0, batch_size=32)
    np.testing.assert_allclose(weighted, plain, rtol=1e-5)


def test_plain_arrays_callbacks_and_validation_data_in_float16(config, inputs):
    rates = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config = dataclasses.replace(config, num_hidden_layers=1, **rates)
    model = BertClassifier(BertEncoder(config, seed=0, dtype="mixed_float16"), 3, seed=1)
    model.compile(BertAdamW(3e-3))
    history = model.fit(
        inputs,
        LABELS,
        epochs=12,
        class_weight={0: 1.0, 1: 2.0, 2: 1.0},
        validation_data=(inputs, LABELS),
        callbacks=[keras.callbacks.EarlyStopping("val_loss", patience=12)],
        verbose=0,
    ).history
    assert history["val_loss"][-1] < 0.8 * history["val_loss"][0]


def test_a_step_is_traced_once(config, inputs):
    model = BertClassifier(BertEncoder(dataclasses.replace(config, num_hidden_layers=1)), 3)
    model.compile(BertAdamW(1e-3), jit_compile=False)
    loss = BertClassifier.compute_loss
    with mock.patch.object(BertClassifier, "compute_loss", autospec=True, side_effect=loss) as call:
        for _ in range(2):
            model.train_on_batch(inputs, LABELS)
    assert call.call_count == 1


def test_labels_of_spans_and_tokens(config, inputs):
    span = BertSpan(BertEncoder(config, seed=0), seed=1)
    starts = {"start_positions": LABELS, "end_positions": LABELS + 1}
    pair = float(span.compute_loss(inputs, (LABELS, LABELS + 1), span(inputs)))
    assert pair == float(span.compute_loss(inputs, starts, span(inputs)))
    tagger = BertTagger(BertEncoder(config, seed=0), 3, seed=1)
    tags, last = inputs["input_ids"] % 3, np.zeros((8, 16))
    last[:, -1] = 1
    weighted = tagger.compute_loss(inputs, tags, tagger(inputs), sample_weight=last)
    only = np.where(last, tags, -1)
    assert float(weighted) == pytest.approx(
        float(tagger.compute_loss(inputs, only, tagger(inputs)))
    )


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (["a", "b"], [0, 1], "x holds texts"),
        ({"input_ids": np.array(["a", "b"])}, [0, 1], "x holds texts"),
        (None, ["ham"] * 8, "label_ids are texts"),
        (None, np.eye(3)[LABELS], r"shape \(8, 3\).* np.argmax"),
        (None, LABELS + 1, "from 1 to 3, but the model has 3 classes"),
        (None, [[0, 1], [2]] * 4, "label_ids: rows of different lengths; pad them"),
        (None, {"label_ids": [[0, 1], [2]] * 4}, "label_ids: rows of different lengths"),
        ({"input_ids": LABELS, "input_mask": [[1], [1, 1]]}, LABELS, "input_mask: rows of diff"),
        (None, None, "no labels: give y"),
    ],
)
def test_what_is_no_input_or_label_is_named(classifier, inputs, x, y, message):
    with pytest.raises(UserError, match=message):
        classifier.fit(inputs if x is None else x, y, verbose=0)


def test_a_loss_of_ones_own_is_refused(classifier, inputs):
    classifier.compile("adam", loss="sparse_categorical_crossentropy")
    with pytest.raises(UserError, match="brings its own loss and metrics"):
        classifier.fit(inputs, LABELS)
