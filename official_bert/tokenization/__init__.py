"""WordPiece tokenisation as the original BERT does it (section 3 of the paper).

`reference.py` is the algorithm to read; `BertTokenizer` is the class to use. Nothing here imports
Keras or TensorFlow but `in_graph.py`, the same tokeniser as TensorFlow operations for serving.
"""

from official_bert.tokenization.tokenizer import BertTokenizer
from official_bert.tokenization.vocabulary import SPECIAL_TOKENS, load_vocab, write_vocab

__all__ = ["SPECIAL_TOKENS", "BertTokenizer", "load_vocab", "write_vocab"]
