"""The tasks that build a token store: from texts to chunks, from chunks to blocks.

See `data_prep.pretraining.token_store` for what chunks and blocks are.
"""

import contextlib
import functools
import hashlib
import itertools
import os
from collections import Counter

import google_crc32c
import numpy as np

from data_prep.corpus.text_files import decode_lines, line_blocks, text_lines
from data_prep.jobs import array_files, checked_json, storage, vocabularies
from data_prep.pretraining import key_ranges
from official_bert.tokenization.reference import Rules, is_ideograph

ARRAYS = (".documents", ".sentences", ".tokens")  # the files of a chunk
_CHUNK_TOKENS = 1 << 22  # a chunk is written when it holds so many

# A chunk's entry for each document: its key, its numbers of sentences and tokens, and a check. The
# key is a hash of the tokens; the check is the CRC-32C of these and of the sentences' lengths.
DOCUMENT = np.dtype([("key", "<u8"), ("sentences", "<i8"), ("tokens", "<i8"), ("check", "<u4")])


def tokenise(task: dict) -> dict:
    """Run step 1 for some stretches of files: write chunks, their documents in key order."""
    rules = tuple(zip(Rules._fields, task["rules"], strict=True))
    tokenizer = _tokenizer(task["vocab"], rules, task["vocab_sha256"])
    segmented = task["segmented"]
    encode = (SegmentedEncoder(tokenizer) if segmented else tokenizer).encode_lines
    writer = _ChunkWriter(task["output"], token_dtype(tokenizer.vocab_size, segmented))
    counts, unknown = Counter(), tokenizer.unk_id if tokenizer.special.unk else -1
    for path, start, stop, weight in task["stretches"]:
        writer.set_weight(weight)
        for lines in line_blocks(path, start, stop):
            try:
                ids, offsets = encode(lines)
            except UnicodeDecodeError:
                if task["invalid_utf8"] == "error":
                    for _ in text_lines(path, task["invalid_utf8"]):
                        pass  # raises an error that names the line
                    raise
                lines = _repaired(lines, task["invalid_utf8"], counts)
                ids, offsets = encode(lines)
            lengths = np.diff(offsets)
            counts["tokens"] += len(ids)
            counts["unknown"] += int(np.count_nonzero(ids % tokenizer.vocab_size == unknown))
            writer.add(ids, lengths, _blank(lines, lengths))
        writer.end_document()
    writer.flush()
    return {
        "vocab_size": tokenizer.vocab_size,
        "parts": writer.parts,
        **{name: counts[name] for name in ("tokens", "unknown", "invalid_utf8")},
    }


def join(task: dict) -> dict:
    """Join some chunks to a larger one, between the steps, where there are many.

    Returns:
      The chunk, like the "parts" of `tokenise`, and the files of the smaller chunks as "used_up".
    """
    chunks = checked_json.read(task["files"])["files"][slice(*task["group"])]
    paths = [chunk["path"] for chunk in chunks]
    known = read_documents(chunks)
    dtype = np.dtype(task["dtype"])
    largest = max(int(chunk["tokens"].sum()) for chunk in known) * dtype.itemsize
    pieces = max(1, largest // key_ranges.READ_BYTES)
    table = slices_of(known, key_ranges.edges(pieces)[1:])
    documents, path = [], task["output"]
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(storage.writing(path + end)) for end in ARRAYS[1:]]
        for first, last in itertools.pairwise(table):
            read = _read_slices(paths, first, last, dtype)
            # A part at a time, since the indices of tokens take four times the tokens' memory.
            for order in np.array_split(_key_order(read[0]), len(paths)):
                some, *arrays = _taken(*read, order)
                documents.append(some)
                for file, array in zip(files, arrays, strict=True):
                    file.write(array.view(np.uint8).data)
    documents = np.concatenate(documents)
    crc32 = array_files.write_array(path + ".documents", documents)
    return {
        "path": path,
        "documents": len(documents),
        "documents_crc32": crc32,
        "used_up": [chunk + end for chunk in paths for end in ARRAYS],
    }


