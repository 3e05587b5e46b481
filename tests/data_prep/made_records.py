"""Records made in tests, what is in them, and the original's rules that it obeys."""

import hashlib
import json
from pathlib import Path

import numpy as np
from corpora import VOCAB

from data_prep.create_pretraining_data import create
from data_prep.pretraining.record_files import parse_example, read_records

CLS, SEP, MASK = map(VOCAB.index, ("[CLS]", "[SEP]", "[MASK]"))
OPTIONS = {"max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 3}


def make(inputs, vocab, output, **options):
    options = OPTIONS | {"num_workers": 1, "progress": False} | options
    return create(inputs, vocab, str(output), **options)


def examples(folder):
    """All examples of a folder in file order: feature name to [examples, values]."""
    manifest = json.loads((Path(folder) / "manifest.json").read_text())
    parsed = [
        parse_example(record)
        for shard in manifest["shards"]
        for record in read_records(str(Path(folder) / shard["file"]), manifest["compression"])
    ]
    return {name: np.stack([example[name] for example in parsed]) for name in parsed[0]}


def digest(folder):
    """One digest of all record files below a folder."""
    total = hashlib.sha256()
    for path in sorted(Path(folder).rglob("*.tfrecord")):
        total.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return total.hexdigest()


def check_rows(read, chosen):
    """Shapes, input masks, segments and special tokens; returns lengths and unmasked ids."""
    length, number = chosen["max_seq_length"], len(read["input_ids"])
    assert read["input_ids"].shape == (number, length)
    lengths = read["input_mask"].sum(axis=1)
    column = np.arange(length)
    np.testing.assert_array_equal(read["input_mask"], column < lengths[:, None])
    ids = read["input_ids"].copy()
    if "masked_lm_ids" in read:
        used = read["masked_lm_weights"] == 1
        ids[np.nonzero(used)[0], read["masked_lm_positions"][used]] = read["masked_lm_ids"][used]
    b_ends = length - np.argmax(read["segment_ids"][:, ::-1], axis=1)  # past the last segment 1
    np.testing.assert_array_equal(b_ends, lengths)
    assert (ids[:, 0] == CLS).all()
    assert ((ids == SEP).sum(axis=1) == 2).all() and ((ids == CLS).sum(axis=1) == 1).all()
    assert (ids[np.arange(number), lengths - 1] == SEP).all()
    first_sep = np.argmax(ids == SEP, axis=1)
    segments = (column > first_sep[:, None]) & (column < lengths[:, None])
    np.testing.assert_array_equal(read["segment_ids"], segments)
    assert (first_sep > 1).all() and (lengths - first_sep > 2).all()  # neither segment is empty
    assert (ids[column >= lengths[:, None]] == 0).all()
    assert lengths.max() == length
    # Targets drawn from 2 on make short rows; without them only ends of documents do.
    assert ((lengths < length / 2).mean() > 0.3) == (chosen["short_seq_prob"] > 0.5)
    return lengths, ids


def check_masks(read, ids, lengths, chosen):
    """Counts, places and rates of the masked LM."""
    slots, used = chosen["max_predictions_per_seq"], read["masked_lm_weights"] == 1
    rows, places = np.nonzero(used)[0], read["masked_lm_positions"][used]
    now, before = read["input_ids"][rows, places], read["masked_lm_ids"][used]
    assert read["masked_lm_positions"].shape == (len(ids), slots)
    assert set(np.unique(read["masked_lm_weights"])) <= {0, 1}
    assert (read["masked_lm_ids"][~used] == 0).all()
    assert (read["masked_lm_positions"][~used] == 0).all()
    assert not np.isin(before, (CLS, SEP)).any()
    expected = [
        min(slots, max(1, int(round(n * chosen["masked_lm_prob"])))) for n in lengths.tolist()
    ]
    if chosen["do_whole_word_mask"]:
        assert (used.sum(axis=1) <= expected).all()
        assert used.sum() > 0.97 * sum(expected)
        column, first_sep = np.arange(ids.shape[1]), np.argmax(ids == SEP, axis=1)
        continues = np.array([entry.startswith("##") for entry in VOCAB])
        chosen_places = np.zeros(ids.shape, bool)
        chosen_places[rows, places] = True
        row, place = np.nonzero(continues[ids] & (column > 1) & (column != first_sep[:, None] + 1))
        np.testing.assert_array_equal(chosen_places[row, place], chosen_places[row, place - 1])
    else:
        np.testing.assert_array_equal(used.sum(axis=1), expected)
    assert (np.diff(read["masked_lm_positions"], axis=1)[used[:, 1:]] > 0).all()
    shares = np.array([(now == MASK).mean(), (now == before).mean()])
    by_chance = chosen["random_rate"] / len(VOCAB)
    error = 4 * 0.5 / len(now) ** 0.5
    assert abs(shares[0] - chosen["mask_rate"] - by_chance) < error
    assert abs(shares[1] - chosen["same_rate"] - by_chance) < error
