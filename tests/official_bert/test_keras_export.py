"""`model.export(path)`, Keras' own, of the encoder, the heads and pre-trainers."""

import keras
import numpy as np
import pytest

import official_bert as ob

tf = pytest.importorskip("tensorflow")

if keras.backend.backend() != "tensorflow":
    pytest.skip("Keras exports PyTorch's models otherwise", allow_module_level=True)


def check(model, batch, path):
    """Export: called by the name of each input, as a server does, it answers as the model."""
    model.export(path, verbose=False)
    inputs = {name: tf.constant(value) for name, value in batch.items()}
    found = tf.saved_model.load(path).signatures["serve"](**inputs)
    expected = dict(model.predict(batch, verbose=0))
    states = enumerate(expected.pop("hidden_states", ()))
    expected |= {f"hidden_states_{i}": state for i, state in states}
    assert set(found) == set(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, atol=1e-5)


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
    batch = {name: x[:4, :8].reshape(shape) for name, x in inputs.items()}
    batch["input_mask"][..., 0] = 1
    check(make(ob.BertEncoder(config, seed=0)), batch, tmp_path / "m")


def test_the_encoder_alone(config, inputs, tmp_path):
    check(ob.BertEncoder(config, seed=0), inputs, tmp_path / "e")


def test_after_fit(config, inputs, tmp_path):
    model = ob.BertClassifier(ob.BertEncoder(config, seed=0), 2)
    model.compile(ob.BertAdamW(1e-3))
    model.fit(inputs, np.arange(8) % 2, verbose=0)
    check(model, inputs, tmp_path / "m")


@pytest.mark.slow
def test_a_pretrainer(config, pretraining_batch, tmp_path):
    check(ob.BertPretrainer(config, seed=0), pretraining_batch, tmp_path / "p")
