"""From blocks of documents to shards of records, in two steps that never hold the examples.

1. *Rows.* A block's pairs are drawn for every duplication, each with a random 64-bit key, and
   masked in the order of their keys: one file of fixed-width rows a block, sorted by key.
2. *Shards.* A shard is a range of keys. It takes its slice of every block's file and sorts it by
   key. Since the keys are random, this is a uniform shuffle of all examples of the corpus.

Both are pure functions of (seed, block): see `data_prep.jobs.workers` for who runs them.
"""

import contextlib
import functools
import os

import google_crc32c
import numpy as np

from data_prep.jobs import storage
from data_prep.pretraining import random_streams
from data_prep.pretraining.masking import MaskingRates, mask_rows
from data_prep.pretraining.next_sentence import SegmentPairs, segment_pairs
from data_prep.pretraining.random_streams import RandomStream
from data_prep.pretraining.tf_example import pack_records
from data_prep.pretraining.token_store import TokenStore, token_dtype

_ROWS_AT_ONCE = 4096  # drawn from one stream of random numbers: the masks depend on it
_PACKED_AT_ONCE = 2048  # numpy's temporary arrays stay below the size that malloc gives back
_HELD_OUT_BLOCKS = 1 << 32  # block numbers of the held-out split start here


def rows_tasks(store: TokenStore, split: str, options: dict, vocab_path: str, work: str):
    """One task of `make_rows` for each block of a split."""
    options = _of_rows(options)
    return [
        {
            "store": store.folder,
            "split": split,
            "block": block,
            "options": options,
            "vocab": vocab_path,
            "output": os.path.join(work, f"rows-{split}-{block:05d}"),
            "summary": os.path.join(work, f"rows-{split}-{block:05d}.summary"),
        }
        for block in range(len(store.blocks(split)))
    ]


def _of_rows(options):
    """The options that rows depend on; the list of inputs, in every task, would fill the memory."""
    return {name: value for name, value in options.items() if name != "inputs"}


def make_rows(task: dict) -> dict:
    """Step 1: pairs and masks of one block, for every duplication.

    Writes OUTPUT.rows (dtype `row_dtype`) and OUTPUT.keys (uint64), both sorted by key.

    Returns:
      Counts: {"rows", "random_next", "tokens", "predictions", "cut_tokens"}; tokens with [CLS] and
      [SEP], those that were cut off are not among them; and the checksum of the keys' file,
      "keys_crc32".
    """
    options = task["options"]
    store = TokenStore(task["store"])
    block = store.read(task["split"], task["block"])
    tokens = np.pad(block.tokens, options["max_seq_length"])
    number = task["block"] + (_HELD_OUT_BLOCKS if task["split"] == "heldout" else 0)
    stream = functools.partial(RandomStream, options["random_seed"], block=number)

    pairs = segment_pairs(
        np.asarray(block.sentence_offsets),
        np.asarray(block.document_offsets),
        options["max_seq_length"] - 3,
        options["short_seq_prob"],
        [
            stream(purpose=random_streams.PAIRS, duplication=duplication)
            for duplication in range(options["dupe_factor"])
        ],
    )
    keys = stream(purpose=random_streams.ORDER).raw(len(pairs))
    order = np.argsort(keys, kind="stable")
    keys_crc32 = storage.write_array(task["output"] + ".keys", keys[order])

    masks = stream(purpose=random_streams.MASKS)
    vocabulary = _vocabulary(task["vocab"], options["vocab_sha256"])
    counts = {"rows": len(pairs), "random_next": int(pairs.is_random.sum())}
    counts |= {"tokens": 0, "predictions": 0, "cut_tokens": int(pairs.cut.sum())}
    counts["keys_crc32"] = keys_crc32
    with storage.writing(task["output"] + ".rows") as file:
        for start in range(0, len(pairs), _ROWS_AT_ONCE):
            chosen = order[start : start + _ROWS_AT_ONCE]
            some = pairs.take(chosen)
            rows = _rows(tokens, some, options, vocabulary, masks)
            rows["check"] = _checks(keys[chosen], rows)
            file.write(rows.tobytes())
            counts["tokens"] += int((some.a_length + some.b_length + 3).sum())
            if not options["dynamic_masking"]:
                counts["predictions"] += int(rows["predictions"].sum())
    return counts


def row_dtype(options: dict, vocab_size: int) -> np.dtype:
    """A row between the two steps: what cannot be computed again from the rest."""
    token = token_dtype(vocab_size)
    fields = [("input_ids", token, options["max_seq_length"])]
    fields += [("a_length", "<u2"), ("b_length", "<u2"), ("is_random", "u1")]
    if not options["dynamic_masking"]:
        slots = options["max_predictions_per_seq"]
        fields += [("positions", "<u2", slots), ("ids", token, slots), ("predictions", "<u2")]
    # A shard takes some rows of every file: each has a checksum of its own, the last field.
    return np.dtype([*fields, ("check", "<u8")])


