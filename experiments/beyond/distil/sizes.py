"""The sizes of published DistilBERTs and TinyBERTs."""

DISTILBERT = {
    "num_hidden_layers": 6,
    "hidden_size": 768,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "type_vocab_size": 0,
    "pooler_activation": "none",
}
TINYBERT = {
    "num_hidden_layers": 4,
    "hidden_size": 312,
    "num_attention_heads": 12,
    "intermediate_size": 1200,
}
