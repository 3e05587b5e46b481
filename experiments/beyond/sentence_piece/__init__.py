"""SentencePiece: the tokenisers of ALBERT and of XLM-RoBERTa."""

from official_bert.extension import Extension

_HERE = "experiments.beyond.sentence_piece"
EXTENSION = Extension(
    "sentence_piece",
    tokenizers={
        "sentence_piece": f"{_HERE}.tokenizer:SentencePieceTokenizer",
        "unigram": f"{_HERE}.unigrams:UnigramTokenizer",
    },
    graphs={
        "sentence_piece": f"{_HERE}.in_graph:InGraphSentencePiece",
        "Unigram": f"{_HERE}.unigrams_in_graph:InGraphUnigrams",
    },
)
