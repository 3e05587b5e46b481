"""Records made in tests, what is in them, and the original's rules that it obeys."""

import hashlib
import json
from pathlib import Path

import numpy as np
from corpora import VOCAB

from data_prep.create_pretraining_data import create
from data_prep.pretraining.reading.record_files import parse_example, read_records
from official_bert.tokenization import BertTokenizer

TOKENIZER = BertTokenizer(VOCAB)
OPTIONS = {"max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 3}


def make(inputs, vocab, output, **options):
    options = OPTIONS | {"num_workers": 1, "progress": False} | options
    return create(inputs, vocab, str(output), **options)


def examples(folder):
    """Return all examples of a folder in file order: feature name to [examples, values]."""
    manifest = json.loads((Path(folder) / "manifest.json").read_text())
    paths = (str(Path(folder) / shard["file"]) for shard in manifest["shards"])
    read = (read_records(path, manifest["compression"]) for path in paths)
    parsed = [parse_example(record) for records in read for record in records]
    return {name: np.stack([example[name] for example in parsed]) for name in parsed[0]}


def digest(folder):
    """Return one digest of all record files below a folder."""
    total = hashlib.sha256()
    for path in sorted(Path(folder).rglob("*.tfrecord")):
        total.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return total.hexdigest()


def unmasked(read):
    """Return (ids with what was hidden put back, which of them are masked), both [examples,
    length]."""
    ids, used = read["input_ids"].copy(), read["masked_lm_weights"] == 1
    places = np.nonzero(used)[0], read["masked_lm_positions"][used]
    masked = np.zeros(ids.shape, bool)
    ids[places], masked[places] = read["masked_lm_ids"][used], True
    return ids, masked


def check_rows(read, chosen, tokenizer=TOKENIZER):
    """Check shapes, input masks, segments and special tokens; return lengths and unmasked ids."""
    length, number = chosen["max_seq_length"], len(read["input_ids"])
    assert read["input_ids"].shape == (number, length)
    lengths = read["input_mask"].sum(axis=1)
    rows, column = np.arange(number), np.arange(length)
    np.testing.assert_array_equal(read["input_mask"], column < lengths[:, None])
    ids = unmasked(read)[0] if "masked_lm_ids" in read else read["input_ids"]
    between = 0 if chosen["packing"] == "single" else tokenizer.separators
    cls, sep = ids == tokenizer.cls_id, ids == tokenizer.sep_id
    assert cls[:, 0].all() and (cls.sum(axis=1) == 1).all()
    assert sep[rows, lengths - 1].all() and (sep.sum(axis=1) == 1 + between).all()
    assert (ids[column >= lengths[:, None]] == tokenizer.pad_id).all()
    if not between:
        assert not read["segment_ids"].any() and not read["next_sentence_labels"].any()
        return lengths, ids
    # The separators stand together, before the first token of the second segment.
    b_start = np.argmax(read["segment_ids"], axis=1)
    for place in range(1, 1 + between):
        assert sep[rows, b_start - place].all()
    segments = (column >= b_start[:, None]) & (column < lengths[:, None])
    np.testing.assert_array_equal(read["segment_ids"], segments)
    assert (b_start > 1 + between).all() and (lengths - b_start > 1).all()  # neither is empty
    if chosen["packing"] == "segments":
        assert lengths.max() == length
        # Targets drawn from 2 on make short rows; without them only ends of documents do.
        assert ((lengths < length / 2).mean() > 0.3) == (chosen["short_seq_prob"] > 0.5)
    return lengths, ids


def check_masks(read, ids, lengths, chosen, tokenizer=TOKENIZER):
    """Count, places and rates of the masked LM."""
    slots, used = chosen["max_predictions_per_seq"], read["masked_lm_weights"] == 1
    rows, places = np.nonzero(used)[0], read["masked_lm_positions"][used]
    now, before = read["input_ids"][rows, places], read["masked_lm_ids"][used]
    special = np.isin(ids, (tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id))
    assert read["masked_lm_positions"].shape == (len(ids), slots)
    assert set(np.unique(read["masked_lm_weights"])) <= {0, 1}
    assert (read["masked_lm_ids"][~used] == 0).all()
    assert (read["masked_lm_positions"][~used] == 0).all()
    assert not special[rows, places].any()
    share = chosen["masked_lm_prob"]
    expected = [min(slots, max(1, int(round(n * share)))) for n in lengths.tolist()]
    if chosen["do_whole_word_mask"]:
        assert (used.sum(axis=1) <= expected).all() and used.sum() > 0.97 * sum(expected)
        _, masked = unmasked(read)
        inside = tokenizer.continues[ids] & ~special & ~np.roll(special, 1, axis=1)
        row, place = np.nonzero(inside)
        assert len(row) > 100
        np.testing.assert_array_equal(masked[row, place], masked[row, place - 1])
    else:
        np.testing.assert_array_equal(used.sum(axis=1), expected)
    assert (np.diff(read["masked_lm_positions"], axis=1)[used[:, 1:]] > 0).all()
    shares = np.array([(now == tokenizer.mask_id).mean(), (now == before).mean()])
    by_chance = chosen["random_rate"] / tokenizer.vocab_size
    error = 4 * 0.5 / len(now) ** 0.5
    assert abs(shares[0] - chosen["mask_rate"] - by_chance) < error
    assert abs(shares[1] - chosen["same_rate"] - by_chance) < error
