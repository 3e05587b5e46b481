"""Models of a few hundred weights."""

import dataclasses

from official_bert import BertConfig, BertEncoder

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
    """An encoder with weights so large that texts differ, of up to 32 pieces of `vocab`."""
    config = dataclasses.replace(
        CONFIG,
        vocab_size=len(vocab),
        intermediate_size=16,
        max_position_embeddings=32,
        initializer_range=0.5,
    )
    return BertEncoder(config, seed=0)
