"""Tokenisers: WordPiece as the original BERT does it (section 3 of the paper), and its successors'.

`BertTokenizer` is the class to use for BERT, ELECTRA and DistilBERT, `BytePairTokenizer` for
RoBERTa, `SentencePieceTokenizer` for ALBERT, `WordEndTokenizer` for OpenAI GPT, `ForeignTokenizer`
for every other `tokenizer.json`; `Tokenizer` says
what they have in common, and `load_tokenizer` reads any of their files. `reference.py` is BERT's
algorithm to read. Nothing here imports Keras or TensorFlow but `in_graph*.py`, the same tokenisers
as TensorFlow operations for serving.
"""

from official_bert.tokenization.base import SpecialTokens, Tokenizer
from official_bert.tokenization.byte_pair import BytePairTokenizer
from official_bert.tokenization.foreign import ForeignTokenizer
from official_bert.tokenization.loading import KINDS, find_vocabulary, load_tokenizer
from official_bert.tokenization.sentence_piece import SentencePieceTokenizer
from official_bert.tokenization.tokenizer import BertTokenizer
from official_bert.tokenization.vocabulary import SPECIAL_TOKENS, load_vocab, write_vocab
from official_bert.tokenization.word_end_byte_pair import WordEndTokenizer

__all__ = [
    "KINDS",
    "SPECIAL_TOKENS",
    "BertTokenizer",
    "BytePairTokenizer",
    "ForeignTokenizer",
    "SentencePieceTokenizer",
    "SpecialTokens",
    "Tokenizer",
    "WordEndTokenizer",
    "find_vocabulary",
    "load_tokenizer",
    "load_vocab",
    "write_vocab",
]
