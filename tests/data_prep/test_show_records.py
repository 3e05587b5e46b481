"""Showing records: the words, the answers, the labels and the statistics are the records' own."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from corpora import VOCAB, write_corpus
from made_records import make

from data_prep import show_records
from data_prep.pretraining.tf_example import framed_records
from official_bert.common.errors import UserError


def ids(*tokens, length):
    row = [VOCAB.index(token) for token in tokens]
    return np.array([row + [0] * (length - len(row))])


@pytest.fixture
def one(tmp_path, vocab):
    """Return a file of one known example."""
    features = {
        "input_ids": ids(
            "[CLS]", "worda", "[MASK]", "##ing", "[SEP]", "wordc", "wordd", "[SEP]", length=10
        ),
        "input_mask": np.array([[1] * 8 + [0] * 2]),
        "segment_ids": np.array([[0] * 5 + [1] * 3 + [0] * 2]),
        "masked_lm_positions": np.array([[2, 5, 6, 0]]),
        "masked_lm_ids": ids("wordb", "wordc", "worde", length=4),
        "masked_lm_weights": np.array([[1, 1, 1, 0]], np.float32),
        "next_sentence_labels": np.array([[1]]),
    }
    (tmp_path / "one.tfrecord").write_bytes(framed_records(features))
    return str(tmp_path / "one.tfrecord")


def test_an_example_reads_well(one):
    text = show_records.show(one)
    assert "random next segment, 8 of 10 tokens, 3 masked" in text
    assert "A: worda [MASK → wordb]ing" in text and "B: [wordc] [wordd → worde]" in text


def test_statistics_of_one_example(one):
    values = show_records.statistics(one)
    assert values["examples"] == 1 and values["max_seq_length"] == 10
    assert values["mean_length"] == 8 and values["padding_share"] == pytest.approx(0.2)
    assert values["random_next_share"] == 1 and values["masks_a_row"] == [3, 3, 3]
    assert values["mask_share"] == values["same_share"] == pytest.approx(1 / 3)
    assert values["random_share"] == pytest.approx(1 / 3)
    assert [8, 8, 1] in values["length_histogram"]


@pytest.mark.parametrize("dynamic", [False, True])
def test_statistics_agree_with_the_manifest(tmp_path, vocab, dynamic):
    path = write_corpus(tmp_path / "a.txt")
    manifest = make(path, vocab, tmp_path / "records", dynamic_masking=dynamic)
    values = show_records.statistics(str(tmp_path / "records"))
    counts = manifest["counts"]
    assert values["examples"] == counts["examples"]
    assert values["mean_length"] == pytest.approx(counts["tokens"] / counts["examples"])
    assert values["random_next_share"] == counts["random_next"] / counts["examples"]
    assert sum(count for _, _, count in values["length_histogram"]) == counts["examples"]
    text = show_records.statistics_text(values)
    if dynamic:
        assert "drawn anew in every epoch" in text
    else:
        assert values["masks_a_row"][0] * counts["examples"] == pytest.approx(counts["predictions"])
        assert abs(values["mask_share"] - 0.8) < 0.03
    show_records.plot(values, str(tmp_path / "lengths.png"))
    assert (tmp_path / "lengths.png").read_bytes().startswith(b"\x89PNG")


def test_the_command_and_its_errors(one, tmp_path):
    def run(*options):
        command = [sys.executable, "-m", "data_prep.show_records", *options]
        folder = Path(__file__).parents[2]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True)

    done = run(one, f"--plot={tmp_path / 'p.png'}")
    assert done.returncode == 0 and re.search(r"masks a row: 3.0 on average", done.stdout)
    assert (tmp_path / "p.png").exists()
    failed = run(f"--records={tmp_path}/none*")
    assert failed.returncode == 2 and "no record file matches" in failed.stderr


def test_another_vocabulary_and_another_format_are_named(one, tmp_path):
    (tmp_path / "small.txt").write_text("\n".join(VOCAB[:5]) + "\n")
    with pytest.raises(UserError, match=r"tfrecord record 0: input_ids\[1\] is \d+, it must be"):
        show_records.show(one, str(tmp_path / "small.txt"))
    records = show_records.open_records(one)
    records.vocab_size = len(VOCAB)  # as a manifest says it
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(show_records, "open_records", lambda source: records)
        with pytest.raises(UserError, match="small.txt has 5 entries, and the records were made"):
            show_records.show(one, str(tmp_path / "small.txt"))
    with pytest.raises(UserError, match="p.txt: the format of --plot='txt'; it is one of .*png"):
        show_records.plot(show_records.statistics(one), str(tmp_path / "p.txt"))


def test_several_files(one, tmp_path):
    second = tmp_path / "two.tfrecord"
    second.write_bytes(Path(one).read_bytes())
    assert show_records.named([one]) == one
    assert show_records.statistics(show_records.named([one, str(second)]))["examples"] == 2
    with pytest.raises(UserError, match="name the records"):
        show_records.named([])
    with pytest.raises(UserError, match="is a folder; show one folder, or several files"):
        show_records.named([one, str(tmp_path)])


def test_no_vocabulary_is_an_error(one, tmp_path):
    (tmp_path / "vocab.txt").unlink()
    with pytest.raises(UserError, match="no vocabulary lies beside"):
        show_records.show(one)
    assert "mask_share" not in show_records.statistics(one)
