"""The AWD-LSTM of ULMFiT: LSTMs in the place of the encoder's Transformer blocks."""

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

import official_bert as ob
from experiments.beyond.ulmfit import layers as awd_lstm
from experiments.beyond.ulmfit.classifier import ConcatPoolingClassifier
from experiments.beyond.ulmfit.shape import AwdLstmConfig
from official_bert.checkpoints import model_folder, transfer
from official_bert.common.errors import UserError
from official_bert.export.settings import ServingSettings
from official_bert.randomness import make_seed


@pytest.fixture(scope="module")
def lstms(config):
    same = {name: getattr(config, name) for name in ("vocab_size", "max_position_embeddings")}
    return AwdLstmConfig(
        **same, hidden_size=12, intermediate_size=20, num_hidden_layers=3, hidden_dropout_prob=0.5,
        attention_probs_dropout_prob=0.5, initializer_range=0.3,
    )  # fmt: skip


@pytest.fixture(scope="module")
def encoder(lstms):
    return ob.BertEncoder(lstms, seed=0)


def array(x):
    return ops.convert_to_numpy(x)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def by_hand(block, x):
    """Return an LSTM, token by token."""
    kernel, recurrent, bias = (array(v).astype("float64") for v in block.weights)
    cells = output = np.zeros((len(x), len(recurrent)))
    written = []
    for token in x.transpose(1, 0, 2):
        entering, staying, new, leaving = np.split(
            token @ kernel + output @ recurrent + bias, 4, axis=-1
        )
        cells = sigmoid(staying) * cells + sigmoid(entering) * np.tanh(new)
        output = sigmoid(leaving) * np.tanh(cells)
        written.append(output)
    return np.stack(written, axis=1)


def test_states_are_those_of_lstms(encoder, inputs):
    words, *states = map(array, encoder(inputs)["hidden_states"])
    assert [state.shape[-1] for state in states] == [20, 20, 12]
    table = array(encoder.embeddings.word_embeddings)
    np.testing.assert_array_equal(words, table[inputs["input_ids"]])  # no positions, no segments
    below = words
    for block, state in zip(encoder.blocks, states, strict=True):
        np.testing.assert_allclose(state, by_hand(block, below), atol=2e-6)
        below = state


def test_the_loop_for_other_backends_computes_the_same(encoder, inputs, monkeypatch):
    def states(seed):
        return encoder(inputs, training=seed is not None, seed=seed)["hidden_states"]

    seeds = (None, make_seed(0, 1))
    ours = [states(seed) for seed in seeds]
    monkeypatch.setattr(awd_lstm, "_lstm", lambda: awd_lstm.lstm)
    for of_kernel, seed in zip(ours, seeds, strict=True):
        for one, another in zip(of_kernel, states(seed), strict=True):
            np.testing.assert_allclose(one, another, atol=1e-6)


def test_a_text_is_its_last_token_whatever_stands_behind_it(encoder, inputs):
    outputs = encoder(inputs)
    lengths = inputs["input_mask"].sum(1)
    sequence = array(outputs["sequence_output"])
    last = sequence[np.arange(len(lengths)), lengths - 1]
    np.testing.assert_array_equal(array(outputs["pooled_output"]), last)
    longer = {name: np.pad(x, ((0, 0), (0, 3))) for name, x in inputs.items()}
    np.testing.assert_allclose(array(encoder(longer)["pooled_output"]), last, atol=1e-6)


def test_dropout_is_the_same_for_all_tokens_and_of_recurrent_weights(lstms, encoder, inputs):
    def states(seed, model=encoder):
        return [array(x) for x in model(inputs, training=True, seed=seed)["hidden_states"]]

    one, same, other = (states(make_seed(0, step)) for step in (1, 1, 2))
    for ours, again, theirs in zip(one, same, other, strict=True):
        np.testing.assert_array_equal(ours, again)
        dropped = ours == 0
        np.testing.assert_array_equal(dropped, np.repeat(dropped[:, :1], dropped.shape[1], axis=1))
        assert 0.3 < dropped.mean() < 0.7 and (dropped != (theirs == 0)).any()
        assert (dropped[0] != dropped[1]).any()  # drawn for each row
    # Without the other dropout: what the first token does not tell the second.
    quiet = lstms.replaced(hidden_dropout_prob=0.0)
    model = ob.BertEncoder(quiet, seed=0)
    still, drawn = array(model(inputs)["hidden_states"][1]), states(make_seed(0, 1), model)[1]
    np.testing.assert_allclose(drawn[:, 0], still[:, 0], atol=1e-6)
    assert (np.abs(drawn[:, 1] - still[:, 1]) > 1e-4).any()


