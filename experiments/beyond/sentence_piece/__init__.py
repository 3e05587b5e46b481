"""SentencePiece: the tokeniser of ALBERT."""

from official_bert.extension import Extension

EXTENSION = Extension(
    "sentence_piece",
    tokenizers={
        "sentence_piece": "experiments.beyond.sentence_piece.tokenizer:SentencePieceTokenizer"
    },
    graphs={"sentence_piece": "experiments.beyond.sentence_piece.in_graph:InGraphSentencePiece"},
)
