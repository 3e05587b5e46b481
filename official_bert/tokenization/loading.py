"""Reads the vocabulary file of any kind of tokeniser."""

import os
from pathlib import Path

from official_bert.tokenization import byte_pair_files
from official_bert.tokenization.base import Tokenizer
from official_bert.tokenization.byte_pair import BytePairTokenizer
from official_bert.tokenization.foreign import ForeignTokenizer
from official_bert.tokenization.sentence_piece import SentencePieceTokenizer
from official_bert.tokenization.tokenizer import BertTokenizer
from official_bert.tokenization.word_end_byte_pair import WordEndTokenizer

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
    """The tokeniser of a vocabulary file: byte pairs (RoBERTa's or OpenAI GPT's) or any other that
    the library `tokenizers` knows from `.json`, SentencePiece from `.model`, else WordPiece.

    Args:
      path: the file.
      do_lower_case: as the vocabulary was made; byte pairs keep the case whatever it says.
      **rules: strip_accents and tokenize_chinese_chars of `BertTokenizer`.

    Raises:
      UserError: the file is missing, damaged, or no such vocabulary.
    """
    match Path(path).suffix:
        case ".json":
            match byte_pair_files.kind_of(Path(path)):
                case "word_end_byte_pair":
                    return WordEndTokenizer(path)
                case "byte_pair":
                    return BytePairTokenizer(path)
            return ForeignTokenizer(path)
        case ".model":
            return SentencePieceTokenizer(path, do_lower_case)
        case _:
            return BertTokenizer(path, do_lower_case, **rules)


def find_vocabulary(folder: str | os.PathLike, exists=os.path.exists) -> str | None:
    """The path of the vocabulary in a folder of records or of a model; None where there is none.

    Args:
      exists: whether there is a file of a path; another one looks into remote folders.
    """
    paths = [os.path.join(folder, kind.file_name) for kind in KINDS.values()]
    return next((path for path in paths if exists(path)), None)