def assemble(task: dict) -> dict:
    """Run step 2 for some blocks: collect their documents from every chunk, in key order."""
    chunks, table = _slices(*task["slices"])
    first, last = task["blocks"]
    read = _read_slices(chunks, table[first], table[last], np.dtype(task["dtype"]))
    ends = (table[first + 1 : last, :, 0] - table[first, :, 0]).sum(axis=1)
    orders = np.split(_key_order(read[0]), ends)
    return {
        "blocks": [
            _write_block(os.path.join(task["folder"], name), *_taken(*read, order))
            for name, order in zip(task["names"], orders, strict=True)
        ]
    }


def _write_block(base, documents, sentences, tokens):
    sentence_offsets = offsets_of(sentences)
    document_offsets = offsets_of(documents["sentences"])
    return {
        "documents": len(documents),
        "sentences": len(sentences),
        "tokens": len(tokens),
        "checksums": {
            "tokens": array_files.write_array(base + ".tokens", tokens),
            "sentences": array_files.write_array(base + ".sentences", sentence_offsets),
            "documents": array_files.write_array(base + ".documents", document_offsets),
        },
    }


def _read_slices(chunks, first, last, dtype):
    """Return documents, sentence lengths and tokens of the slices of all chunks, checked.

    Args:
      first, last: int64 [chunks, 3], begins and ends of the slices; rows of `slices_of`.
    """
    documents, sentences, tokens = [], [], []
    spans = np.stack([first, last], axis=2).tolist()
    for path, ((d0, d1), (s0, s1), (t0, t1)) in zip(chunks, spans, strict=True):
        documents.append(array_files.read_slice(path + ".documents", DOCUMENT, d0, d1))
        sentences.append(array_files.read_slice(path + ".sentences", "<i8", s0, s1))
        tokens.append(array_files.read_slice(path + ".tokens", dtype, t0, t1))
        _check_documents(path, documents[-1], sentences[-1], tokens[-1])
    return tuple(map(np.concatenate, (documents, sentences, tokens)))


def read_documents(chunks: list[dict]) -> list[np.ndarray]:
    """Read the entries of the documents of each chunk; chunks are "parts" of `tokenise`."""
    return [
        array_files.read_array(chunk["path"] + ".documents", DOCUMENT, chunk["documents_crc32"])
        for chunk in chunks
    ]


def slices_of(documents: list[np.ndarray], keys: np.ndarray) -> np.ndarray:
    """Return where each range of keys begins in each chunk, int64 [ranges + 1, chunks, 3].

    The last axis has documents, sentences and tokens; the last row has the ends.

    Args:
      documents: entries of each chunk's documents.
      keys: the first keys of all ranges but the first.
    """
    table = np.empty((len(keys) + 2, len(documents), 3), np.int64)
    for column, chunk in enumerate(documents):
        place = np.concatenate([[0], np.searchsorted(chunk["key"], keys), [len(chunk)]])
        table[:, column, 0] = place
        table[:, column, 1] = offsets_of(chunk["sentences"])[place]
        table[:, column, 2] = offsets_of(chunk["tokens"])[place]
    return table


@functools.lru_cache(maxsize=1)
def _slices(path, crc32):
    """Return the chunks' names, and the table of `slices_of`, for blocks."""
    chunks = checked_json.read(path + ".json")["chunks"]
    return chunks, array_files.read_array(path, "<i8", crc32).reshape(-1, len(chunks), 3)


def _repaired(lines, invalid_utf8, counts):
    """Return whole lines as UTF-8; count the lines that had to be changed."""
    repaired = decode_lines(lines.split(b"\n")[:-1], "", invalid_utf8, counts)
    return b"".join(f"{line}\n".encode() for _, line in repaired)


