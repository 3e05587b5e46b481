"""A left-to-right and a right-to-left model side by side, which section 5.1 argues against."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops
from scipy.special import erf, log_softmax

import official_bert as ob
from experiments.beyond.shallow.layers import ShallowBlock
from experiments.beyond.shallow.objective import AdjacentTokens
from experiments.beyond.shallow.shape import ShallowConfig
from experiments.training.settings.flops import pretraining_step_flops
from official_bert.checkpoints import model_folder, transfer
from official_bert.common.errors import UserError
from official_bert.encoder import BertEncoder
from official_bert.export.settings import ServingSettings
from official_bert.pretraining import BertPretrainer
from official_bert.randomness import make_seed


@pytest.fixture(scope="module")
def shallow(config):
    one = dataclasses.replace(
        config, hidden_size=16, num_attention_heads=2, intermediate_size=32, initializer_range=0.2
    )
    return ShallowConfig.of_two(one)


@pytest.fixture(scope="module")
def model(shallow):
    return BertPretrainer(shallow, ["adjacent_tokens"], seed=0)


def array(x):
    return ops.convert_to_numpy(x)


def test_a_half_sees_what_stands_on_its_side(model, inputs):
    before = model.encoder(inputs)
    for changed in (4, 8):
        ids = inputs["input_ids"].copy()
        ids[1, changed] = 7 if ids[1, changed] != 7 else 8
        after = model.encoder({**inputs, "input_ids": ids})
        words, *layers = zip(before["hidden_states"], after["hidden_states"], strict=True)
        assert np.flatnonzero((array(words[0]) != array(words[1]))[1].any(-1)).tolist() == [changed]
        for one, other in layers:
            moved = np.abs(array(one) - array(other))[1, :9] > 1e-6
            assert np.flatnonzero(moved[:, :16].any(-1)).tolist() == list(range(changed, 9))
            assert np.flatnonzero(moved[:, 16:].any(-1)).tolist() == list(range(changed + 1))
    assert (array(after["sequence_output"])[0] == array(before["sequence_output"])[0]).all()


def test_the_halves_are_two_left_to_right_models(model, shallow, inputs):
    """The second one reads the text from its end, with the positions turned round too."""
    rows = {name: values[2:6] for name, values in inputs.items()}
    outputs = model.encoder(rows, return_attention=True)
    found, attention = (
        array(outputs["sequence_output"]),
        array(outputs["attention_probabilities"][1]),
    )
    assert attention.shape == (4, 4, 16, 16)
    for half, name in enumerate(("left_to_right", "right_to_left")):
        alone = BertEncoder(shallow.one_direction)
        own = {v.path.split("/", 1)[1]: v for v in model.encoder.weights}
        for variable in alone.weights:
            path = variable.path.split("/", 1)[1]
            if path.startswith("layer_"):
                layer, rest = path.split("/", 1)
                path = f"{layer}/{name}/{rest}"
            if not path.startswith("pooler"):
                variable.assign(own[path])
        turn = slice(None, None, -1 if half else 1)
        if half:
            table = array(alone.embeddings.position_embeddings).copy()
            table[:16] = table[15::-1]
            alone.embeddings.position_embeddings.assign(table)
        expected = alone({k: v[:, turn] for k, v in rows.items()}, return_attention=True)
        states = array(expected["sequence_output"])[:, turn]
        np.testing.assert_allclose(found[..., 16 * half : 16 * half + 16], states, atol=1e-5)
        scores = array(expected["attention_probabilities"][1])[:, :, turn, turn]
        np.testing.assert_allclose(attention[:, 2 * half : 2 * half + 2], scores, atol=1e-5)


def test_what_a_classifier_reads_has_seen_everything(model, inputs):
    outputs = model.encoder(inputs)
    sequence = array(outputs["sequence_output"])
    summary = array(model.encoder.summary_token(outputs["sequence_output"], inputs["input_mask"]))
    last = np.array([15, 8, *[15] * 6])
    np.testing.assert_array_equal(summary[:, :16], sequence[np.arange(8), last, :16])
    np.testing.assert_array_equal(summary[:, 16:], sequence[:, 0, 16:])


def test_the_loss_by_hand(model, pretraining_batch):
    outputs = model(pretraining_batch)
    text = pretraining_batch["input_ids"].copy()
    for place in range(3):
        at = pretraining_batch["masked_lm_positions"][:, place]
        text[np.arange(8), at] = pretraining_batch["masked_lm_ids"][:, place]
    sequence = array(model.encoder({**pretraining_batch, "input_ids": text})["sequence_output"])
    head, table = model.masked_lm, array(model.encoder.embeddings.word_embeddings)

    def surprise(vector, piece):
        x = vector @ array(head.transform.kernel) + array(head.transform.bias)
        x = x * (1 + erf(x / np.sqrt(2))) / 2
        x = (x - x.mean()) / np.sqrt(x.var() + 1e-12)
        x = x * array(head.norm.gamma) + array(head.norm.beta)
        return -log_softmax((x @ table.T + array(head.bias)).astype("float64"))[piece]

    losses = []
    for row, length in enumerate([16, 9, *[16] * 6]):
        for place in range(length - 1):
            losses.append(surprise(sequence[row, place, :16], text[row, place + 1]))
            losses.append(surprise(sequence[row, place + 1, 16:], text[row, place]))
    total, weight = model.loss_terms(pretraining_batch, outputs)["masked_lm_loss"]
    assert float(weight) == len(losses) == 2 * (7 * 15 + 8)
    np.testing.assert_allclose(float(total), np.sum(losses), rtol=1e-5)


def test_a_fraction_of_the_positions(shallow, pretraining_batch):
    some = BertPretrainer(shallow, [AdjacentTokens(fraction=0.4)], seed=0)
    seen = []
    for step in range(3):
        batch = {name: ops.convert_to_tensor(x) for name, x in pretraining_batch.items()}
        found = some.objectives[0].corrupt(some, batch, make_seed(0, step))
        positions, ids = array(found["masked_lm_positions"]), array(found["masked_lm_ids"])
        text = array(found["input_ids"])
        assert positions.shape == (8, 12) and array(found["masked_lm_weights"]).all()
        rows = np.arange(8)[:, None]
        np.testing.assert_array_equal(ids[:, :6], text[rows, positions[:, :6] + 1])
        np.testing.assert_array_equal(ids[:, 6:], text[rows, positions[:, 6:] - 16 - 1])
        assert (positions[:, 6:] - 17 != positions[:, :6]).any()  # drawn apart
        seen.append(positions.tobytes())
    assert len(set(seen)) == 3


def test_both_halves_learn(shallow, pretraining_batch):
    learner = BertPretrainer(shallow, ["adjacent_tokens"], seed=0)
    optimizer = ob.BertAdamW(2e-2)
    optimizer.build(learner.trainable_variables)
    blocks = [v for block in learner.encoder.blocks for v in block.trainable_variables]
    started = [array(v) for v in blocks]
    losses = []
    for step in range(4):
        with tf.GradientTape() as tape:
            outputs = learner(pretraining_batch, training=True, seed=make_seed(0, step))
            [(total, weight)] = learner.loss_terms(pretraining_batch, outputs).values()
            loss = total / weight
        optimizer.apply_reduced(
            tape.gradient(loss, learner.trainable_variables), learner.trainable_variables
        )
        losses.append(float(loss))
    assert losses[-1] < losses[0] - 0.5
    for before, variable in zip(started, blocks, strict=True):
        assert (array(variable) != before).any(), variable.path


def test_kept_in_files(model, shallow, inputs, pretraining_batch, tokenizer, tmp_path):
    expected = array(model(pretraining_batch)["masked_lm_logits"])
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(array(loaded(pretraining_batch)["masked_lm_logits"]), expected)
    ob.save(tmp_path / "folder", model, tokenizer)
    loaded = ob.load(tmp_path / "folder")
    assert loaded.config == shallow and loaded.model.objectives == model.objectives
    np.testing.assert_array_equal(
        array(loaded.model(pretraining_batch)["masked_lm_logits"]), expected
    )


def test_dropout_is_drawn_for_each_half(model, inputs):
    seeds = make_seed(0, 1), make_seed(0, 1), make_seed(0, 2)
    first, same, other = (
        array(model.encoder(inputs, training=True, seed=seed)["hidden_states"][1]) for seed in seeds
    )
    np.testing.assert_array_equal(first, same)
    moved = np.abs(first - other) > 1e-6
    assert moved[..., :16].any(-1).all() and moved[..., 16:].any(-1).all()
    # Two blocks with the same weights on the same vectors.
    block = ShallowBlock(model.encoder.config, keras.initializers.RandomNormal(seed=0))
    to_right, to_left = block.directions
    for own, theirs in zip(to_left.weights, to_right.weights, strict=True):
        own.assign(theirs)
    same, everywhere = np.ones((1, 8, 32), "float32"), np.zeros((1, 2, 8, 8), "float32")
    quiet, loud = (array(block(same, everywhere, seed=seed)) for seed in (None, seeds[0]))
    np.testing.assert_array_equal(quiet[..., :16], quiet[..., 16:])
    assert (loud[..., :16] != loud[..., 16:]).mean() > 0.9


def test_sizes_and_work(shallow, model):
    one = shallow.one_direction
    assert (one.hidden_size, one.num_attention_heads, one.attention_direction) == (
        *(16, 2), "left_to_right",
    )  # fmt: skip
    assert shallow.embedding_width == 16
    assert shallow.num_parameters == model.encoder.count_params()
    assert shallow.encoder_flops(2, 16) == 2 * one.encoder_flops(2, 16)
    halves = pretraining_step_flops(one, ["next_token"], 2, 16, 3)
    assert pretraining_step_flops(shallow, ["adjacent_tokens"], 2, 16, 3) == 2 * halves


def test_what_it_is_not_for(config, shallow, model, tokenizer):
    with pytest.raises(UserError, match="BertConfig.num_attention_heads .3. must be even"):
        dataclasses.replace(shallow, num_attention_heads=3, hidden_size=36)
    with pytest.raises(UserError, match="'shallow_concatenation'; write adjacent_tokens"):
        BertPretrainer(shallow)
    with pytest.raises(UserError, match="adjacent_tokens is not .* 'bidirectional'; write"):
        BertPretrainer(config, ["adjacent_tokens"])
    with pytest.raises(UserError, match="only one of the objectives adjacent_tokens, span_bound"):
        BertPretrainer(shallow, ["adjacent_tokens", "span_boundary"])
    with pytest.raises(UserError, match="no other format has a shallow concatenation"):
        transfer.extract(model.encoder, "none", "huggingface")
    loaded = model_folder.LoadedModel(shallow, model.encoder, model, "pretraining", tokenizer, {})
    with pytest.raises(UserError, match="experiments.predict reads its model folder"):
        ServingSettings.from_loaded(loaded).check_for("embedding", loaded)
