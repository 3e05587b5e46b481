"""Parts that the encoder of a `SuccessorConfig` has and BERT's has not, in numpy."""

import numpy as np
import pytest

import official_bert as ob
from official_bert import BertConfig, UserError
from tests.official_bert.test_encoder import array, dense


def test_tables_of_another_width_with_a_dense_layer(config, inputs):
    """Tables, normalisation and projection by hand; the blocks are BERT's."""
    narrow = config.replaced(embedding_size=6)
    encoder = ob.BertEncoder(narrow, seed=0)
    tables = encoder.embeddings
    assert tables.word_embeddings.shape == (50, 6) and tables.norm.gamma.shape == (6,)
    x = array(tables.word_embeddings)[inputs["input_ids"]]
    x = x + array(tables.token_type_embeddings)[inputs["segment_ids"]]
    x = x + array(tables.position_embeddings)[: x.shape[1]]
    x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt((x**2).mean(-1, keepdims=True) + config.layer_norm_eps)
    expected = x @ array(tables.projection.kernel) + array(tables.projection.bias)
    np.testing.assert_allclose(encoder(inputs)["hidden_states"][0], expected, atol=1e-5)
    assert sum(np.prod(v.shape) for v in encoder.trainable_variables) == narrow.num_parameters


def test_shared_blocks_are_one_block_used_again(config, inputs):
    shared = config.replaced(num_hidden_layers=4, num_hidden_groups=2)
    encoder = ob.BertEncoder(shared, seed=0)
    apart = ob.BertEncoder(shared.replaced(num_hidden_groups=0), seed=0)
    for copy, original in zip((0, 1, 2, 3), (0, 0, 1, 1), strict=True):
        assert encoder.block_of(copy) is encoder.blocks[original]
        for new, old in zip(
            apart.blocks[copy].weights, encoder.blocks[original].weights, strict=True
        ):
            new.assign(old)
    ours, theirs = encoder(inputs)["hidden_states"], apart(inputs)["hidden_states"]
    assert len(ours) == 5
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)
    assert sum(np.prod(v.shape) for v in encoder.trainable_variables) == shared.num_parameters


@pytest.mark.parametrize("activation", ["relu", "none"])
def test_other_poolers(config, inputs, activation):
    encoder = ob.BertEncoder(config.replaced(pooler_activation=activation), seed=0)
    outputs = encoder(inputs)
    summary = array(outputs["sequence_output"])[:, 0]
    if activation == "none":
        expected = summary
        assert encoder.pooler is None and "pooler" not in encoder.parts
    else:
        expected = np.maximum(dense(summary, encoder.pooler), 0)
    np.testing.assert_allclose(outputs["pooled_output"], expected, atol=1e-6)


def test_fields_of_the_successors_are_written_only_where_they_differ(config):
    assert "embedding_size" not in config.to_dict()
    albert = config.replaced(embedding_size=8, num_hidden_groups=1)
    assert albert.to_dict() == {**config.to_dict(), "embedding_size": 8, "num_hidden_groups": 1}
    assert ob.BertConfig.from_dict(albert.to_dict()) == albert
    with pytest.raises(ob.UserError, match="num_hidden_groups .3. must divide"):
        config.replaced(num_hidden_groups=3)


def test_fields_of_two_encoders_are_an_error():
    with pytest.raises(UserError, match="unknown field filters"):
        BertConfig.from_dict({"filters": [[1, 8]], "recurrent": True})
    assert BertConfig.from_dict({"norm_first": False, "recurrent": True}).recurrent
    with pytest.raises(UserError, match="unknown field shallow_concatenation"):
        BertConfig.from_dict({"shallow_concatenation": True})
