"""The token store: a corpus tokenised once, as blocks of flat arrays on disk.

Every duplication, length and masking option reads the same store. It is made in two steps, each
parallel and resumable:

1. *Chunks.* Input files are tokenised; a document's key is a hash of its tokens. A chunk holds its
   documents in the order of their keys.
2. *Blocks.* The keys are cut into ranges of about BLOCK_TOKENS tokens. A block collects the
   documents of a range from every chunk; many chunks are joined to fewer first (`key_ranges`).

So a block is a random sample of some thousand documents of the whole corpus. It does not depend on
the division of the corpus into files, or on the process that tokenised them. The documents of the
lowest keys can be held out, as blocks of their own. No step holds more than a chunk or a block,
and about 40 bytes a document.
"""

import os
from collections import Counter
from dataclasses import dataclass

import numpy as np

from data_prep.corpus import languages
from data_prep.corpus.text_files import stretches
from data_prep.jobs import array_files, checked_json, storage, workers
from data_prep.jobs.output_folder import claim_folder
from data_prep.pretraining import key_ranges
from data_prep.pretraining.record_options import OF_STORE, RecordOptions
from data_prep.pretraining.store_tasks import (
    assemble,
    join,
    read_documents,
    slices_of,
    token_dtype,
    tokenise,
)
from official_bert.common.errors import UserError, first_of

BLOCK_TOKENS = 1 << 21
_RULES = ("do_lower_case", "strip_accents", "tokenize_chinese_chars")
_TASK_BYTES = 2_000_000  # files are tokenised in groups of at least this size


@dataclass
class Block:
    """Some documents, as flat arrays.

    Sentence s is tokens[sentence_offsets[s]:sentence_offsets[s + 1]]. Document d is sentences
    document_offsets[d] to document_offsets[d + 1] - 1. No sentence is empty.
    """

    tokens: np.ndarray
    sentence_offsets: np.ndarray
    document_offsets: np.ndarray


class TokenStore:
    """A finished store, opened for reading.

    Attributes:
      manifest: {"options", "vocab_size", "splits": {"train": [blocks], "heldout": [blocks]}}; a
        block has its name, counts and checksums. "invalid_utf8": repaired lines.
      tokens, unknown: number of tokens of the text, and of [UNK] among them.
    """

    def __init__(self, folder: str):
        self.folder = folder
        self.manifest = checked_json.read(_manifest_path(folder))
        segmented = self.manifest["options"]["segmented"]
        self.dtype = token_dtype(self.manifest["vocab_size"], segmented)
        self.tokens, self.unknown = self.manifest["tokens"], self.manifest["unknown"]

    def blocks(self, split: str) -> list[dict]:
        return self.manifest["splits"][split]

    def read(self, split: str, index: int) -> Block:
        """Return block `index` of a split, after a check of its checksums.

        Raises:
          UserError: a file of the block is damaged.
        """
        block = self.blocks(split)[index]
        base = os.path.join(self.folder, block["name"])
        checksums = block["checksums"]
        return Block(
            array_files.read_array(base + ".tokens", self.dtype, checksums["tokens"]),
            array_files.read_array(base + ".sentences", "<i8", checksums["sentences"]),
            array_files.read_array(base + ".documents", "<i8", checksums["documents"]),
        )


def store_options(
    inputs: list[str],
    vocab_path: str,
    options: RecordOptions,
) -> dict:
    """Return everything that decides a store's content: equal options mean equal stores.

    Input files count by content and name, without their folder, so a moved corpus stays the same.
    """
    files = [storage.fingerprint(path) for path in inputs]
    if options.language_exponent < 1:
        files = [
            f | {"language": languages.language_of(p)} for f, p in zip(files, inputs, strict=True)
        ]
    return {
        "inputs": files,
        "vocab_sha256": storage.sha256(vocab_path),
        "block_tokens": BLOCK_TOKENS,
        **{name: getattr(options, name) for name in OF_STORE},
    }


def build(
    options: dict,
    inputs: list[str],
    vocab_path: str,
    folder: str,
    runner,
    overwrite: bool = False,
    lock=None,
) -> TokenStore:
    """Build a store, continue a half-built one, or open a finished one.

    Args:
      options: from `store_options` of the same inputs and vocabulary.
      folder: local or remote; workers must reach it under the same path.
      runner: a `LocalWorkers`, or any object with its `run`.
      overwrite: renames a store made with other options, and whatever else is there.
      lock: the folder's, where it is locked separately.

    Raises:
      UserError: the folder holds a store of other options, the input has no text, or it changed
        while it was read.
    """
    claim_folder(folder, options, overwrite, "token store", lock)
    if storage.exists(_manifest_path(folder)):
        return TokenStore(folder)
    tasks = _tokenise_tasks(options, inputs, vocab_path, folder)
    chunks = runner.run(tokenise, tasks, "tokenising")
    try:
        storage.check_unchanged(inputs, options["inputs"])
    except UserError:
        _remove_work(folder)  # it is unknown which content was read
        raise
    parts = [part for chunk in chunks for part in chunk["parts"]]
    dtype = token_dtype(chunks[0]["vocab_size"], options["segmented"])
    at = (os.path.join(folder, name) for name in ("chunks.json", "joined"))
    if joins := key_ranges.join_tasks(parts, *at, dtype=dtype.str):
        parts = runner.run(join, joins, "joining")
    tasks = _block_tasks(options, inputs, dtype, parts, folder)
    summaries = runner.run(assemble, tasks, "sorting into blocks")
    names = [name for task in tasks for name in task["names"]]
    blocks = [block for summary in summaries for block in summary["blocks"]]
    manifest = {
        "options": options,
        "vocab_size": chunks[0]["vocab_size"],
        "splits": {
            split: [
                {"name": name, **block}
                for name, block in zip(names, blocks, strict=True)
                if name.startswith(f"{split}-")
            ]
            for split in ("train", "heldout")
        },
    }
    for name in ("tokens", "unknown", "invalid_utf8"):
        manifest[name] = sum(chunk[name] for chunk in chunks)
    checked_json.write(_manifest_path(folder), manifest)
    _remove_work(folder)
    return TokenStore(folder)


