"""Tokenisers: WordPiece as the original BERT does it (section 3 of the paper), and its successors'.

`BertTokenizer` is the class to use for BERT, ELECTRA and DistilBERT, `BytePairTokenizer` for
RoBERTa, `SentencePieceTokenizer` for ALBERT, `WordEndTokenizer` for OpenAI GPT, `ForeignTokenizer`
for every other `tokenizer.json`; `Tokenizer` says what they have in common, and `load_tokenizer`
reads any of their files. `reference.py` is BERT's algorithm to read. Nothing here imports Keras or
TensorFlow but `in_graph*.py`, the same tokenisers as TensorFlow operations for serving.
"""

import os
from pathlib import Path

from official_bert.tokenization.base import SpecialTokens, Tokenizer
from official_bert.tokenization.library import byte_pair_files
from official_bert.tokenization.library.byte_pair import BytePairTokenizer
from official_bert.tokenization.library.foreign import ForeignTokenizer
from official_bert.tokenization.library.word_end_byte_pair import WordEndTokenizer
from official_bert.tokenization.sentence_piece import SentencePieceTokenizer
from official_bert.tokenization.tokenizer import BertTokenizer
from official_bert.tokenization.vocabulary import SPECIAL_TOKENS, load_vocab, write_vocab

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

# In the order in which folders are looked through.
KINDS = {
    kind.kind: kind
    for kind in (
        BertTokenizer,
        BytePairTokenizer,
        SentencePieceTokenizer,
        WordEndTokenizer,
        ForeignTokenizer,
    )
}


def load_tokenizer(path: str | os.PathLike, do_lower_case: bool = True, **rules) -> Tokenizer:
    """Return the tokeniser of a vocabulary file: byte pairs (RoBERTa's or OpenAI GPT's) or any
    other that the library `tokenizers` knows from `.json`, SentencePiece from `.model`, else
    WordPiece.

    Args:
      path: the file.
      do_lower_case: as the vocabulary was made; byte pairs keep the case whatever it says.
      **rules: strip_accents and tokenize_chinese_chars of `BertTokenizer`.

    Raises:
      UserError: the file is missing, damaged, or no such vocabulary.
    """
    match Path(path).suffix:
        case ".json":
            return KINDS[byte_pair_files.kind_of(Path(path))](path)
        case ".model":
            return SentencePieceTokenizer(path, do_lower_case)
        case _:
            return BertTokenizer(path, do_lower_case, **rules)


def find_vocabulary(folder: str | os.PathLike, exists=os.path.exists) -> str | None:
    """Return the path of the vocabulary in a folder of records or of a model; None where there is
    none.

    Args:
      exists: whether there is a file of a path; another one looks into remote folders.
    """
    paths = [os.path.join(folder, kind.file_name) for kind in KINDS.values()]
    return next((path for path in paths if exists(path)), None)
