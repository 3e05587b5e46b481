"""Cases of `tests.goldens.formats` beyond the paper, and the pieces that they have."""

from experiments.beyond.gpt.gpt2_names import GPT2
from experiments.beyond.gpt.names import OPENAI_GPT
from experiments.beyond.sentence_piece.tokenizer import SentencePieceTokenizer
from tests.beyond import successor_tokenizers

PIECES = {
    "byte_pair": lambda: successor_tokenizers.byte_pairs(["Ġdog", "the"], add_prefix_space=True),
    "word_end_byte_pair": lambda: successor_tokenizers.word_ends(["dog"], "abc"),
    "sentence_piece": lambda: SentencePieceTokenizer(successor_tokenizers.sentence_piece_model()),
}
ROBERTA = {"type_vocab_size": 1, "layer_norm_eps": 1e-5, "pad_token_id": 1}
ALBERT = {"embedding_size": 4, "num_hidden_groups": 1, "gelu_form": "tanh", "num_hidden_layers": 2}
DISTILBERT = {"type_vocab_size": 0, "pooler_activation": "none"}
ELECTRA = {"embedding_size": 4, "pooler_activation": "none", "gelu_form": "tanh"}
GPT = {**OPENAI_GPT, "intermediate_size": 32, "pad_token_id": -1}
GPT_2 = {**GPT2, "intermediate_size": 32, "pad_token_id": -1}
LSTMS = {"recurrent": True, "num_attention_heads": 1}
BOTH = {"attention_direction": "shallow_concatenation"}
TEXT = {"head": "text", "longest": 6, "beams": 2, "length_penalty": 0.5}
LM = "masked_lm"
CLASSES = {
    "head": "classification", "problem": "single_label", "labels": ["no", "yes"], "num_labels": 2,
}  # fmt: skip
CASES = {
    "model/shallow": (BOTH, ("adjacent_tokens",), "word_piece"),
    "model/albert": (ALBERT, (LM, "sentence_order"), "sentence_piece"),
    "model/spanbert": ({}, (LM, "span_boundary"), "word_piece"),
    "model/electra": (ELECTRA, ("replaced_token",), "word_piece"),
    "model/roberta": (ROBERTA, (LM,), "byte_pair"),
    "model/gpt": (GPT, ("next_token",), "word_end_byte_pair"),
    "model/gpt2": (GPT_2, ("next_token",), None),
    "model/lstm": (LSTMS, ("next_token",), "word_piece"),
    "model/concat_pooling": ({}, {**CLASSES, "concat_pooling": True}, "word_piece"),
    "model/ulmfit": (LSTMS, {**CLASSES, "concat_pooling": True}, "word_piece"),
    "model/separate": ({}, {**TEXT, "decoder": "separate"}, "word_piece"),
    "model/shared": ({}, {**TEXT, "decoder": "shared"}, "word_piece"),
    "model/prefix": ({}, {**TEXT, "decoder": "prefix"}, "word_piece"),
    "huggingface/roberta": (ROBERTA, CLASSES, "byte_pair"),
    "huggingface/albert": (ALBERT, (LM, "sentence_order"), "sentence_piece"),
    "huggingface/distilbert": ({**DISTILBERT, "pooler_activation": "relu"}, CLASSES, "word_piece"),
    "huggingface/electra": ({**ELECTRA, "gelu_form": "erf"}, ("replaced_token",), "word_piece"),
    "huggingface/openai-gpt": (GPT, ("next_token",), "word_end_byte_pair"),
    "huggingface/gpt2": (GPT_2, ("next_token",), None),
    "keras_hub/roberta": ({**DISTILBERT, "layer_norm_eps": 1e-5, "pad_token_id": 1}, None,
                          "byte_pair"),
    "keras_hub/albert": (ALBERT, None, "sentence_piece"),
    "keras_hub/distilbert": (DISTILBERT, None, "word_piece"),
    "keras_hub/electra": (ELECTRA, None, "word_piece"),
    "keras/spanbert": ({}, (LM, "span_boundary"), None),
    "keras/albert": (ALBERT, (LM, "sentence_order"), None),
    "keras/electra": (ELECTRA, ("replaced_token",), None),
    "keras/gpt2": (GPT_2, ("next_token",), None),
    "keras/ulmfit": (LSTMS, {**CLASSES, "concat_pooling": True}, None),
    "keras/separate": ({}, {**TEXT, "decoder": "separate"}, None),
}  # fmt: skip