def _remove_work(folder):
    work = ("chunk", "joined", "block", "tasks")
    names = [name for name in storage.list_folder(folder) if name.startswith(work)]
    storage.remove_all(os.path.join(folder, name) for name in names)


def _tokenise_tasks(options, inputs, vocab_path, folder):
    groups, size = [], 0
    weights = _language_weights(options)
    enough = max(_TASK_BYTES, sum(file["bytes"] for file in options["inputs"]) // 2000)
    for path, file in zip(inputs, options["inputs"], strict=True):
        parts = stretches(path, file["bytes"], 2 * enough)
        weight = weights.get(file.get("language"), 1.0)
        for start, stop in parts:
            if not groups or size >= enough:
                groups.append([])
                size = 0
            groups[-1].append([path, start, stop, weight])
            size += file["bytes"] // len(parts)
    return [
        workers.task(
            os.path.join(folder, f"chunk-{index:05d}"),
            stretches=group,
            vocab=vocab_path,
            rules=[options[name] for name in _RULES],
            **{name: options[name] for name in ("vocab_sha256", "invalid_utf8", "segmented")},
        )
        for index, group in enumerate(groups)
    ]


def _language_weights(options):
    if options["language_exponent"] == 1:
        return {}
    sizes = Counter()
    for file in options["inputs"]:
        sizes[file["language"]] += file["bytes"]
    return languages.weights(sizes, options["language_exponent"])


def _block_tasks(options, inputs, dtype, parts, folder):
    """Cut the keys into the ranges of blocks; return tasks of `assemble`, some blocks each."""
    documents = read_documents(parts)
    keys = np.concatenate([d["key"] for d in documents]) if documents else np.zeros(0, np.uint64)
    if not len(keys):
        raise UserError(f"no text in the input: {first_of(inputs, 3)}")
    tokens = np.concatenate([d["tokens"] for d in documents])
    order = np.argsort(keys, kind="stable")
    keys, tokens = keys[order], tokens[order]

    held_out = _held_out_documents(options["held_out"], keys)
    cuts = {
        "heldout": _cuts(tokens[:held_out], options["block_tokens"], 0, keys[:held_out]),
        "train": _cuts(tokens[held_out:], options["block_tokens"], held_out, keys[held_out:]),
    }
    edges = np.array([*cuts["heldout"][:-1], *cuts["train"]])
    slices = _write_slices(parts, slices_of(documents, keys[edges[1:-1]]), folder)
    names = [f"{split}-{index:05d}" for split, cut in cuts.items() for index in range(len(cut) - 1)]
    block_bytes = int(tokens.sum()) * dtype.itemsize / len(names)
    return [
        {
            "slices": slices,
            "blocks": (first, last),
            "dtype": dtype.str,
            "folder": folder,
            "names": names[first:last],
            "summary": os.path.join(folder, f"block-{first:05d}.summary"),
        }
        for first, last in key_ranges.tasks(len(names), len(parts), block_bytes)
    ]


def _write_slices(parts, table, folder):
    """Write where each block begins in each chunk; in the tasks, this would fill the memory.

    Returns: the table's path and checksum; the chunks' names lie beside it.
    """
    path = os.path.join(folder, "chunk-slices")
    crc32 = array_files.write_array(path, table)
    checked_json.write(path + ".json", {"chunks": [part["path"] for part in parts]})
    return [path, crc32]


def _held_out_documents(fraction, keys):
    """Return the number of documents, in key order, that are held out.

    Copies of a document stay together.
    """
    if not fraction:
        return 0
    documents, wanted = len(keys), max(2, round(fraction * len(keys)))
    if documents < wanted + 2:
        raise UserError(
            f"held_out={fraction} of {documents} documents cannot be held out: each side needs two "
            "documents or more; add documents, or hold out a smaller share or none"
        )
    edges = [int(np.searchsorted(keys, keys[wanted], side)) for side in ("left", "right")]
    if edges[0] == wanted:
        return wanted
    fits = [edge for edge in edges if 2 <= edge <= min(2 * wanted, documents - 2)]
    if not fits:
        raise UserError(
            f"held_out={fraction} of {documents} documents cannot be held out: "
            f"{edges[1] - edges[0]} of them are copies of one, which stay on one side; leave "
            f"copies out of the input"
        )
    return min(fits, key=lambda edge: abs(edge - wanted))


def _cuts(tokens, block_tokens, first, keys=None):
    """Return the edges of blocks among documents in key order.

    Every block has two documents or more, and copies of a document are in one block.
    """
    if not len(tokens):
        return [first]
    ends = np.cumsum(tokens)
    blocks = max(1, round(int(ends[-1]) / block_tokens))
    wanted = np.searchsorted(ends, ends[-1] * np.arange(1, blocks) / blocks)
    wanted = wanted if keys is None else np.searchsorted(keys, keys[wanted])
    edges = [0]
    for edge in wanted.tolist():
        if edge - edges[-1] >= 2 and len(tokens) - edge >= 2:
            edges.append(edge)
    return [first + edge for edge in [*edges, len(tokens)]]


def _manifest_path(folder):
    return os.path.join(folder, "manifest.json")
