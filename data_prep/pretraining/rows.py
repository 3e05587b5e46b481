"""The first step of records: the pairs of a block of documents as rows, masked, in random order.

A block's pairs are drawn for every duplication, each with a random 64-bit key, and masked in the
order of their keys. A block gives one file of fixed-width rows, sorted by key. It is a pure
function of (seed, block); `data_prep.jobs.workers` runs it.
"""

import functools
import os

import numpy as np

from data_prep.jobs import array_files, storage, vocabularies, workers
from data_prep.pretraining import random_streams
from data_prep.pretraining.masking import SPANS, MaskingRates, mask_rows
from data_prep.pretraining.next_sentence import PACKINGS, SegmentPairs
from data_prep.pretraining.random_streams import RandomStream
from data_prep.pretraining.token_store import TokenStore, token_dtype

_ROWS_AT_ONCE = 4096  # they draw from one random stream, so the masks depend on this
_HELD_OUT_BLOCKS = 1 << 32  # block numbers of the held-out split start here


def rows_tasks(store: TokenStore, split: str, options: dict, vocab_path: str, work: str):
    """Return a task of `make_rows` for each block of a split."""
    options = options_of_rows(options)
    return [
        workers.task(
            os.path.join(work, f"rows-{split}-{block:05d}"),
            store=store.folder,
            split=split,
            block=block,
            options=options,
            vocab=vocab_path,
        )
        for block in range(len(store.blocks(split)))
    ]


def options_of_rows(options: dict) -> dict:
    """Return the options that rows depend on, without the list of inputs.

    In every task, that list would fill the memory.
    """
    return {name: value for name, value in options.items() if name != "inputs"}


def make_rows(task: dict) -> dict:
    """Make the pairs and masks of one block, for every duplication.

    They are written to OUTPUT.rows (dtype `row_dtype`) and OUTPUT.keys (uint64), sorted by key.

    Returns:
      Counts: {"rows", "random_next", "tokens", "predictions", "cut_tokens"}, and "keys_crc32", the
      checksum of the keys' file. "tokens" counts [CLS] and [SEP], but no tokens that were cut.
    """
    options = task["options"]
    store = TokenStore(task["store"])
    block = store.read(task["split"], task["block"])
    tokens = np.pad(block.tokens, options["max_seq_length"])
    number = task["block"] + (_HELD_OUT_BLOCKS if task["split"] == "heldout" else 0)
    stream = functools.partial(RandomStream, options["random_seed"], block=number)

    pairs = PACKINGS[options["packing"]](
        np.asarray(block.sentence_offsets),
        np.asarray(block.document_offsets),
        options["max_seq_length"] - 2 - options["separators"],
        options["short_seq_prob"],
        [
            stream(purpose=random_streams.PAIRS, duplication=duplication)
            for duplication in range(options["dupe_factor"])
        ],
    )
    keys = stream(purpose=random_streams.ORDER).raw(len(pairs))
    order = np.argsort(keys, kind="stable")
    keys_crc32 = array_files.write_array(task["output"] + ".keys", keys[order])

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
            rows["key"] = keys[chosen]
            rows["check"] = row_checks(rows)
            file.write(rows.tobytes())
            special = 2 + options["separators"]
            counts["tokens"] += int((some.a_length + some.b_length + special).sum())
            if not options["dynamic_masking"]:
                counts["predictions"] += int(rows["predictions"].sum())
    return counts


def row_dtype(options: dict, vocab_size: int) -> np.dtype:
    """Return the type of rows between the steps: fields that the rest does not determine."""
    token = token_dtype(vocab_size)
    fields = [("key", "<u8"), ("input_ids", token, options["max_seq_length"])]
    fields += [("a_length", "<u2"), ("b_length", "<u2"), ("is_random", "u1")]
    if not options["dynamic_masking"]:
        slots = options["max_predictions_per_seq"]
        fields += [("positions", "<u2", slots), ("ids", token, slots), ("predictions", "<u2")]
    # A task reads some rows of every file, so each row has its own checksum, the last field.
    return np.dtype([*fields, ("check", "<u8")])


