"""A text corpus of any size: documents of a small one again and again, with words replaced."""

import functools
import glob
import os
import re
from pathlib import Path

import numpy as np

from data_prep.corpus.text_files import text_lines
from data_prep.jobs.processes import Processes

_SUBSTITUTED = 0.1  # of the words
_CHAPTER = 60  # paragraphs of a book that are a document


def write(globs, numbers, file_bytes: int, folder: Path, workers: int) -> int:
    """Writes text-NUMBER.txt of about `file_bytes` bytes each; returns how many they are together.

    A line is a paragraph, the first of a document its title; blank lines stand between documents.
    A file depends on its number alone.

    Args:
      globs: of articles (paragraphs a line, blank lines between) and of books (blank lines between
        paragraphs).
    """
    os.makedirs(folder)
    _documents(*globs)  # the processes find it in the memory that they are forked from
    write_file = functools.partial(_write_file, globs, file_bytes, folder)
    with Processes(workers) as processes:
        return sum(processes.map(write_file, numbers))


@functools.cache
def _documents(articles, books):
    """Arrays of the words of each document, "\\n" between paragraphs, and of all words together."""
    documents = []
    for path in sorted(glob.glob(articles)):
        text = "\n".join(text_lines(path))
        documents += [block.split("\n") for block in re.split(r"\n\n+", text) if "\n" in block]
    for path in sorted(glob.glob(books)):
        text = "\n".join(text_lines(path))
        paragraphs = [block.replace("\n", " ") for block in re.split(r"\n\s*\n", text)]
        for at in range(0, len(paragraphs), _CHAPTER):
            documents.append([f"Chapter {at // _CHAPTER}", *paragraphs[at : at + _CHAPTER]])
    known = {}  # each word once in memory
    texts = (" \n ".join(document).split(" ") for document in documents)
    words = [np.array([known.setdefault(word, word) for word in text], object) for text in texts]
    every = np.concatenate(words)
    return words, every[every != "\n"]


def _write_file(globs, size, folder, number):
    words, every = _documents(*globs)
    generator, written = np.random.default_rng(number), 0
    with open(folder / f"text-{number:05d}.txt", "wb") as file:
        while written < size:
            document = words[generator.integers(len(words))].copy()
            chosen = (generator.random(len(document)) < _SUBSTITUTED) & (document != "\n")
            document[chosen] = every[generator.integers(len(every), size=chosen.sum())]
            text = " ".join(document.tolist()).replace(" \n ", "\n")
            written += file.write(f"{text}\n\n".encode())
    return written