def _blank(lines, lengths):
    """Return which lines are blank, bool [lines].

    Other lines without tokens are empty sentences.
    """
    ends = np.flatnonzero(np.frombuffer(lines, np.uint8) == ord("\n"))
    starts = np.concatenate([[0], ends[:-1] + 1])
    blank = lengths == 0
    for line in np.flatnonzero(blank & (ends > starts)).tolist():
        blank[line] = not lines[starts[line] : ends[line]].decode("utf-8").strip()
    return blank


class _ChunkWriter:
    """Collects tokenised lines, and writes a chunk when there are enough tokens."""

    def __init__(self, base, dtype):
        self._base = base
        self._dtype = dtype
        self._pending = []  # (tokens, lengths of lines, which are blank)
        self._tokens = 0
        self._weight = 1.0
        self.parts = []

    def set_weight(self, weight: float):
        """Set the factor for the documents that follow; all before have ended."""
        if weight != self._weight:
            self.flush()
            self._weight = weight

    def add(self, ids, lengths, blank):
        """Add lines: their ids, the number of ids of each, and which lines end a document."""
        self._pending.append((ids.astype(self._dtype), lengths, blank))
        self._tokens += len(ids)
        if self._tokens >= _CHUNK_TOKENS and blank.any():
            self.flush()

    def end_document(self):
        self._pending.append((np.zeros(0, self._dtype), np.zeros(1, np.int64), np.ones(1, bool)))

    def flush(self):
        """Write all documents that have ended."""
        if not self._pending:
            return
        tokens, lengths, blank = map(np.concatenate, zip(*self._pending, strict=True))
        lines = int(np.flatnonzero(blank)[-1]) + 1
        whole = int(lengths[:lines].sum())
        self._pending = [(tokens[whole:], lengths[lines:], blank[lines:])]
        self._tokens = len(tokens) - whole
        if not whole:
            return
        columns = _documents(tokens[:whole], lengths[:lines], blank[:lines])
        order = _key_order(columns[0], self._weight)
        documents, sentences, tokens = _taken(*columns, order)
        if not len(documents):
            return
        path = f"{self._base}-{len(self.parts):03d}"
        documents["check"] = _checks(documents, sentences)
        array_files.write_array(path + ".tokens", tokens)
        array_files.write_array(path + ".sentences", sentences)
        crc32 = array_files.write_array(path + ".documents", documents)
        self.parts.append({"path": path, "documents": len(documents), "documents_crc32": crc32})


def _documents(tokens, lengths, blank):
    """Return entries [documents], sentence lengths, tokens; empty sentences and documents are
    dropped."""
    kept = lengths > 0
    _, sentences = np.unique(np.cumsum(blank)[kept], return_counts=True)
    lengths = lengths[kept].astype(np.int64)
    documents = np.empty(len(sentences), DOCUMENT)
    documents["sentences"] = sentences
    documents["tokens"] = np.diff(offsets_of(lengths)[offsets_of(sentences)])
    documents["key"] = _document_keys(tokens, documents["tokens"])
    return documents, lengths, tokens


def _document_keys(tokens, lengths):
    """Return a hash of each document's tokens, uint64.

    Equal texts have equal keys, so copies of a document are on one side of the held-out split.
    """
    content = tokens.astype("<u4").tobytes()
    keys, at = [], 0
    for size in (4 * lengths).tolist():
        digest = hashlib.blake2b(content[at : at + size], digest_size=8).digest()
        keys.append(int.from_bytes(digest, "little"))
        at += size
    return np.array(keys, np.uint64)


def _check_documents(path, documents, sentences, tokens):
    """Raise UserError unless the slices of a chunk are those that were written."""
    fits = documents["sentences"].sum() == len(sentences)
    fits = fits and np.array_equal(_checks(documents, sentences), documents["check"])
    if not fits:
        raise storage.damaged(path + ".sentences")
    if not np.array_equal(_document_keys(tokens, documents["tokens"]), documents["key"]):
        raise storage.damaged(path + ".tokens")