def _checks(keys: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """uint64 [rows]: a checksum of each row and its key.

    A sum of 64-bit words times odd numbers, modulo 2**64: no change of one word can leave it as it
    was. (A CRC-32C of every row, from Python, would take five times as long.)
    """
    rows = np.ascontiguousarray(rows).view(np.uint8).reshape(len(keys), -1)[:, :-8]
    words = np.zeros((len(keys), 1 + -(-rows.shape[1] // 8)), "<u8")
    words[:, 0] = keys
    words.view(np.uint8)[:, 8 : 8 + rows.shape[1]] = rows
    words ^= words >> np.uint64(32)  # else the highest bits of two words could make up for another
    return words @ _odd_numbers(words.shape[1])


@functools.lru_cache(maxsize=4)
def _odd_numbers(count):
    return np.random.PCG64(0).random_raw(count).astype(np.uint64) | np.uint64(1)


def shard_tasks(
    rows: list[dict], counts: list[dict], split: str, options: dict, vocab_size: int, folder: str
):
    """One task of `write_shard` for each shard of a split.

    The slices of all shards in all row files go to a table on disk, [shards + 1, blocks + 1], for a
    large corpus has millions of them. Its last column has the checksum of each row.

    Args:
      rows: the tasks of `make_rows`; counts: their results.
      folder: where the shards go.
    """
    examples = sum(count["rows"] for count in counts)
    shards = options["num_shards"] or max(1, -(-examples // options["examples_per_shard"]))
    # Shard s has the keys from edges[s] to edges[s + 1] - 1; 2**64 itself is no uint64.
    edges = np.array([(shard << 64) // shards for shard in range(shards)], np.uint64)
    table = np.empty((shards + 1, len(rows) + 1), np.int64)
    for column, (task, count) in enumerate(zip(rows, counts, strict=True)):
        keys = storage.read_array(task["output"] + ".keys", "<u8", count["keys_crc32"])
        table[:-1, column] = np.searchsorted(keys, edges)
        table[-1, column] = count["rows"]
    table[:, -1] = [_table_check(row) for row in table]
    work = os.path.dirname(rows[0]["output"])
    path = os.path.join(work, f"slices-{split}")
    storage.write_array(path, table)
    storage.write_json(path + ".json", {"outputs": [task["output"] for task in rows]})
    return [
        {
            "slices": path,
            "shard": shard,
            "options": _of_rows(options),
            "vocab_size": vocab_size,
            "output": os.path.join(folder, f"examples-{shard:05d}-of-{shards:05d}.tfrecord"),
            "summary": os.path.join(work, f"shard-{split}-{shard:05d}.summary"),
        }
        for shard in range(shards)
    ]


def write_shard(task: dict) -> dict:
    """Step 2: one TFRecord file.

    Returns:
      {"file", "examples", "bytes", "crc32c"}, the shard's entry in the manifest.

    Raises:
      UserError: a file of step 1 is damaged.
    """
    outputs = storage.read_json(task["slices"] + ".json")["outputs"]
    width, shard = len(outputs) + 1, task["shard"]
    both = storage.read_slice(task["slices"], "<i8", shard * width, (shard + 2) * width)
    both = both.reshape(2, width)
    if any(_table_check(row) != row[-1] for row in both):
        raise storage.damaged(task["slices"])
    dtype = row_dtype(task["options"], task["vocab_size"])
    slices = zip(outputs, *both[:, :-1].tolist(), strict=True)
    read = [_read_rows(path, dtype, start, stop) for path, start, stop in slices]
    keys, rows = map(np.concatenate, zip(*read, strict=True))
    order = np.argsort(keys, kind="stable")
    with storage.writing(task["output"]) as raw:
        hashing = _HashingFile(raw)
        compressed = task["options"]["compression"] == "GZIP"
        with storage.packing(hashing) if compressed else contextlib.nullcontext(hashing) as file:
            for start in range(0, len(rows), _PACKED_AT_ONCE):
                some = rows[order[start : start + _PACKED_AT_ONCE]]
                file.write(pack_records(features(some, task["options"])))
    return {
        "file": os.path.basename(task["output"]),
        "examples": len(rows),
        "bytes": hashing.size,
        "crc32c": f"{hashing.crc32c:08x}",
    }


def _table_check(row):
    return google_crc32c.value(np.ascontiguousarray(row[:-1], "<i8").tobytes())


def _read_rows(path, dtype, start, stop):
    """Keys and rows `start` to `stop` - 1 of a block, found undamaged."""
    keys = storage.read_slice(path + ".keys", "<u8", start, stop)
    rows = storage.read_slice(path + ".rows", dtype, start, stop)
    if not np.array_equal(_checks(keys, rows), rows["check"]):
        raise storage.damaged(path + ".rows")
    return keys, rows


def features(rows: np.ndarray, options: dict) -> dict[str, np.ndarray]:
    """The features of `data_prep.records.SCHEMA` of rows of `row_dtype`."""
    before = _before(options["max_seq_length"])
    b_start = rows["a_length"].astype(np.int64) + 2
    real = before[b_start + rows["b_length"] + 1]
    values = {
        "input_ids": rows["input_ids"],
        "input_mask": real.view(np.uint8),
        "segment_ids": (real ^ before[b_start]).view(np.uint8),
        "next_sentence_labels": rows["is_random"][:, None],
    }
    if not options["dynamic_masking"]:
        used = np.arange(options["max_predictions_per_seq"]) < rows["predictions"][:, None]
        values["masked_lm_positions"] = rows["positions"]
        values["masked_lm_ids"] = rows["ids"]
        values["masked_lm_weights"] = used.astype(np.float32)
    return values


def _rows(tokens, pairs: SegmentPairs, options, vocabulary, masks) -> np.ndarray:
    """[CLS] A [SEP] B [SEP], padded, masked unless that is left to training time.

    `tokens` has max_seq_length more values at either end.
    """
    length = options["max_seq_length"]
    row, before = np.arange(len(pairs)), _before(length)
    b_start = pairs.a_length + 2
    last = b_start + pairs.b_length  # the second [SEP]
    # Stretches of tokens that have A at column 1 and B at column b_start.
    of_a = _stretches(tokens, length + pairs.a_start - 1, length)
    of_b = _stretches(tokens, length + pairs.b_start - b_start, length)
    ids = np.where(before[b_start], of_a, of_b)
    ids[:, 0] = vocabulary.cls
    ids[row, pairs.a_length + 1] = vocabulary.sep
    ids[row, last] = vocabulary.sep
    np.copyto(ids, vocabulary.pad, where=~before[last + 1])

    continues = vocabulary.continues[ids] if options["do_whole_word_mask"] else None
    if options.get("segmented"):
        ids %= vocabulary.size
    rows = np.zeros(len(pairs), row_dtype(options, vocabulary.size))
    rows["a_length"], rows["b_length"] = pairs.a_length, pairs.b_length
    rows["is_random"] = pairs.is_random
    if options["dynamic_masking"]:
        rows["input_ids"] = ids
        return rows
    candidates = before[last]
    candidates[:, 0] = False
    candidates[row, pairs.a_length + 1] = False
    if continues is not None:
        # A piece at the start of a segment begins a word of its own, even where the truncation
        # left it without its head.
        continues[:, 1] = continues[row, b_start] = False
    masked = mask_rows(
        ids,
        candidates,
        pairs.a_length + pairs.b_length + 3,
        masks,
        vocab_size=vocabulary.size,
        mask_id=vocabulary.mask,
        masked_lm_prob=options["masked_lm_prob"],
        max_predictions=options["max_predictions_per_seq"],
        rates=MaskingRates(options["mask_rate"], options["same_rate"], options["random_rate"]),
        continues=continues,
    )
    rows["input_ids"] = masked.input_ids
    rows["positions"], rows["ids"] = masked.positions, masked.ids
    rows["predictions"] = masked.counts
    return rows


def _stretches(array, starts, length):
    """[rows, length]: the values from each start on, copied as a whole."""
    size = array.itemsize
    view = np.ndarray(len(array) - length + 1, f"V{length * size}", array, strides=(size,))
    return view[starts].view(array.dtype).reshape(-1, length)


@functools.lru_cache(maxsize=4)
def _before(length):
    """bool [length + 1, length]: row n is true before column n. Rows are taken, not computed."""
    return np.arange(length) < np.arange(length + 1)[:, None]


class _Vocabulary:
    """What masking needs of a vocabulary: special ids and which entries continue a word."""

    def __init__(self, entries: list[str]):
        self.size = len(entries)
        index = {entry: place for place, entry in enumerate(entries)}
        self.pad, self.cls = index["[PAD]"], index["[CLS]"]
        self.sep, self.mask = index["[SEP]"], index["[MASK]"]
        # Entry i + size is entry i inside a word (`segmented`).
        self.continues = np.array(
            [entry.startswith("##") for entry in entries] + [True] * self.size
        )


@functools.lru_cache(maxsize=2)
def _vocabulary(path, sha256):  # the digest is part of the key: a file may be written anew
    return _Vocabulary(storage.load_vocab(path, sha256))


class _HashingFile:
    """Passes bytes on to a file and keeps their number and CRC-32C."""

    def __init__(self, file):
        self._file = file
        self.crc32c = 0
        self.size = 0

    def write(self, data):
        self._file.write(data)
        self.crc32c = google_crc32c.extend(self.crc32c, data)
        self.size += len(data)
        return len(data)

    def flush(self):
        self._file.flush()
