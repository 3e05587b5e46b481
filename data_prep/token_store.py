"""The token store: a corpus tokenised once, as blocks of flat arrays on disk.

Every duplication, length and masking option reads the same store. It is made in two steps, each
parallel and resumable:

1. *Chunks.* Input files are tokenised; a document's key is a hash of its tokens. A chunk holds its
   documents in the order of their keys.
2. *Blocks.* Key ranges of about BLOCK_TOKENS tokens. A block collects its documents from every
   chunk.

So a block is a random sample of some thousand documents of the whole corpus, the same one however
the corpus is cut into files and whoever tokenised it. The documents of the lowest keys can be held
out, as blocks of their own. No step holds more than a chunk or a block, plus 24 bytes a document.
"""

import functools
import hashlib
import os
from dataclasses import dataclass

import numpy as np

from data_prep import storage
from data_prep.documents import is_remote, text_lines
from official_bert.errors import UserError
from official_bert.files import sha256_file

BLOCK_TOKENS = 1 << 21
_CHUNK_TOKENS = 1 << 22  # a chunk is written when it holds so many
_TASK_BYTES = 2_000_000  # input files are tokenised in groups of at least so many bytes
_BATCH_CHARACTERS = 1 << 20  # text handed to the tokeniser at once

_DOCUMENT = np.dtype([("key", "<u8"), ("sentences", "<i8"), ("tokens", "<i8")])


@dataclass
class Block:
    """Some documents: sentence s is tokens[sentence_offsets[s]:sentence_offsets[s + 1]], document d
    is sentences document_offsets[d] to document_offsets[d + 1] - 1. No sentence is empty."""

    tokens: np.ndarray
    sentence_offsets: np.ndarray
    document_offsets: np.ndarray


class TokenStore:
    """A finished store, opened for reading.

    Attributes:
      manifest: {"options", "vocab_size", "splits": {"train": [blocks], "heldout": [blocks]}}; a
        block has its name, counts and checksums.
    """

    def __init__(self, folder: str):
        self.folder = folder
        self.manifest = storage.read_json(_manifest_path(folder))
        self.dtype = token_dtype(self.manifest["vocab_size"])

    def blocks(self, split: str) -> list[dict]:
        return self.manifest["splits"][split]

    def read(self, split: str, index: int) -> Block:
        """Block `index` of a split, its checksums verified.

        Raises:
          UserError: a file of the block is damaged.
        """
        block = self.blocks(split)[index]
        base = os.path.join(self.folder, block["name"])
        checksums = block["checksums"]
        return Block(
            storage.read_array(base + ".tokens", self.dtype, checksums["tokens"]),
            storage.read_array(base + ".sentences", "<i8", checksums["sentences"]),
            storage.read_array(base + ".documents", "<i8", checksums["documents"]),
        )


def token_dtype(vocab_size: int):
    """The integer type of token ids in blocks and rows."""
    return np.dtype("<u2") if vocab_size <= 1 << 16 else np.dtype("<u4")


def store_options(
    inputs: list[str],
    vocab_path: str,
    do_lower_case: bool,
    held_out: float = 0.0,
    block_tokens: int = BLOCK_TOKENS,
) -> dict:
    """All that decides a store's content: two stores of equal options are equal.

    Input files count by content and name, without their folder: a moved corpus is the same one.
    """
    return {
        "inputs": [_fingerprint(path) for path in inputs],
        "vocab_sha256": sha256_file(vocab_path),
        "do_lower_case": do_lower_case,
        "held_out": held_out,
        "block_tokens": block_tokens,
    }