def _checks(documents, sentences):
    width, heads = DOCUMENT.itemsize, np.ascontiguousarray(documents).tobytes()
    lengths = np.ascontiguousarray(sentences, "<i8").tobytes()
    checks, at = [], 0
    for row, size in enumerate((8 * documents["sentences"]).tolist()):
        head = google_crc32c.value(heads[row * width : (row + 1) * width - 4])
        checks.append(google_crc32c.extend(head, lengths[at : at + size]))
        at += size
    return np.array(checks, "<u4")


def _key_order(documents, weight=1.0):
    """Return the order of documents by key, with repetitions by weight.

    With a weight of 2.3 a document comes two or three times; with 0.3, three documents in ten come.
    The key decides, so copies and runs agree.
    """
    order = np.argsort(documents["key"], kind="stable")
    if weight != 1:
        keys = documents["key"][order]
        chance = (keys * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(11)) * 2.0**-53
        order = np.repeat(order, np.floor(weight + chance).astype(np.int64))
    return order


def _taken(documents, sentences, tokens, order):
    """Return documents in an order, with their sentence lengths and tokens."""
    return (
        documents[order],
        sentences[_runs(documents["sentences"], order)],
        tokens[_runs(documents["tokens"], order)],
    )


def _runs(lengths, order):
    """Return the indices that reorder consecutive runs of these lengths."""
    starts = offsets_of(lengths)[:-1][order]
    lengths = lengths[order]
    ends = np.cumsum(lengths)
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(ends[-1] if len(ends) else 0)


def offsets_of(lengths) -> np.ndarray:
    """Return the starts of runs of these lengths, and the end of the last: int64 [n + 1]."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def token_dtype(vocab_size: int, segmented: bool = False):
    """Return the integer type for token ids in blocks and rows.

    Segmented text has twice as many ids.
    """
    return np.dtype("<u2") if vocab_size << segmented <= 1 << 16 else np.dtype("<u4")


@functools.lru_cache(maxsize=2)
def _tokenizer(vocab, rules, sha256):  # the digest is part of the key
    return vocabularies.load_tokenizer(vocab, sha256, **dict(rules))


class SegmentedEncoder:
    """Encodes text whose words a segmenter divided by blanks, in a language that writes none.

    It has `BertTokenizer.encode_lines`, with ids in [0, 2 * vocab_size).

    BERT makes every ideograph a token, so whole-word masking alone finds no Chinese words. Here an
    ideograph that continues the word before it is stored as its id plus the vocabulary's size. So a
    second copy of the vocabulary holds the same pieces inside of words.
    """

    def __init__(self, tokenizer):
        self._tokenizer = tokenizer
        self._is_ideograph = np.array([len(p) == 1 and is_ideograph(p) for p in tokenizer.vocab])

    def encode_lines(self, data: bytes) -> tuple[np.ndarray, np.ndarray]:
        """Encode lines as `BertTokenizer.encode_lines` does; blanks are the segmenter's.

        A tab and the ideographic space separate words too.
        """
        data = data.replace(b"\t", b" ").replace("\u3000".encode(), b" ")
        ids, offsets = self._tokenizer.encode_lines(data.replace(b" ", b"\n"))
        ideograph = self._is_ideograph[ids]
        continues = ideograph.copy()
        continues[1:] &= ideograph[:-1]
        starts = offsets[:-1]
        continues[starts[starts < len(ids)]] = False
        content = np.frombuffer(data, np.uint8)
        separators = content[(content == ord(" ")) | (content == ord("\n"))]
        line_ends = np.flatnonzero(separators == ord("\n")) + 1
        offsets = np.concatenate([[0], offsets[line_ends]])
        return ids + continues * np.int32(self._tokenizer.vocab_size), offsets
