"""BertEncoder against the formulas of the paper in numpy, and as a Keras model."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy.special import erf, softmax

import official_bert as ob
from official_bert.backend.variables import named_variables


def array(variable):
    return keras.ops.convert_to_numpy(variable).astype("float64")


def dense(x, layer):
    return x @ array(layer.kernel) + array(layer.bias)


def numpy_encoder(encoder, inputs):
    """Return the encoder written out in float64 from section 3 and the Transformer paper."""
    config = encoder.config

    def norm(x, layer):
        centred = x - x.mean(-1, keepdims=True)
        scale = np.sqrt((centred**2).mean(-1, keepdims=True) + config.layer_norm_eps)
        return array(layer.gamma) * centred / scale + array(layer.beta)

    def heads(x):
        return x.reshape(*x.shape[:2], config.num_attention_heads, -1).transpose(0, 2, 1, 3)

    tables, length = encoder.embeddings, inputs["input_ids"].shape[1]
    x = array(tables.word_embeddings)[inputs["input_ids"]]
    x = x + array(tables.token_type_embeddings)[inputs["segment_ids"]]
    x = norm(x + array(tables.position_embeddings)[:length], tables.norm)
    allowed = inputs["input_mask"][:, None, None, :] > 0
    if config.attention_direction == "left_to_right":
        allowed = allowed & np.tril(np.ones((length, length), bool))
    states, shares = [x], []
    for block in encoder.blocks:
        attention = block.attention
        parts = (attention.query, attention.key, attention.value)
        q, k, v = (heads(dense(x, part)) for part in parts)
        scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1])
        shares.append(softmax(np.where(allowed, scores, -np.inf), axis=-1))
        context = (shares[-1] @ v).transpose(0, 2, 1, 3).reshape(x.shape)
        x = norm(x + dense(context, attention.output_dense), block.attention_norm)
        inner = dense(x, block.intermediate)
        inner = inner * 0.5 * (1 + erf(inner / np.sqrt(2)))
        x = norm(x + dense(inner, block.output_dense), block.output_norm)
        states.append(x)
    summary = x[:, 0]
    if config.attention_direction == "left_to_right":
        summary = x[np.arange(len(x)), inputs["input_mask"].sum(1) - 1]
    return states, shares, np.tanh(dense(summary, encoder.pooler))


def test_mask_and_segments_by_default(config, inputs):
    encoder = ob.BertEncoder(config, seed=0)
    ids = inputs["input_ids"]
    full = {**inputs, "segment_ids": 0 * ids}
    expected = encoder(full)["pooled_output"]
    np.testing.assert_array_equal(encoder({"input_ids": ids})["pooled_output"], expected)
    np.testing.assert_array_equal(encoder(ids)["pooled_output"], expected)
    classifier = ob.BertClassifier(encoder, 2, bilstm=True, seed=0)
    np.testing.assert_array_equal(classifier(ids)["logits"], classifier(full)["logits"])


def test_the_mask_by_default_is_that_of_the_model_s_own_padding(config, tmp_path):
    tokenizer = ob.BertTokenizer(["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]", "the", "dog"])
    assert (tokenizer.cls_id, tokenizer.pad_id) == (0, 1)
    fitting = config.replaced(vocab_size=len(tokenizer.vocab))
    ob.save(tmp_path / "m", ob.BertEncoder(fitting, seed=0), tokenizer)
    encoder = ob.load(tmp_path / "m").encoder
    batch = tokenizer(["the dog", "the"])
    assert (batch["input_mask"] == 0).any() and (batch["input_ids"] == 0).any()
    expected = encoder(batch)["pooled_output"]
    np.testing.assert_array_equal(encoder(batch["input_ids"])["pooled_output"], expected)
    classifier = ob.BertClassifier(encoder, 2, seed=0)
    np.testing.assert_array_equal(
        classifier(batch["input_ids"])["logits"], classifier(batch)["logits"]
    )
    none = ob.BertEncoder(dataclasses.replace(fitting, pad_token_id=-1), seed=0)
    with pytest.raises(ob.UserError, match="no id of this model's vocabulary is padding alone"):
        none(batch["input_ids"])


IDS = np.ones((2, 8), "int32")


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"input_ids": IDS, "attention_mask": IDS}, "attention_mask; here it is input_mask"),
        (
            {"input_ids": IDS, "input_mask": IDS, "token_type_ids": IDS},
            "token_type_ids; here it is segment_ids",
        ),
        ({"input_ids": np.ones((2, 33), "int32")}, "33 tokens, but the model has 32 positions"),
        ({"ids": IDS}, "a model reads input_ids"),
    ],
)
def test_inputs_of_another_library_or_too_long_are_named(config, inputs, message):
    with pytest.raises(ob.UserError, match=message):
        ob.BertEncoder(config)(inputs)


def perturb(model):
    """Give biases and normalisations values other than 0 and 1, so that tests see them."""
    rng = np.random.default_rng(5)
    for weight in model.weights:
        weight.assign(weight + rng.normal(0, 0.1, weight.shape).astype("float32"))


@pytest.mark.parametrize("direction", ["bidirectional", "left_to_right"])
def test_equals_the_formulas(config, inputs, direction):
    encoder = ob.BertEncoder(config.replaced(attention_direction=direction), seed=0)
    perturb(encoder)
    outputs = encoder(inputs)
    assert "attention_probabilities" not in outputs
    attention = encoder(inputs, return_attention=True)["attention_probabilities"]
    states, shares, pooled = numpy_encoder(encoder, inputs)
    real = inputs["input_mask"].astype(bool)
    assert len(outputs["hidden_states"]) == len(states) == config.num_hidden_layers + 1
    for ours, expected in zip(outputs["hidden_states"], states, strict=True):
        np.testing.assert_allclose(ours.numpy()[real], expected[real], atol=1e-5)
    for ours, expected in zip(attention, shares, strict=True):
        ours, expected = (x.transpose(0, 2, 1, 3)[real] for x in (ours.numpy(), expected))
        np.testing.assert_allclose(ours, expected, atol=1e-6)  # 0 at padding and what is later
    np.testing.assert_allclose(outputs["pooled_output"], pooled, atol=1e-5)
    np.testing.assert_array_equal(outputs["sequence_output"], outputs["hidden_states"][-1])


@pytest.mark.parametrize("size, parameters", [("base", 109_482_240), ("large", 335_141_888)])
def test_parameters_of_the_published_sizes(size, parameters):
    config = ob.named_config(size)
    width, inner = config.hidden_size, config.intermediate_size
    rows = config.vocab_size + config.max_position_embeddings + config.type_vocab_size
    block = 4 * (width * width + width) + 2 * width * inner + inner + width + 4 * width
    formula = rows * width + 2 * width + config.num_hidden_layers * block + width * width + width
    assert formula == parameters
    # Counting does not need the numbers: zeros initialise fast.
    small = config.replaced(num_hidden_layers=1)
    counted = ob.BertEncoder(small).count_params()
    assert counted + (config.num_hidden_layers - 1) * block == parameters


def test_frozen_blocks_stay_frozen_in_a_keras_file(config, tmp_path):
    encoder = ob.BertEncoder(config, seed=0)
    encoder.freeze("embeddings,blocks:1")
    assert not encoder.blocks[1].trainable and encoder.blocks[0].trainable
    for wrong in ("block:1", "blocks:1-2", "head"):
        with pytest.raises(ob.UserError, match="parts are embeddings, blocks:0-1"):
            encoder.freeze(wrong)
    model = ob.BertClassifier(encoder, 2)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    found, expected = ([v.path for v in x.trainable_variables] for x in (loaded, model))
    assert found == expected
    assert 0 < len(loaded.trainable_variables) < len(loaded.variables) / 2 + 4


def test_as_a_part_of_a_functional_model(config, inputs, tmp_path):
    symbolic = {name: keras.Input((None,), dtype="int32", name=name) for name in inputs}
    encoder = ob.BertEncoder(config, seed=0)
    scores = keras.layers.Dense(3)(encoder(symbolic)["pooled_output"])
    model = keras.Model(symbolic, scores)
    assert model(inputs).shape == (8, 3)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(inputs), model(inputs))


def test_bfloat16_stays_near_float32(config, inputs):
    exact = ob.BertEncoder(config, seed=0)
    half = ob.BertEncoder(config, seed=0, dtype="mixed_bfloat16")
    outputs = half(inputs)["sequence_output"]
    assert outputs.dtype == tf.bfloat16
    assert all(weight.dtype == "float32" for weight in half.weights)
    # 8 bits of precision: about 0.4% of values around 1, summed over two layers.
    np.testing.assert_allclose(
        tf.cast(outputs, tf.float32), exact(inputs)["sequence_output"], atol=0.1
    )


@pytest.mark.parametrize("rows", [0, 1])
def test_one_segment_row_or_none(config, inputs, rows):
    encoder = ob.BertEncoder(config.replaced(type_vocab_size=rows), seed=0)
    before = array(encoder(inputs)["hidden_states"][0])
    # Whatever the segments say, every token has the one row.
    zeros = {**inputs, "segment_ids": np.zeros_like(inputs["segment_ids"])}
    np.testing.assert_array_equal(encoder(zeros)["hidden_states"][0], before)
    if rows == 0:
        assert encoder.embeddings.token_type_embeddings is None
        return
    row = array(encoder.embeddings.token_type_embeddings)
    encoder.embeddings.token_type_embeddings.assign(row + np.linspace(-1, 1, 16))
    after = array(encoder(inputs)["hidden_states"][0])
    assert np.all(np.abs(after - before).max(-1) > 0.1)


def test_names_of_variables_are_free_of_the_scope_that_a_model_is_made_in(config):
    plain = ob.BertEncoder(config, name="encoder")
    with keras.name_scope("text_encoder"):
        inside = ob.BertEncoder(config, name="encoder")
    assert list(named_variables(inside)) == list(named_variables(plain))
