"""Models that exports and the code behind them are asked with."""

import numpy as np

from official_bert import BertConfig, BertEncoder, BertTokenizer
from official_bert.checkpoints.model_folder import LoadedModel, describe
from official_bert.tokenization import sequences

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
VOCAB = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *LETTERS,
    *(f"##{letter}" for letter in LETTERS),
    *".,!?'()-",
    *("the", "answer", "is", "##ing", "here", "who", "good", "bad", "東", "京"),
]
TEXTS = ["The answer is here, good!", "", "\u0378 \u20ac", "bad " * 70, "Ünïcode ing 東京", "a"]
LABELS = ("no", "maybe", "yes")


def make_encoder(vocab=VOCAB, **fields):
    sizes = {
        "vocab_size": len(vocab),
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 64,
        "initializer_range": 0.3,
    }
    return BertEncoder(BertConfig.from_dict({**sizes, **fields}), seed=7)


def loaded(model, tokenizer=VOCAB, **settings):
    """Return the model as `official_bert.load` would give it; `tokenizer` may be its pieces."""
    head, own = describe(model)
    encoder = getattr(model, "encoder", model)
    tokenizer = BertTokenizer(tokenizer) if isinstance(tokenizer, list) else tokenizer
    settings = {"head": head, **settings, **own}
    return LoadedModel(encoder.config, encoder, model, head, tokenizer, settings)


def features(tokenizer, rows, max_seq_length):
    """Return one or two texts a row -> padded inputs of the Keras model."""
    packed = [
        sequences.pack(
            tokenizer,
            tokenizer.encode(first),
            tokenizer.encode(second[0]) if second else None,
            max_seq_length,
        )
        for first, *second in rows
    ]
    return tokenizer.pad(packed, max(len(row["input_ids"]) for row in packed))


def numpy_logits(model, batch):
    return np.asarray(model(batch)["logits"])
