"""Vocabulary files on any storage: found beside records, read, and written."""

import contextlib
import os

from data_prep.jobs import storage
from official_bert.common import files as local_files
from official_bert.common.errors import UserError


def load_tokenizer(path: str, sha256: str = "", do_lower_case: bool = False, **rules):
    """Return the tokeniser of a vocabulary file, as `tokenization.load_tokenizer` does.

    Args:
      sha256: digest that the file must have; "": any.
      do_lower_case, **rules: options of the tokeniser, where texts will be tokenised.

    Raises:
      UserError: it is missing, not a vocabulary, or another file than before.
    """
    from official_bert.tokenization import load_tokenizer

    with storage.local_copy(path) as local:
        if sha256 and storage.sha256(local) != sha256:
            raise storage.damaged(path)
        return load_tokenizer(local, do_lower_case, **rules)


@contextlib.contextmanager
def one_file(path: str, tokenizer):
    """Return the path of a vocabulary, or of a temporary file that holds its second one too."""
    if not tokenizer.second_file:
        yield path
        return
    with local_files.scratch() as folder:
        tokenizer.write(folder)
        yield os.path.join(folder, tokenizer.file_name)


def find_vocabulary(folder: str, required: bool = True) -> str:
    """Return the path of the vocabulary beside records; "" where none is there nor required.

    Raises:
      UserError: it is required and missing.
    """
    from official_bert.tokenization import find_vocabulary

    path = find_vocabulary(folder, storage.exists)
    if path is None and required:
        raise UserError(f"{folder or '.'}: no vocabulary (vocab.txt, ...) lies beside the records")
    return path or ""


def write_tokenizer(path: str, tokenizer, overwrite: bool = False) -> str:
    """Write a tokeniser's vocabulary file under any name; return its SHA-256."""
    with local_files.scratch() as folder:
        tokenizer.write(folder)
        copy = os.path.join(folder, tokenizer.file_name)
        storage.copy_file(copy, path, overwrite, own=False)
        return storage.sha256(copy)
