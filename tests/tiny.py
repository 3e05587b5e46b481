"""Models of a few hundred weights."""

import dataclasses
import json

import keras
import numpy as np

from official_bert import BertConfig, BertEncoder
from official_bert.backend.variables import named_variables

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCAB = [*SPECIAL, *"abcde"]
CONFIG = BertConfig(
    vocab_size=len(VOCAB),
    hidden_size=8,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=12,
    max_position_embeddings=8,
)


def encoder(vocab):
    """Return an encoder with weights so large that texts differ, of up to 32 pieces of `vocab`."""
    sizes = {"intermediate_size": 16, "max_position_embeddings": 32, "initializer_range": 0.5}
    return BertEncoder(dataclasses.replace(CONFIG, vocab_size=len(vocab), **sizes), seed=0)


def write_texts(folder):
    """Write a text and its vocabulary, and return their paths."""
    (folder / "vocab.txt").write_text("\n".join(VOCAB) + "\n")
    (folder / "a.txt").write_text("\n\n".join(["a b c\nd e a b\nc c a"] * 6) + "\n")
    return str(folder / "a.txt"), str(folder / "vocab.txt")


def make_records(folder, output, **options):
    """Make records of the texts that `write_texts` writes into a folder."""
    from data_prep.create_pretraining_data import create

    options = {"max_seq_length": 16, "max_predictions_per_seq": 2, "dupe_factor": 1} | options
    return create(*write_texts(folder), str(output), num_workers=1, progress=False, **options)


def change_json(path, drop=(), **fields):
    """Set fields of a JSON file, and leave some out."""
    fields = json.loads(path.read_text()) | fields
    path.write_text(json.dumps({name: v for name, v in fields.items() if name not in drop}))


def assert_equal_weights(found, expected):
    """Two models have the same variables with the same numbers."""
    found, expected = named_variables(found), named_variables(expected)
    assert set(found) == set(expected)
    for name, variable in found.items():
        both = map(keras.ops.convert_to_numpy, (variable, expected[name]))
        np.testing.assert_array_equal(*both, name)


def foreign(vocab):
    """Return another library's tokeniser with BERT's pieces and steps."""
    from official_bert.tokenization import BertTokenizer, ForeignTokenizer
    from official_bert.tokenization.library import own_json

    return ForeignTokenizer(own_json.as_tokenizer_json(BertTokenizer(vocab)))
