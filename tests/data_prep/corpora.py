"""Small made-up corpora and vocabularies for the tests of data preparation."""

import functools
import itertools

import numpy as np

from data_prep.corpus.text_files import text_lines
from official_bert.tokenization import write_vocab

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [f"word{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
VOCAB = SPECIAL + WORDS + ["##s", "##ed", "##ing"] + list("abcdefghijklmnopqrstuvwxyz0123456789.")


def write_vocabulary(path):
    write_vocab(path, VOCAB)
    return str(path)


def write_corpus(path, documents=60, seed=0, sentences=(1, 30), words=(1, 25)):
    """Write documents of random words, some with endings, and return the path."""
    path.write_text(_text(documents, seed, sentences, words), encoding="utf-8")
    return str(path)


def documents(paths):
    """Yield each document of files of sentences, as their list."""
    for path in [paths] if isinstance(paths, str) else paths:
        parts = itertools.groupby(map(str.strip, text_lines(path)), bool)
        yield from (list(part) for is_text, part in parts if is_text)


@functools.cache
def _text(documents, seed, sentences, words):
    generator = np.random.default_rng(seed)
    endings = ["", "", "s", "ed", "ing", "ings"]
    lines = []
    for _ in range(documents):
        for _ in range(generator.integers(*sentences)):
            picked = generator.choice(WORDS, generator.integers(*words))
            lines.append(" ".join(word + generator.choice(endings) for word in picked) + " .")
        lines.append("")
    return "\n".join(lines)
