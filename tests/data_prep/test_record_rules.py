"""The original's rules of examples and masks, counted on thousands of examples."""

import dataclasses
import json

import numpy as np
import pytest
from corpora import VOCAB, write_corpus
from made_records import OPTIONS, examples, make

from data_prep.create_pretraining_data import RecordOptions

CLS, SEP, MASK = map(VOCAB.index, ("[CLS]", "[SEP]", "[MASK]"))
pytestmark = pytest.mark.usefixtures("small_blocks")


# Every option away from its default in some case (a test below sees to that).
CASES = {
    "default": {},
    "whole words": {"do_whole_word_mask": True, "compression": "GZIP"},
    "rates": {"mask_rate": 0.6, "same_rate": 0.3, "random_rate": 0.1, "masked_lm_prob": 0.1},
    "short": {"short_seq_prob": 0.9, "max_seq_length": 256, "held_out": 0.2, "num_shards": 3}
    | {"max_predictions_per_seq": 38},
    "few predictions": {
        "max_predictions_per_seq": 4,
        "masked_lm_prob": 0.06,
        "dupe_factor": 5,
        "examples_per_shard": 900,
    },
    "whole words, rates": {
        "do_whole_word_mask": True,
        "mask_rate": 0.0,
        "same_rate": 0.0,
        "random_rate": 1.0,
        "masked_lm_prob": 0.3,
        "max_predictions_per_seq": 30,
    },
    "spans": {"spans": "ngrams"},
    "dynamic": {"dynamic_masking": True, "random_seed": 7, "held_out": 0.1, "compression": "GZIP"},
    "cased": {"do_lower_case": False, "max_seq_length": 128, "max_predictions_per_seq": 20},
    "other rules": {
        "strip_accents": False,
        "tokenize_chinese_chars": False,
        "invalid_utf8": "ignore",
        "language_exponent": 0.5,
        "segmented": True,
    },
}


@pytest.mark.parametrize("case", CASES)
def test_the_rules_on_thousands_of_examples(tmp_path, vocab, case):
    path = write_corpus(tmp_path / "a.txt", documents=300, sentences=(1, 40))
    chosen = dataclasses.asdict(RecordOptions(**OPTIONS | CASES[case]))
    manifest = make(path, vocab, tmp_path / "records", **CASES[case])
    folders = [tmp_path / "records"]
    folders += [tmp_path / "records" / "heldout"] * bool(chosen["held_out"])
    for folder in folders:
        read = examples(folder)
        counts = json.loads((folder / "manifest.json").read_text())["counts"]
        lengths, ids = check_rows(read, chosen)
        if chosen["dynamic_masking"]:
            assert sorted(read) == [
                "input_ids", "input_mask", "next_sentence_labels", "segment_ids"
            ]  # fmt: skip
        else:
            check_masks(read, ids, lengths, chosen)
            assert counts["predictions"] == (read["masked_lm_weights"] == 1).sum()
        number = len(lengths)
        assert counts["examples"] == number and counts["tokens"] == lengths.sum()
        assert counts["random_next"] == read["next_sentence_labels"].sum()
        assert 0.5 < counts["random_next"] / number < 0.9  # more: chunks of a single sentence
        if folder == folders[0]:
            assert number > 2500

    # What decides about files and passes.
    number = manifest["counts"]["examples"]
    shards = chosen["num_shards"] or -(-number // chosen["examples_per_shard"])
    assert len(manifest["shards"]) == shards
    for shard in manifest["shards"]:
        magic = (tmp_path / "records" / shard["file"]).read_bytes()[:2]
        assert (magic == b"\x1f\x8b") == (chosen["compression"] == "GZIP")
    if chosen["held_out"]:
        documents = [json.loads((f / "manifest.json").read_text()) for f in folders]
        train, held_out = (d["counts"]["corpus_documents"] for d in documents)
        assert held_out == round(300 * chosen["held_out"]) and train + held_out == 300
    else:
        tokens = manifest["counts"]["corpus_tokens"] * chosen["dupe_factor"]
        # No text is lost but by truncation; random segments come on top.
        assert 0.9 * tokens < manifest["counts"]["tokens"] < 2 * tokens


def test_the_rules_cover_every_option():
    away = {name for case in CASES.values() for name in case}
    away |= {"packing"}  # pretraining/test_packings.py
    assert away == {field.name for field in dataclasses.fields(RecordOptions)}


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


def test_dynamic_records_hold_the_texts_unmasked(tmp_path, vocab):
    path = write_corpus(tmp_path / "a.txt")
    make(path, vocab, tmp_path / "static")
    make(path, vocab, tmp_path / "dynamic", dynamic_masking=True)
    static, dynamic = examples(tmp_path / "static"), examples(tmp_path / "dynamic")
    assert sorted(dynamic) == ["input_ids", "input_mask", "next_sentence_labels", "segment_ids"]
    used = static["masked_lm_weights"] == 1
    rows = np.nonzero(used)[0]
    ids = static["input_ids"]
    ids[rows, static["masked_lm_positions"][used]] = static["masked_lm_ids"][used]
    # The same pairs in the same order: only the masks are left out.
    np.testing.assert_array_equal(dynamic["input_ids"], ids)
    np.testing.assert_array_equal(dynamic["segment_ids"], static["segment_ids"])


def test_random_segments_come_from_other_documents(tmp_path, vocab):
    # Each document repeats a word of its own.
    words = [entry for entry in VOCAB if entry.startswith("word")]
    text = "\n\n".join("\n".join([f"{word} " * 12] * 20) for word in words)
    (tmp_path / "a.txt").write_text(text)
    make(str(tmp_path / "a.txt"), vocab, tmp_path / "records", dynamic_masking=True)
    read = examples(tmp_path / "records")
    ids = read["input_ids"]
    b_word = ids[np.arange(len(ids)), read["input_mask"].sum(axis=1) - 2]
    np.testing.assert_array_equal(ids[:, 1] != b_word, read["next_sentence_labels"][:, 0] == 1)


def test_neighbours_come_from_all_over_the_corpus(tmp_path, vocab):
    words = [entry for entry in VOCAB if entry.startswith("word")]
    text = "\n\n".join("\n".join([f"{word} " * 12] * 200) for word in words)
    (tmp_path / "a.txt").write_text(text)
    make(str(tmp_path / "a.txt"), vocab, tmp_path / "records", dynamic_masking=True, num_shards=2)
    first = examples(tmp_path / "records")["input_ids"][:, 1]
    assert abs((first[1:] == first[:-1]).mean() - 1 / len(words)) < 0.02