def build(
    options: dict, inputs: list[str], vocab_path: str, folder: str, workers, overwrite=False
) -> TokenStore:
    """Builds a store, continues a half-built one, or opens a finished one.

    Args:
      options: from `store_options` of the same inputs and vocabulary.
      folder: local or remote; workers must reach it under the same path.
      workers: a `LocalWorkers` or anything with its `run`.
      overwrite: replaces a store made with other options.

    Raises:
      UserError: the folder holds a store of other options, or the input has no text.
    """
    claim_folder(folder, options, overwrite, "token store")
    if storage.exists(_manifest_path(folder)):
        return TokenStore(folder)
    tasks = _tokenise_tasks(options, inputs, vocab_path, folder)
    chunks = workers.run(tokenise, tasks, "tokenising")
    parts = [part for chunk in chunks for part in chunk["parts"]]
    tasks, names = _block_tasks(options, inputs, chunks[0]["vocab_size"], parts, folder)
    summaries = workers.run(assemble, tasks, "sorting into blocks")
    blocks = dict(zip(names, summaries, strict=True))
    manifest = {
        "options": options,
        "vocab_size": chunks[0]["vocab_size"],
        "splits": {
            split: [
                {"name": name, **block}
                for name, block in blocks.items()
                if name.startswith(f"{split}-")
            ]
            for split in ("train", "heldout")
        },
    }
    storage.write_json(_manifest_path(folder), manifest)
    for name in storage.list_folder(folder):
        if name.startswith("chunk-") or name.endswith(".summary"):
            storage.remove(os.path.join(folder, name))
    return TokenStore(folder)


def claim_folder(folder: str, options: dict, overwrite: bool, what: str) -> None:
    """Makes `folder` ours: new, or begun with the same options, or emptied by `overwrite`.

    Raises:
      UserError: it was begun with other options (listed), or holds other things.
    """
    path = os.path.join(folder, "options.json")
    if storage.exists(path):
        before = storage.read_json(path)
        differences = list(_differences(before, options))
        if not differences:
            return
        if not overwrite:
            raise UserError(
                f"{folder} holds a {what} made with other options: {'; '.join(differences[:8])}. "
                f"Choose another folder or pass --overwrite"
            )
        storage.remove(folder)
    elif storage.list_folder(folder):
        raise UserError(f"{folder} exists and is no {what}; choose another folder")
    storage.make_folder(folder)
    storage.write_json(path, options)


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
        documents.append(storage.read_slice(path + ".documents", _DOCUMENT, d0, d1))
        sentences.append(storage.read_slice(path + ".sentences", "<i8", s0, s1))
        tokens.append(storage.read_slice(path + ".tokens", dtype, t0, t1))
    documents, sentences, tokens = map(np.concatenate, (documents, sentences, tokens))
    documents, sentences, tokens = _in_key_order(documents, sentences, tokens)
    sentence_offsets = _offsets(sentences)
    document_offsets = _offsets(documents["sentences"])
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
        documents = np.empty(len(kept), _DOCUMENT)
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
    starts = _offsets(lengths)[:-1][order]
    lengths = lengths[order]
    ends = np.cumsum(lengths)
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(ends[-1] if len(ends) else 0)


def _offsets(lengths):
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


