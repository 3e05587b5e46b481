"""A model of a few hundred weights and a batch that fits it."""

import string

import numpy as np
import pytest

from official_bert import BertConfig, BertTokenizer


@pytest.fixture(scope="session")
def config() -> BertConfig:
    return BertConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
    )


@pytest.fixture(scope="session")
def tokenizer() -> BertTokenizer:
    """Return 50 pieces, as many as `config` has rows."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = [*"a.,!?", "the", "cat", "dog", "sat", "sits", "on", "mat", "big", "red", "in"]
    words += ["paris", "london", "france", "##ed"]
    return BertTokenizer([*special, *words, *(f"##{letter}" for letter in string.ascii_lowercase)])


@pytest.fixture(scope="session")
def inputs() -> dict:
    """Return 8 rows of 16 tokens, the second with 7 of padding."""
    rng = np.random.default_rng(0)
    ids = rng.integers(5, 50, (8, 16)).astype("int32")
    mask = np.ones_like(ids)
    mask[1, 9:] = 0
    segments = np.broadcast_to((np.arange(16) > 8).astype("int32"), ids.shape)
    return {"input_ids": ids * mask, "input_mask": mask, "segment_ids": segments * mask}


@pytest.fixture(scope="session")
def pretraining_batch(inputs) -> dict:
    """Return `inputs` with three predictions a row and one empty place."""
    rng = np.random.default_rng(1)
    rows = len(inputs["input_ids"])
    return {
        **inputs,
        "masked_lm_positions": np.tile(np.array([1, 3, 5, 0], "int32"), (rows, 1)),
        "masked_lm_ids": rng.integers(5, 50, (rows, 4)).astype("int32"),
        "masked_lm_weights": np.tile(np.array([1, 1, 1, 0], "float32"), (rows, 1)),
        "next_sentence_labels": rng.integers(0, 2, (rows, 1)).astype("int32"),
    }
