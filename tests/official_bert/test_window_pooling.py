"""Classifiers that pool the vectors of a long text's windows."""

import keras
import numpy as np
import pytest

from official_bert import BertClassifier, BertEncoder, UserError, predict
from official_bert.checkpoints import model_folder
from official_bert.checkpoints.hugging_face import huggingface
from official_bert.window_pooling import pool


def test_pooling_by_hand():
    vectors = np.array([[[1, 8], [3, 2], [5, 3]], [[4, -6], [9, 9], [9, 9]]], "float32")
    real = np.array([[1, 1, 1], [1, 0, 0]], "bool")
    for how, expected in (
        ("mean", [[3, 13 / 3], [4, -6]]),
        ("max", [[5, 8], [4, -6]]),
        ("first_last", [[3, 5.5], [4, -6]]),
    ):
        arguments = keras.ops.convert_to_tensor(vectors), keras.ops.convert_to_tensor(real)
        np.testing.assert_allclose(keras.ops.convert_to_numpy(pool(*arguments, how)), expected)


def test_windows_are_read_one_by_one(config, inputs):
    """Four texts of two windows: the head reads the mean of what it would read of each."""
    encoder = BertEncoder(config, seed=0)
    model = BertClassifier(encoder, 3, windows="mean", seed=1)
    batch = {name: x.reshape(4, 2, 16).copy() for name, x in inputs.items()}
    batch["input_mask"][1, 1] = 0  # a text of one window
    pooled = keras.ops.convert_to_numpy(encoder(inputs)["pooled_output"]).reshape(4, 2, -1)
    expected = pooled.mean(1)
    expected[1] = pooled[1, 0]
    kernel, bias = (keras.ops.convert_to_numpy(x) for x in (model.head.kernel, model.head.bias))
    found = keras.ops.convert_to_numpy(model(batch)["logits"])
    np.testing.assert_allclose(found, expected @ kernel + bias, atol=1e-5)
    with pytest.raises(UserError, match=r"it reads \[texts, windows, tokens\]"):
        model(inputs)
    with pytest.raises(UserError, match="windows=.sum.; it is one of mean, max, first_last"):
        BertClassifier(encoder, 3, windows="sum")


def test_a_model_folder_says_how_windows_are_pooled(config, tokenizer, tmp_path):
    model = BertClassifier(BertEncoder(config, seed=0), 3, windows="first_last", seed=1)
    model_folder.save(tmp_path / "m", model, tokenizer, {"labels": ["x", "y", "z"]})
    loaded = predict.load(tmp_path / "m")
    assert loaded.model.windows == "first_last"
    with pytest.raises(UserError, match="their number is not known: windows in task, options"):
        loaded.predict("the cat")
    with pytest.raises(UserError, match="no classifier of windows"):
        huggingface.export_huggingface(tmp_path / "hf", model, tokenizer)
    path = tmp_path / "m" / "model.json"
    path.write_text(path.read_text().replace('"first_last"', '"sum"'))
    with pytest.raises(UserError, match="windows='sum'; it is one of mean"):
        model_folder.load(tmp_path / "m")