def _tokenise_tasks(options, inputs, vocab_path, folder):
    groups, size = [], 0
    enough = max(_TASK_BYTES, sum(file["bytes"] for file in options["inputs"]) // 2000)
    for path, file in zip(inputs, options["inputs"], strict=True):
        if not groups or size >= enough:
            groups.append([])
            size = 0
        groups[-1].append(path)
        size += file["bytes"]
    return [
        {
            "files": files,
            "vocab": vocab_path,
            "vocab_sha256": options["vocab_sha256"],
            "do_lower_case": options["do_lower_case"],
            "output": os.path.join(folder, f"chunk-{index:05d}"),
            "summary": os.path.join(folder, f"chunk-{index:05d}.summary"),
        }
        for index, files in enumerate(groups)
    ]


def _block_tasks(options, inputs, vocab_size, parts, folder):
    """Cuts the range of keys into blocks; returns one task a block, and the blocks' names."""
    documents = [storage.read_array(part["path"] + ".documents", _DOCUMENT) for part in parts]
    keys = np.concatenate([d["key"] for d in documents]) if documents else np.zeros(0, np.uint64)
    if not len(keys):
        raise UserError(f"no text in the input: {', '.join(inputs[:3])}")
    tokens = np.concatenate([d["tokens"] for d in documents])
    order = np.argsort(keys, kind="stable")
    keys, tokens = keys[order], tokens[order]

    held_out = _held_out_documents(options["held_out"], len(keys))
    cuts = {
        "heldout": _cuts(tokens[:held_out], options["block_tokens"], 0),
        "train": _cuts(tokens[held_out:], options["block_tokens"], held_out),
    }
    offsets = [(_offsets(d["sentences"]), _offsets(d["tokens"])) for d in documents]
    tasks, names = [], []
    for split, edges in cuts.items():
        for index, (first, last) in enumerate(zip(edges[:-1], edges[1:], strict=True)):
            slices = []
            for part, chunk, (sentence, token) in zip(parts, documents, offsets, strict=True):
                d0 = int(np.searchsorted(chunk["key"], keys[first])) if first else 0
                d1 = int(np.searchsorted(chunk["key"], keys[last])) if last < len(keys) else None
                d1 = len(chunk) if d1 is None else d1
                spans = [[d0, d1], *([int(o[d0]), int(o[d1])] for o in (sentence, token))]
                slices.append([part["path"], *spans])
            names.append(f"{split}-{index:05d}")
            base = os.path.join(folder, names[-1])
            dtype = token_dtype(vocab_size).str
            tasks.append(
                {"output": base, "summary": base + ".summary", "dtype": dtype, "slices": slices}
            )
    return tasks, names


def _held_out_documents(fraction, documents):
    if not fraction:
        return 0
    held_out = max(2, round(fraction * documents))
    if documents < held_out + 2:
        raise UserError(
            f"held_out={fraction} of {documents} documents cannot be held out: each side needs two "
            f"documents or more, for a random next sentence comes from another document"
        )
    return held_out


def _cuts(tokens, block_tokens, first):
    """Places of the block edges among documents in key order; every block has two documents."""
    if not len(tokens):
        return [first]
    ends = np.cumsum(tokens)
    blocks = max(1, round(int(ends[-1]) / block_tokens))
    wanted = np.searchsorted(ends, ends[-1] * np.arange(1, blocks) / blocks)
    edges = [0]
    for edge in wanted.tolist():
        if edge - edges[-1] >= 2 and len(tokens) - edge >= 2:
            edges.append(edge)
    return [first + edge for edge in [*edges, len(tokens)]]


@functools.lru_cache(maxsize=2)
def _tokenizer(vocab, do_lower_case, sha256):  # the digest is part of the key
    from official_bert.tokenization import BertTokenizer

    return BertTokenizer(vocab, do_lower_case=do_lower_case)


def _fingerprint(path):
    if is_remote(path):
        import tensorflow as tf

        return {"file": os.path.basename(path), "bytes": tf.io.gfile.stat(path).length}
    return {
        "file": os.path.basename(path),
        "bytes": os.path.getsize(path),
        "sha256": sha256_file(path),
    }


def _differences(before, now, name=""):
    """ "name: was X, now Y" for every leaf that differs."""
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        before, now = dict(enumerate(before)), dict(enumerate(now))
    if isinstance(before, list) and isinstance(now, list):
        yield f"{name}: was {len(before)} files, now {len(now)}"
    elif isinstance(before, dict) and isinstance(now, dict):
        for key in [*before, *(key for key in now if key not in before)]:
            path = f"{name}.{key}" if name else str(key)
            yield from _differences(before.get(key, "absent"), now.get(key, "absent"), path)
    elif before != now:
        yield f"{name}: was {before}, now {now}"


def _manifest_path(folder):
    return os.path.join(folder, "manifest.json")
