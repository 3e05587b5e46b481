"""Byte pairs of bytes: the tokeniser of RoBERTa and GPT-2."""

from official_bert.extension import Extension

EXTENSION = Extension(
    "byte_pair",
    tokenizers={"byte_pair": "experiments.beyond.byte_pair.tokenizer:BytePairTokenizer"},
    graphs={
        "byte_pair": "experiments.beyond.byte_pair.in_graph:InGraphBytePairs",
        "BPE": "experiments.beyond.byte_pair.in_graph:InGraphBytePairs",
    },
    learners={"byte_pair": "experiments.beyond.byte_pair.learner:learn_byte_pairs"},
)