@pytest.mark.slow
def test_it_learns_the_next_token(lstms, pretraining_batch):
    less = lstms.replaced(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
    model = ob.BertPretrainer(less, ("next_token",), seed=0)
    optimizer = ob.BertAdamW(5e-2, bias_correction=True)
    optimizer.build(model.trainable_variables)
    before = [array(v) for v in model.encoder.trainable_variables]
    losses = []
    for step in range(16):
        with tf.GradientTape() as tape:
            outputs = model(pretraining_batch, training=True, seed=make_seed(0, step))
            [(total, weight)] = model.loss_terms(pretraining_batch, outputs).values()
            loss = total / weight
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_reduced(gradients, model.trainable_variables)
        losses.append(float(loss))
    assert losses[-1] < losses[0] - 0.3
    for variable, old in zip(model.encoder.trainable_variables, before, strict=True):
        assert (array(variable) != old).any(), variable.path


def test_kept_in_folders(lstms, inputs, tokenizer, tmp_path):
    model = ConcatPoolingClassifier(ob.BertEncoder(lstms, seed=0), 3, seed=1)
    ob.save(tmp_path / "folder", model, tokenizer)
    loaded = ob.load(tmp_path / "folder")
    assert loaded.config == lstms and isinstance(loaded.config, AwdLstmConfig)
    np.testing.assert_array_equal(array(loaded.model(inputs)["logits"]), model(inputs)["logits"])


def test_ulmfits_classifier_by_hand(lstms, inputs):
    model = ConcatPoolingClassifier(ob.BertEncoder(lstms, seed=0), 3, seed=1)
    draw = np.random.default_rng(0)
    for variable in model.trainable_variables:
        if "/pooled_block/" in variable.path:
            variable.assign(draw.normal(size=variable.shape))
    block, rows = model.pooled_block, model.rows(inputs)

    def normal(x, layer):
        centred = x - x.mean(-1, keepdims=True)
        normal = centred / np.sqrt(x.var(-1, keepdims=True) + lstms.layer_norm_eps)
        return normal * array(layer.gamma) + array(layer.beta)

    pooled = array(model.vector(rows, model.encoder(rows)))
    inner = normal(pooled, block.norm) @ array(block.dense.kernel) + array(block.dense.bias)
    assert inner.shape[1] == 50
    inner = normal(np.maximum(inner, 0), block.last_norm)
    expected = inner @ array(model.head.kernel) + array(model.head.bias)
    np.testing.assert_allclose(array(model(inputs)["logits"]), expected, atol=1e-4)
    plain = ConcatPoolingClassifier(ob.BertEncoder(ob.BertConfig(9, 4, 1, 1, 8)), 3)
    assert plain.pooled_block is None, "on a BERT it is one layer, as every head"


def test_sizes_and_work(lstms, encoder):
    assert lstms.num_parameters == encoder.count_params()
    matrices = sum(v.shape.num_elements() for block in encoder.blocks for v in block.weights[:2])
    assert lstms.encoder_flops(2, 16) == 2 * 2 * 16 * matrices
    whole = AwdLstmConfig(hidden_size=400, intermediate_size=1150, num_hidden_layers=3)
    assert whole.widths == [400, 1150, 1150, 400]


def test_what_it_is_not_for(lstms, encoder, tokenizer):
    with pytest.raises(UserError, match="attention_direction is 'left_to_right' in an AWD-LSTM"):
        ob.BertConfig.from_dict({"recurrent": True, "attention_direction": "bidirectional"})
    with pytest.raises(UserError, match="num_hidden_groups is 0 in an AWD-LSTM"):
        lstms.replaced(num_hidden_groups=1)
    with pytest.raises(UserError, match="an AWD-LSTM pays no attention"):
        encoder(np.array([[2, 3]]), return_attention=True)
    with pytest.raises(UserError, match="no other format has an AWD-LSTM"):
        transfer.extract(encoder, "none", "huggingface")
    loaded = model_folder.LoadedModel(lstms, encoder, encoder, "pretraining", tokenizer, {})
    with pytest.raises(UserError, match="an AWD-LSTM is there to be compared with BERT"):
        ServingSettings.from_loaded(loaded).check_for("embedding", loaded)