def row_checks(rows: np.ndarray) -> np.ndarray:
    """Return a checksum of each row for its field `check`, uint64 [rows].

    It is a sum of 64-bit words times odd numbers, modulo 2**64, which every change of one word
    changes. (A CRC-32C of every row, from Python, would take five times as long.)
    """
    content = np.ascontiguousarray(rows).view(np.uint8).reshape(-1, rows.itemsize)[:, :-8]
    words = np.zeros((len(rows), -(-content.shape[1] // 8)), "<u8")
    words.view(np.uint8)[:, : content.shape[1]] = content
    words ^= words >> np.uint64(32)  # else changes of the highest bits of two words could cancel
    return words @ _odd_numbers(words.shape[1])


@functools.lru_cache(maxsize=4)
def _odd_numbers(count):
    return np.random.PCG64(0).random_raw(count).astype(np.uint64) | np.uint64(1)


def features(rows: np.ndarray, options: dict) -> dict[str, np.ndarray]:
    """Return the features of `data_prep.records.SCHEMA` of rows of `row_dtype`."""
    before, between = _before(options["max_seq_length"]), options["separators"]
    b_start = rows["a_length"].astype(np.int64) + 1 + between
    real = before[b_start + rows["b_length"] + 1]
    first = before[b_start] if between else real
    values = {
        "input_ids": rows["input_ids"],
        "input_mask": real.view(np.uint8),
        "segment_ids": (real ^ first).view(np.uint8),
        "next_sentence_labels": rows["is_random"][:, None],
    }
    if not options["dynamic_masking"]:
        used = np.arange(options["max_predictions_per_seq"]) < rows["predictions"][:, None]
        values["masked_lm_positions"] = rows["positions"]
        values["masked_lm_ids"] = rows["ids"]
        values["masked_lm_weights"] = used.astype(np.float32)
    return values


def _rows(tokens, pairs: SegmentPairs, options, vocabulary, masks) -> np.ndarray:
    """Build the rows [CLS] A [SEP] B [SEP] or, without separators, [CLS] A [SEP].

    They are padded, and masked unless training does it.

    `tokens` has max_seq_length extra values at either end.
    """
    length, between = options["max_seq_length"], options["separators"]
    row, before = np.arange(len(pairs)), _before(length)
    b_start = pairs.a_length + 1 + between
    last = b_start + pairs.b_length  # the last [SEP]
    ends_of_a = range(1, 1 + between)
    # Stretches of tokens that have A at column 1 and B at column b_start.
    of_a = _stretches(tokens, length + pairs.a_start - 1, length)
    of_b = _stretches(tokens, length + pairs.b_start - b_start, length)
    ids = np.where(before[b_start], of_a, of_b)
    ids[:, 0] = vocabulary.cls
    for place in ends_of_a:
        ids[row, pairs.a_length + place] = vocabulary.sep
    ids[row, last] = vocabulary.sep
    np.copyto(ids, vocabulary.pad, where=~before[last + 1])

    spans = SPANS.get(options["spans"])
    whole_words = options["do_whole_word_mask"] or spans
    continues = vocabulary.continues[ids] if whole_words else None
    if options["segmented"]:
        ids %= vocabulary.size
    rows = np.zeros(len(pairs), row_dtype(options, vocabulary.size))
    rows["a_length"], rows["b_length"] = pairs.a_length, pairs.b_length
    rows["is_random"] = pairs.is_random
    if options["dynamic_masking"]:
        rows["input_ids"] = ids
        return rows
    candidates = before[last]
    candidates[:, 0] = False
    for place in ends_of_a:
        candidates[row, pairs.a_length + place] = False
    if continues is not None:
        # A piece at the start of a segment counts as the begin of a word, even where truncation
        # cut the word's head.
        continues[:, 1] = continues[row, b_start] = False
    masked = mask_rows(
        ids,
        candidates,
        pairs.a_length + pairs.b_length + 2 + between,
        masks,
        vocab_size=vocabulary.size,
        mask_id=vocabulary.mask if options["masked_lm_prob"] else vocabulary.cls,
        masked_lm_prob=options["masked_lm_prob"],
        max_predictions=options["max_predictions_per_seq"],
        rates=MaskingRates(options["mask_rate"], options["same_rate"], options["random_rate"]),
        continues=continues,
        spans=spans,
    )
    rows["input_ids"] = masked.input_ids
    rows["positions"], rows["ids"] = masked.positions, masked.ids
    rows["predictions"] = masked.counts
    return rows


def _stretches(array, starts, length):
    """Return the values from each start on, copied whole: [rows, length]."""
    size = array.itemsize
    view = np.ndarray(len(array) - length + 1, f"V{length * size}", array, strides=(size,))
    return view[starts].view(array.dtype).reshape(-1, length)


@functools.lru_cache(maxsize=4)
def _before(length):
    """Return bool [length + 1, length]: row n is true before column n. Rows are taken, not
    computed."""
    return np.arange(length) < np.arange(length + 1)[:, None]


class _Vocabulary:
    """The part of a vocabulary that masking needs: special ids, and entries that continue words."""

    def __init__(self, tokenizer):
        self.size = tokenizer.vocab_size
        self.pad, self.cls = tokenizer.pad_id, tokenizer.cls_id
        self.sep, self._tokenizer = tokenizer.sep_id, tokenizer

    @functools.cached_property
    def mask(self):
        return self._tokenizer.mask_id

    @functools.cached_property
    def continues(self):
        # Entry i + size is entry i inside a word (`SegmentedEncoder`).
        return np.concatenate([self._tokenizer.continues, np.ones(self.size, bool)])


@functools.lru_cache(maxsize=2)
def _vocabulary(path, sha256):  # the digest is part of the key: a file may be written anew
    return _Vocabulary(vocabularies.load_tokenizer(path, sha256))
