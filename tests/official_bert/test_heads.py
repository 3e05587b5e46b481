"""The fine-tuning heads: shapes, losses, padding rows, learning, saving."""

import dataclasses

import keras
import numpy as np
import pytest

import official_bert as ob

LABELS = np.array([0, 1, 2, 0, 1, 2, 0, 1], "int32")


def head_and_batch(kind, config, inputs, bilstm=False):
    encoder = ob.BertEncoder(config, seed=0)
    if kind == "single_label":
        model = ob.BertClassifier(encoder, 3, bilstm=bilstm, seed=1)
        return model, {**inputs, "label_ids": LABELS}
    if kind == "multi_label":
        model = ob.BertClassifier(encoder, 3, "multi_label", bilstm, mean_pooling=True, seed=1)
        return model, {**inputs, "label_ids": np.eye(3, dtype="float32")[LABELS]}
    if kind == "regression":
        model = ob.BertClassifier(encoder, 1, "regression", bilstm=bilstm, seed=1)
        return model, {**inputs, "label_ids": LABELS.astype("float32")}
    if kind == "span":
        model = ob.BertSpan(encoder, bilstm=bilstm, seed=1)
        return model, {**inputs, "start_positions": LABELS, "end_positions": LABELS + 2}
    if kind == "multiple_choice":
        orders = [np.arange(8), np.arange(8)[::-1], np.roll(np.arange(8), 3)]
        choices = {k: np.stack([v[order] for order in orders], 1) for k, v in inputs.items()}
        model = ob.BertMultipleChoice(encoder, bilstm=bilstm, seed=1)
        return model, {**choices, "label_ids": LABELS}
    labels = np.where(inputs["input_mask"] > 0, inputs["input_ids"] % 3, -1).astype("int32")
    return ob.BertTagger(encoder, 3, bilstm=bilstm, seed=1), {**inputs, "label_ids": labels}


def numbers(tensors):
    """Return tensors of any backend, alone or in dictionaries, as NumPy arrays."""
    return keras.tree.map_structure(keras.ops.convert_to_numpy, tensors)


KINDS = ["single_label", "multi_label", "regression", "span", "multiple_choice", "tagging"]


@pytest.mark.parametrize("kind", ["single_label", "span"])  # all: tests/goldens
def test_fit_learns(kind, config, inputs):
    rates = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config = dataclasses.replace(config, num_hidden_layers=1, **rates)
    model, batch = head_and_batch(kind, config, inputs)
    model.compile(optimizer=ob.BertAdamW(3e-3))
    data = {name: np.concatenate([x] * 25) for name, x in batch.items()}
    losses = model.fit(data, batch_size=8, epochs=2, shuffle=False, verbose=0).history["loss"]
    assert losses[1] < 0.8 * losses[0]


WITHOUT, WITH = [(kind, False) for kind in KINDS], [("single_label", True), ("span", True)]


@pytest.mark.parametrize(("kind", "bilstm"), WITHOUT + WITH)
def test_saved_and_loaded_as_a_keras_file(kind, bilstm, config, inputs, tmp_path):
    model, batch = head_and_batch(kind, config, inputs, bilstm)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    again = numbers(loaded(batch))
    for name, value in numbers(model(batch)).items():
        np.testing.assert_array_equal(again[name], value)


@pytest.mark.parametrize("kind", KINDS)
def test_padding_rows_do_not_count(kind, config, inputs):
    model, batch = head_and_batch(kind, config, inputs)
    first_five = {name: value[:5] for name, value in batch.items()}
    weights = np.array([1, 1, 1, 1, 1, 0, 0, 0], "float32")
    padded = {**batch, "example_weights": weights}
    for terms in ("loss_terms", "metric_terms"):
        expected = numbers(getattr(model, terms)(first_five, model(first_five)))
        actual = numbers(getattr(model, terms)(padded, model(padded)))
        assert expected.keys() == actual.keys()
        for name in expected:
            np.testing.assert_allclose(actual[name], expected[name], rtol=1e-5)


@pytest.mark.parametrize("kind", ["single_label", "multiple_choice"])
@pytest.mark.parametrize("bilstm", [False, True])
def test_left_to_right_classifies_after_the_last_token(kind, bilstm, config, inputs):
    config = dataclasses.replace(config, attention_direction="left_to_right")
    model, batch = head_and_batch(kind, config, inputs, bilstm)
    changed = {**batch, "input_ids": batch["input_ids"].copy()}
    changed["input_ids"][..., -1] = 7
    difference = np.abs(numbers(model(batch)["logits"] - model(changed)["logits"]))
    assert difference[0].max() > 1e-6  # row 0 is full: its last token counts


def test_bilstm_reads_both_directions_and_no_padding(config, inputs):
    model, batch = head_and_batch("tagging", config, inputs, bilstm=True)
    logits = numbers(model(batch)["logits"])
    behind_the_mask = {**batch, "input_ids": batch["input_ids"].copy()}
    behind_the_mask["input_ids"][1, 9:] = 3
    after = numbers(model(behind_the_mask)["logits"])
    np.testing.assert_allclose(after[1, :9], logits[1, :9], atol=1e-6)


def test_dropout_is_active_in_training_only(config, inputs):
    model, batch = head_and_batch("single_label", config, inputs)
    one, two = (numbers(model(batch, training=True)["logits"]) for _ in range(2))
    assert np.abs(one - two).max() > 1e-5
    one, two = (numbers(model(batch)["logits"]) for _ in range(2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_scores_are_float32_under_every_policy(policy, config, inputs):
    """In bfloat16 the scores of a long passage tie, and with them n-best lists and thresholds."""
    model = ob.BertSpan(ob.BertEncoder(config, seed=0, dtype=policy), seed=1)
    scores = model(inputs)["start_logits"]
    assert model.encoder.compute_dtype == policy.removeprefix("mixed_")
    assert keras.backend.standardize_dtype(scores.dtype) == "float32"
    rounded = keras.ops.cast(keras.ops.cast(scores, model.encoder.compute_dtype), "float32")
    assert np.mean(numbers(scores) == numbers(rounded)) < 0.1
    classifier = ob.BertClassifier(ob.BertEncoder(config, seed=0, dtype=policy), 3, seed=1)
    assert keras.backend.standardize_dtype(classifier(inputs)["logits"].dtype) == "float32"


def test_impossible_problems_are_refused(config):
    encoder = ob.BertEncoder(config)
    with pytest.raises(ob.UserError, match="problem=.*; it is one of"):
        ob.BertClassifier(encoder, 2, problem="ranking")
    with pytest.raises(ob.UserError, match="num_labels=2"):
        ob.BertClassifier(encoder, 2, problem="regression")


@pytest.mark.parametrize("direction", ["bidirectional", "left_to_right"])
def test_mean_pooling_reads_the_mean_in_place_of_a_token(direction, config, inputs):
    config = dataclasses.replace(config, attention_direction=direction)
    model = ob.BertClassifier(ob.BertEncoder(config, seed=0), 3, mean_pooling=True, seed=1)
    outputs = numbers(model.encoder(inputs)["sequence_output"])
    mask = inputs["input_mask"] > 0
    means = np.array([x[m].mean(axis=0) for x, m in zip(outputs, mask, strict=True)])
    layers = (model.encoder.pooler, model.head)
    (kernel, bias), (head_kernel, head_bias) = (numbers([x.kernel, x.bias]) for x in layers)
    expected = np.tanh(means @ kernel + bias) @ head_kernel + head_bias
    logits = numbers(model(inputs)["logits"])
    np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-6)
    again = ob.BertClassifier.from_config(model.get_config())
    assert again.mean_pooling
