"""`model.export(path)`, Keras' own, of the encoder, the heads and pre-trainers."""

import keras
import numpy as np
import pytest

import official_bert as ob

tf = pytest.importorskip("tensorflow")

if keras.backend.backend() != "tensorflow":
    pytest.skip("Keras exports PyTorch's models otherwise", allow_module_level=True)


def served(path, batch):
    # Called by the name of each input, as a server does.
    loaded = tf.saved_model.load(path)
    inputs = {name: tf.constant(value) for name, value in batch.items()}
    return {name: x.numpy() for name, x in loaded.signatures["serve"](**inputs).items()}


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda encoder: ob.BertClassifier(encoder, 3, windows="mean"), (2, 2, 8)),
        pytest.param(
            lambda encoder: ob.BertSpan(encoder, bilstm=True), (4, 8), marks=pytest.mark.slow
        ),
    ],
)
def test_heads(make, shape, config, inputs, tmp_path):
    model = make(ob.BertEncoder(config, seed=0))
    batch = {name: x[:4, :8].reshape(shape) for name, x in inputs.items()}
    batch["input_mask"][..., 0] = 1
    model.export(tmp_path / "m", verbose=False)
    expected = model.predict(batch, verbose=0)
    found = served(tmp_path / "m", batch)
    assert set(found) == set(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, atol=1e-5)


def test_the_encoder_alone(config, inputs, tmp_path):
    encoder = ob.BertEncoder(config, seed=0)
    encoder.export(tmp_path / "e", verbose=False)
    expected, found = encoder(inputs), served(tmp_path / "e", inputs)
    for name in ("sequence_output", "pooled_output"):
        np.testing.assert_allclose(found[name], expected[name], atol=1e-5)
    for i, states in enumerate(expected["hidden_states"]):
        np.testing.assert_allclose(found[f"hidden_states_{i}"], states, atol=1e-5)


def test_after_fit(config, inputs, tmp_path):
    model = ob.BertClassifier(ob.BertEncoder(config, seed=0), 2)
    model.compile(ob.BertAdamW(1e-3))
    model.fit(inputs, np.arange(8) % 2, verbose=0)
    model.export(tmp_path / "m", verbose=False)
    expected = model.predict(inputs, verbose=0)["logits"]
    np.testing.assert_allclose(served(tmp_path / "m", inputs)["logits"], expected, atol=1e-5)


@pytest.mark.slow
def test_a_pretrainer(config, pretraining_batch, tmp_path):
    pretrainer = ob.BertPretrainer(config, seed=0)
    pretrainer.export(tmp_path / "p", verbose=False)
    found = served(tmp_path / "p", pretraining_batch)
    expected = pretrainer(pretraining_batch)
    for name in ("masked_lm_logits", "next_sentence_logits"):
        np.testing.assert_allclose(found[name], expected[name], atol=1e-5)
