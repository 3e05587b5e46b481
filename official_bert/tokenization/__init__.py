"""Tokenisers: WordPiece as in the original BERT (section 3 of the paper), and foreign files.

Begin with `reference`: BERT's algorithm, written to be read. `fast` gives the same ids for many
texts at once, `offsets` says where each piece stood, `sequences` and `windows` join ids to rows.
`BertTokenizer` is the class to use for BERT, `ForeignTokenizer` for another library's
`tokenizer.json`; extensions add further kinds. `Tokenizer` (`base`) is their protocol, and
`load_tokenizer` reads any of their files. Only `graph` imports TensorFlow, for serving.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from official_bert.common.json_files import read_json
from official_bert.extension import find, load_all
from official_bert.tokenization.base import SpecialTokens, Tokenizer
from official_bert.tokenization.library.foreign import ForeignTokenizer
from official_bert.tokenization.tokenizer import BertTokenizer
from official_bert.tokenization.vocabulary import SPECIAL_TOKENS, load_vocab, write_vocab

__all__ = [
    "SPECIAL_TOKENS",
    "BertTokenizer",
    "ForeignTokenizer",
    "SpecialTokens",
    "Tokenizer",
    "find_vocabulary",
    "tokenizer_class",
    "load_tokenizer",
    "load_vocab",
    "write_vocab",
]

_OWN = {cls.kind: cls for cls in (BertTokenizer, ForeignTokenizer)}


def tokenizer_class(name: str, source: str = "") -> type[Tokenizer]:
    """Return the class of tokenisers with a kind, as `model.json` names it.

    Args:
      source: where the name stood; begins the message.

    Raises:
      UserError: nobody gives that kind.
    """
    return find("tokenizers", name, _OWN, source)


def load_tokenizer(path: str | os.PathLike, do_lower_case: bool = True, **rules) -> Tokenizer:
    """Return the tokeniser of a vocabulary file.

    A `.json` is read by an extension or by the library `tokenizers`, a `.model` by an extension,
    any other file as WordPiece.

    Args:
      path: the file.
      do_lower_case: as the vocabulary was made; a `.json` says it itself.
      **rules: strip_accents and tokenize_chinese_chars of `BertTokenizer`.

    Raises:
      UserError: the file is missing, damaged, or no such vocabulary.
    """
    path = Path(path)
    if path.suffix not in (".json", ".model"):
        return BertTokenizer(path, do_lower_case, **rules)
    contents = read_json(path) if path.suffix == ".json" else {}
    for _, cls in load_all("tokenizers"):
        if tokenizer := cls.of_file(path, contents, do_lower_case):
            return tokenizer
    return ForeignTokenizer(path)


def find_vocabulary(folder: str | os.PathLike, exists=os.path.exists) -> str | None:
    """Return the path of the vocabulary in a folder of records or of a model, or None.

    Args:
      exists: function that tells whether a path exists; another one can look into remote folders.
    """
    paths = (os.path.join(folder, name) for name in _file_names())
    return next((path for path in paths if exists(path)), None)


def _file_names() -> Iterator[str]:
    yield from (cls.file_name for cls in _OWN.values())
    yield from (cls.file_name for _, cls in load_all("tokenizers"))
