"""Tokenisers as Keras layers, in `tf.data` and inside models."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny
from tiny import VOCAB

import official_bert as ob
from official_bert import UserError

TEXTS = ["a b c", "", "Äb! " * 9, "e\u0301 d, [MASK]", "中 a"]


@pytest.fixture(params=[ob.BertTokenizer, tiny.foreign])
def tokenizer(request):
    return request.param(VOCAB)


@pytest.mark.parametrize("truncation", ["head", "tail", "head+tail"])
def test_rows_are_those_of_the_tokeniser(tokenizer, truncation):
    layer = ob.TokenizerLayer(tokenizer, max_length=12, truncation=truncation)
    options = {"max_length": 12, "padding": "max_length", "truncation": truncation}
    wanted = tokenizer(TEXTS, **options)
    np.testing.assert_equal({n: v.numpy() for n, v in layer(TEXTS).items()}, wanted)
    wanted = tokenizer(TEXTS, TEXTS[::-1], **options)
    found = layer((tf.constant(TEXTS), tf.constant(TEXTS[::-1])))
    np.testing.assert_equal({n: v.numpy() for n, v in found.items()}, wanted)


def test_in_a_dataset_text_by_text_and_batch_by_batch():
    tokenizer = ob.BertTokenizer(VOCAB)
    layer = ob.TokenizerLayer(tokenizer, max_length=16)
    dataset = tf.data.Dataset.from_tensor_slices((TEXTS, np.arange(5)))
    wanted = tokenizer(TEXTS, max_length=16, padding="max_length", truncation="head")["input_ids"]
    mapped = dataset.map(lambda text, label: (layer(text), label))
    assert mapped.element_spec[0]["input_ids"].shape == (16,)
    np.testing.assert_array_equal([batch["input_ids"] for batch, _ in mapped], wanted)
    (batch,) = dataset.batch(5).map(lambda text, _: layer(text))
    np.testing.assert_array_equal(batch["input_ids"], wanted)
    with pytest.raises(UserError, match=r"official_bert.TokenizerLayer\(tokenizer, max_length"):
        dataset.map(lambda text, _: tokenizer(text))


def test_a_layer_that_is_made_inside_a_graph_leaves_the_next_one_whole():
    tokenizer = ob.BertTokenizer([*VOCAB, "##q"])
    dataset = tf.data.Dataset.from_tensor_slices(TEXTS)
    mapped = dataset.map(lambda text: ob.TokenizerLayer(tokenizer, max_length=16)(text))
    wanted = ob.TokenizerLayer(tokenizer, max_length=16)(TEXTS)["input_ids"]
    np.testing.assert_array_equal([one["input_ids"] for one in mapped], wanted)


def test_in_a_model_that_is_saved(tmp_path):
    cased = ob.BertTokenizer([*VOCAB, "A"], do_lower_case=False)
    encoder = ob.BertEncoder(tiny.CONFIG, seed=0)
    text = keras.Input((), dtype="string")
    ids = ob.TokenizerLayer(cased, max_length=8)(text)
    model = keras.Model(text, encoder({**ids, "input_ids": ids["input_ids"] % 10})["pooled_output"])
    texts = tf.constant(["A a b", "c"])
    model.save(tmp_path / "m.keras")
    again = keras.models.load_model(tmp_path / "m.keras")
    np.testing.assert_allclose(again(texts), model(texts), rtol=1e-6)
    (layer,) = (one for one in again.layers if isinstance(one, ob.TokenizerLayer))
    assert layer.tokenizer.vocab == cased.vocab and not layer.tokenizer.do_lower_case


def test_wrong_options_are_named():
    with pytest.raises(UserError, match="truncation='middle'; it is one of head"):
        ob.TokenizerLayer(ob.BertTokenizer(VOCAB), truncation="middle")
    with pytest.raises(UserError, match="max_length=2 leaves no room"):
        ob.TokenizerLayer(ob.BertTokenizer(VOCAB), max_length=2)
    with pytest.raises(UserError, match="no tokeniser"):
        ob.TokenizerLayer()(["a"])
