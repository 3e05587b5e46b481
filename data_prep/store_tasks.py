"""The two kinds of tasks that build a token store: texts to chunks, chunks to blocks.

See `data_prep.token_store` for what chunks and blocks are.
"""

import functools
import hashlib

import numpy as np

from data_prep import storage
from data_prep.documents import text_lines

_CHUNK_TOKENS = 1 << 22  # a chunk is written when it holds so many
_BATCH_CHARACTERS = 1 << 20  # text handed to the tokeniser at once

# What a chunk knows of each document: its key, and how many sentences and tokens it has.
DOCUMENT = np.dtype([("key", "<u8"), ("sentences", "<i8"), ("tokens", "<i8")])


def tokenise(task: dict) -> dict:
    """Step 1 for one group of input files: writes chunks, each with its documents in key order."""
    tokenizer = _tokenizer(task["vocab"], task["do_lower_case"], task["vocab_sha256"])
    writer = _ChunkWriter(task["output"], token_dtype(tokenizer.vocab_size))
    sentences, sizes, characters = [], [], 0
    for path in task["files"]:
        for document in _documents(path):
            sentences.extend(document)
            sizes.append(len(document))
            characters += sum(map(len, document))
            if characters >= _BATCH_CHARACTERS:
                writer.add(*tokenizer.encode_batch(sentences), sizes)
                sentences, sizes, characters = [], [], 0
    if sizes:
        writer.add(*tokenizer.encode_batch(sentences), sizes)
    writer.flush()
    return {"vocab_size": tokenizer.vocab_size, "parts": writer.parts}


def assemble(task: dict) -> dict:
    """Step 2 for one block: its documents from every chunk, in key order."""
    dtype = np.dtype(task["dtype"])
    tokens, sentences, documents = [], [], []
    for path, (d0, d1), (s0, s1), (t0, t1) in task["slices"]:
        documents.append(storage.read_slice(path + ".documents", DOCUMENT, d0, d1))
        sentences.append(storage.read_slice(path + ".sentences", "<i8", s0, s1))
        tokens.append(storage.read_slice(path + ".tokens", dtype, t0, t1))
    documents, sentences, tokens = map(np.concatenate, (documents, sentences, tokens))
    documents, sentences, tokens = _in_key_order(documents, sentences, tokens)
    sentence_offsets = offsets_of(sentences)
    document_offsets = offsets_of(documents["sentences"])
    base = task["output"]
    return {
        "documents": len(documents),
        "sentences": len(sentences),
        "tokens": len(tokens),
        "checksums": {
            "tokens": storage.write_array(base + ".tokens", tokens),
            "sentences": storage.write_array(base + ".sentences", sentence_offsets),
            "documents": storage.write_array(base + ".documents", document_offsets),
        },
    }


class _ChunkWriter:
    """Collects tokenised documents and writes a chunk whenever enough tokens are there."""

    def __init__(self, base, dtype):
        self._base = base
        self._dtype = dtype
        self._pending = []  # (documents, sentence lengths, tokens)
        self.parts = []

    def add(self, ids, offsets, sizes):
        """Documents of `sizes` sentences each; empty sentences and documents are left out."""
        lengths = np.diff(offsets)
        document = np.repeat(np.arange(len(sizes)), sizes)[lengths > 0]
        lengths = lengths[lengths > 0].astype(np.int64)
        tokens = np.asarray(ids).astype(self._dtype)
        kept, sentences = np.unique(document, return_counts=True)
        documents = np.empty(len(kept), DOCUMENT)
        documents["sentences"] = sentences
        ends = np.cumsum(sentences)
        documents["tokens"] = np.add.reduceat(lengths, ends - sentences) if len(kept) else 0
        documents["key"] = _document_keys(tokens, documents["tokens"])
        self._pending.append((documents, lengths, tokens))
        if sum(len(tokens) for _, _, tokens in self._pending) >= _CHUNK_TOKENS:
            self.flush()

    def flush(self):
        if not self._pending:
            return
        columns = [np.concatenate(column) for column in zip(*self._pending, strict=True)]
        self._pending = []
        documents, sentences, tokens = _in_key_order(*columns)
        path = f"{self._base}-{len(self.parts):03d}"
        storage.write_array(path + ".tokens", tokens)
        storage.write_array(path + ".sentences", sentences)
        storage.write_array(path + ".documents", documents)
        self.parts.append({"path": path, "documents": len(documents)})


def _document_keys(tokens, lengths):
    """uint64: a hash of each document's tokens. Equal texts get equal keys, so copies of a document
    fall on the same side of the held-out split."""
    content = tokens.astype("<u4").tobytes()
    keys, at = [], 0
    for size in (4 * lengths).tolist():
        digest = hashlib.blake2b(content[at : at + size], digest_size=8).digest()
        keys.append(int.from_bytes(digest, "little"))
        at += size
    return np.array(keys, np.uint64)


def _in_key_order(documents, sentences, tokens):
    """Sorts documents by key and takes their sentence lengths and tokens along."""
    order = np.argsort(documents["key"], kind="stable")
    return (
        documents[order],
        sentences[_runs(documents["sentences"], order)],
        tokens[_runs(documents["tokens"], order)],
    )


def _runs(lengths, order):
    """Indices that reorder consecutive runs of these lengths."""
    starts = offsets_of(lengths)[:-1][order]
    lengths = lengths[order]
    ends = np.cumsum(lengths)
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(ends[-1] if len(ends) else 0)


def offsets_of(lengths) -> np.ndarray:
    """int64 [n + 1]: where runs of these lengths start and the last one ends."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _documents(path):
    """As data_prep.documents.documents for one file, which may hold no text at all."""
    document = []
    for line in text_lines(path):
        line = line.strip()
        if line:
            document.append(line)
        elif document:
            yield document
            document = []
    if document:
        yield document


def token_dtype(vocab_size: int):
    """The integer type of token ids in blocks and rows."""
    return np.dtype("<u2") if vocab_size <= 1 << 16 else np.dtype("<u4")


@functools.lru_cache(maxsize=2)
def _tokenizer(vocab, do_lower_case, sha256):  # the digest is part of the key
    from official_bert.tokenization import BertTokenizer

    with storage.local_copy(vocab) as path:
        return BertTokenizer(path, do_lower_case=do_lower_case)
