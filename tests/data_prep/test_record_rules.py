"""The original's rules of examples and masks, counted on thousands of examples."""

import dataclasses
import json

import numpy as np
import pytest
from corpora import WORDS, write_corpus
from made_records import OPTIONS, check_masks, check_rows, examples, make, unmasked

from data_prep.create_pretraining_data import RecordOptions

pytestmark = pytest.mark.usefixtures("small_blocks")

CASES = {
    "default": {},
    "whole words": {"do_whole_word_mask": True, "compression": "GZIP"},
    "rates": {"mask_rate": 0.6, "same_rate": 0.3, "random_rate": 0.1, "masked_lm_prob": 0.1},
    "short": {"short_seq_prob": 0.9, "max_seq_length": 256, "held_out": 0.2, "num_shards": 3}
    | {"max_predictions_per_seq": 38},
    "few predictions": {"max_predictions_per_seq": 4, "masked_lm_prob": 0.06}
    | {"dupe_factor": 5, "examples_per_shard": 900},
    "whole words, rates": {"do_whole_word_mask": True, "mask_rate": 0.0, "same_rate": 0.0}
    | {"random_rate": 1.0, "masked_lm_prob": 0.3, "max_predictions_per_seq": 30},
    "spans": {"spans": "ngrams"},
    "dynamic": {"dynamic_masking": True, "random_seed": 7, "held_out": 0.1, "compression": "GZIP"},
    "cased": {"do_lower_case": False, "max_seq_length": 128, "max_predictions_per_seq": 20},
    "other rules": {"strip_accents": False, "tokenize_chinese_chars": False, "segmented": True}
    | {"invalid_utf8": "ignore", "language_exponent": 0.5},
}
UNMASKED = ["input_ids", "input_mask", "next_sentence_labels", "segment_ids"]
SLOW = ("rates", "short", "few predictions", "whole words, rates", "other rules", "cased")


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.slow) if case in SLOW else case for case in CASES]
)
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
            assert sorted(read) == UNMASKED
        else:
            check_masks(read, ids, lengths, chosen)
            assert counts["predictions"] == (read["masked_lm_weights"] == 1).sum()
        number = len(lengths)
        assert counts["examples"] == number and counts["tokens"] == lengths.sum()
        assert counts["random_next"] == read["next_sentence_labels"].sum()
        assert 0.5 < counts["random_next"] / number < 0.9  # more: chunks of a single sentence
        if folder == folders[0]:
            assert number > 2500

    # Options that decide about files and passes.
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


def test_dynamic_records_hold_the_texts_unmasked(tmp_path, vocab):
    path = write_corpus(tmp_path / "a.txt")
    make(path, vocab, tmp_path / "static")
    make(path, vocab, tmp_path / "dynamic", dynamic_masking=True)
    static, dynamic = examples(tmp_path / "static"), examples(tmp_path / "dynamic")
    # The same pairs in the same order: only the masks are left out.
    np.testing.assert_array_equal(dynamic["input_ids"], unmasked(static)[0])
    np.testing.assert_array_equal(dynamic["segment_ids"], static["segment_ids"])


def made_of_one_word_a_document(tmp_path, vocab, sentences, **options):
    """Return examples of documents each of which repeats a word of its own."""
    text = "\n\n".join("\n".join([f"{word} " * 12] * sentences) for word in WORDS)
    (tmp_path / "a.txt").write_text(text)
    options |= {"dynamic_masking": True}
    make(str(tmp_path / "a.txt"), vocab, tmp_path / "records", **options)
    return examples(tmp_path / "records")


def test_random_segments_come_from_other_documents(tmp_path, vocab):
    read = made_of_one_word_a_document(tmp_path, vocab, 20)
    ids = read["input_ids"]
    b_word = ids[np.arange(len(ids)), read["input_mask"].sum(axis=1) - 2]
    np.testing.assert_array_equal(ids[:, 1] != b_word, read["next_sentence_labels"][:, 0] == 1)


def test_neighbours_come_from_all_over_the_corpus(tmp_path, vocab):
    first = made_of_one_word_a_document(tmp_path, vocab, 200, num_shards=2)["input_ids"][:, 1]
    assert abs((first[1:] == first[:-1]).mean() - 1 / len(WORDS)) < 0.02
