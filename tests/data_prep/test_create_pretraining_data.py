"""From text to records: the same bytes, resuming, what is refused, damage found."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unicodedata
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from corpora import documents, write_corpus
from damage import flip
from in_process import call
from made_records import digest, examples, make

from data_prep import create_pretraining_data
from data_prep.pretraining import rows, shards, token_store
from data_prep.sentences import split_files
from data_prep.vocab import learn_vocab
from official_bert.common.errors import UserError
from official_bert.tokenization import BertTokenizer, write_vocab

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.usefixtures("small_blocks")


def test_the_same_options_give_the_same_bytes_with_any_number_of_workers(tmp_path, vocab):
    paths = [write_corpus(tmp_path / f"{s}.txt", documents=150, seed=s) for s in range(2)]
    options = {"held_out": 0.1, "examples_per_shard": 700}
    make(paths, vocab, tmp_path / "one", num_workers=1, **options)
    make(paths, vocab, tmp_path / "two", num_workers=2, **options)
    assert digest(tmp_path / "one") == digest(tmp_path / "two")
    assert len(list((tmp_path / "one").glob("*.tfrecord"))) > 2
    make(paths, vocab, tmp_path / "seed", random_seed=1, **options)
    assert digest(tmp_path / "one") != digest(tmp_path / "seed")


def test_golden_digest(tmp_path, vocab, write):
    # Changes only with the sampling rules: other numpy versions and machines must give the same.
    lines = [f"word{chr(97 + i % 26)} {i}.\n" + ("\n" if i % 7 == 6 else "") for i in range(400)]
    options = {"held_out": 0.1, "num_shards": 2, "accept_loss": True}
    make(write("a.txt", "".join(lines)), vocab, tmp_path / "records", **options)
    assert digest(tmp_path / "records")[:16] == "0437492bbcdfbae1"


def test_examples_do_not_depend_on_the_number_of_shards(tmp_path, vocab):
    path = write_corpus(tmp_path / "a.txt")
    make(path, vocab, tmp_path / "one", num_shards=1)
    make(path, vocab, tmp_path / "five", num_shards=5)
    one, five = examples(tmp_path / "one"), examples(tmp_path / "five")
    for name in one:  # shards are ranges of the shuffling keys: even the order is the same
        np.testing.assert_array_equal(one[name], five[name])


def test_a_token_store_serves_other_lengths(tmp_path, vocab, monkeypatch):
    path = write_corpus(tmp_path / "a.txt")
    store = str(tmp_path / "store")
    make(path, vocab, tmp_path / "short", token_store=store)
    long = {"max_seq_length": 128, "max_predictions_per_seq": 20}
    make(path, vocab, tmp_path / "plain", **long)
    monkeypatch.setattr(token_store, "tokenise", None)  # nothing is tokenised again
    make(path, vocab, tmp_path / "long", token_store=store, **long)
    assert digest(tmp_path / "long") == digest(tmp_path / "plain")
    assert not (tmp_path / "long" / "work").exists()


KILLED = """
import os, signal, sys
from data_prep.jobs import checked_json
from data_prep.pretraining import token_store
from data_prep.create_pretraining_data import create
token_store.BLOCK_TOKENS = 20_000
write = checked_json.write
def write_and_die(path, content):
    checksum = write(path, content)
    if sys.argv[5:] and str(path).endswith(sys.argv[5]):
        os.killpg(0, signal.SIGKILL)  # the processes of this run, which have a session of their own
    return checksum
checked_json.write = write_and_die  # in the worker processes too
if __name__ == "__main__":
    create(sys.argv[1], sys.argv[2], sys.argv[3], max_seq_length=64, max_predictions_per_seq=10,
           dupe_factor=30, examples_per_shard=2000, num_workers=int(sys.argv[4]), progress=False)
"""


def test_killed_and_run_again_it_ends_with_the_same_bytes(tmp_path, vocab):
    path = write_corpus(tmp_path / "a.txt", documents=250, sentences=(5, 60))
    (tmp_path / "run.py").write_text(KILLED)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}

    def start(output, workers, *last):
        command = [sys.executable, str(tmp_path / "run.py"), path, vocab, str(output), workers]
        command += last
        return subprocess.Popen(command, env=environment, start_new_session=True)

    assert start(tmp_path / "whole", "1").wait() == 0
    for workers in ("1", "2"):
        killed = tmp_path / workers
        for last in ("work/rows-train-00001.summary", "work/shards-train-00001.summary"):
            assert start(killed, workers, last).wait() == -signal.SIGKILL
            assert (killed / last).exists()
        assert not (killed / "manifest.json").exists()
        done = killed / "work" / "rows-train-00001.rows"
        made = done.stat().st_mtime_ns
        again = start(killed, workers)
        while again.poll() is None:
            with contextlib.suppress(FileNotFoundError):  # at the end it is removed
                assert done.stat().st_mtime_ns == made  # what was done is not done again
            time.sleep(0.01)
        assert again.wait() == 0 and digest(killed) == digest(tmp_path / "whole")
        found, expected = (f / "manifest.json" for f in (killed, tmp_path / "whole"))
        assert found.read_text() == expected.read_text()
        assert not (killed / "work").exists()


def test_shares_are_in_the_manifest_and_too_much_unknown_stops(tmp_path, vocab):
    made = make(write_corpus(tmp_path / "a.txt"), vocab, tmp_path / "records")
    counts, share = made["counts"], made["masked_lm_share"]
    assert counts["corpus_unknown_share"] == 0 and share["asked_for"] == 0.15
    assert share["reached"] == pytest.approx(counts["predictions"] / counts["tokens"], abs=1e-6)
    assert 0.14 < share["reached"] < 0.16
    dynamic = make(str(tmp_path / "a.txt"), vocab, tmp_path / "dynamic", dynamic_masking=True)
    assert "masked_lm_share" not in dynamic
    text = "worda wordb qqq.\nworda wordb wordc.\n\n"
    (tmp_path / "b.txt").write_text("".join(f"{text}wordd {n}.\n\n" for n in "abcdef"))
    with pytest.raises(UserError, match=r"\d% of the text is \[UNK\].*--accept_loss"):
        make(str(tmp_path / "b.txt"), vocab, tmp_path / "lost")
    lost = make(str(tmp_path / "b.txt"), vocab, tmp_path / "lost", accept_loss=True)
    assert 0.05 < lost["counts"]["corpus_unknown_share"] < 0.5


def test_a_finished_output_is_left_alone_and_other_options_are_an_error(tmp_path, vocab):
    path = write_corpus(tmp_path / "a.txt")
    first = make(path, vocab, tmp_path / "records")
    before = [p.stat().st_mtime_ns for p in sorted((tmp_path / "records").glob("[a-z]*"))]
    assert make(path, vocab, tmp_path / "records") == first
    assert [p.stat().st_mtime_ns for p in sorted((tmp_path / "records").glob("[a-z]*"))] == before
    with pytest.raises(UserError, match="max_seq_length: was 64, now 32.*--overwrite"):
        make(path, vocab, tmp_path / "records", max_seq_length=32)
    second = make(path, vocab, tmp_path / "records", max_seq_length=32, overwrite=True)
    assert second["max_seq_length"] == 32
    assert examples(tmp_path / "records")["input_ids"].shape[1] == 32


@pytest.mark.parametrize(
    "options,message",
    [
        ({"max_seq_length": 4}, "max_seq_length=4: must be from 5"),
        ({"mask_rate": 0.9}, "sum to 1"),
        ({"mask_rate": float("nan")}, "sum to 1"),
        ({"dupe_factor": 0}, "dupe_factor=0"),
        (
            {"max_seq_length": 128, "max_predictions_per_seq": 20, "masked_lm_prob": 0.4},
            "=20 cuts masked_lm_prob=0.4 to 15.6%: .* need max_predictions_per_seq=51",
        ),
        ({"max_predictions_per_seq": 9}, "need max_predictions_per_seq=10"),
        ({"compression": "ZIP"}, "compression='ZIP'"),
        ({"max_seq_len": 4}, r"unknown field max_seq_len \(did you mean .max_seq_length"),
    ],
)
def test_wrong_options(tmp_path, vocab, options, message):
    with pytest.raises(UserError, match=message):
        make(write_corpus(tmp_path / "a.txt"), vocab, tmp_path / "records", **options)
    assert not (tmp_path / "records").exists()


@pytest.mark.parametrize("store", ["records", "records/store", "."])
def test_a_token_store_lies_beside_the_records(tmp_path, vocab, store):
    path, output = write_corpus(tmp_path / "a.txt"), tmp_path / "made" / "records"
    with pytest.raises(UserError, match="--token_store=.*give two folders beside each other"):
        make(path, vocab, output, token_store=str(tmp_path / "made" / store))
    assert not output.exists()


def test_wrong_inputs(tmp_path, write):
    path = write_corpus(tmp_path / "a.txt")
    with pytest.raises(UserError, match=r"\[CLS\]|special"):
        make(path, write("bad.txt", "worda\nwordb\n"), tmp_path / "records")


@pytest.mark.parametrize(
    "language,sentences,do_lower_case",
    [
        ("zh", ["彼得住在哪裡？", "他住在臺北。"], True),
        ("ko", ["폼페이오 장관의 아시아 순방일정이 어떻게 되나요?", "네, 그렇습니다."], True),
        ("ko", ["폼페이오 장관의 아시아 순방일정이 어떻게 되나요?", "네, 그렇습니다."], False),
    ],
)
def test_other_scripts_from_text_to_records(tmp_path, language, sentences, do_lower_case):
    # A line is a document, written without blanks between sentences where the language has none.
    joined = ("" if language == "zh" else " ").join(sentences)
    (tmp_path / "raw.txt").write_text(f"{joined}\n{joined}\n", encoding="utf-8")
    split_files(str(tmp_path / "raw.txt"), tmp_path / "split", "lines", language, compress=False)
    (corpus,) = (tmp_path / "split").glob("*.txt")
    assert list(documents(str(corpus))) == [sentences, sentences]

    text = "".join(sentences).replace(" ", "")
    letters = set(unicodedata.normalize("NFD", text) if do_lower_case else text)
    size = 5 + 2 * len(letters)  # each letter alone, and inside a word
    for extra in range(size):  # the learner says where the text has no more to give
        try:
            vocab = learn_vocab(str(corpus), size - extra, do_lower_case, character_coverage=1.0)
            break
        except UserError:
            continue
    write_vocab(tmp_path / "vocab.txt", vocab)
    options = {"do_lower_case": do_lower_case, "dynamic_masking": True}
    make(str(corpus), str(tmp_path / "vocab.txt"), tmp_path / "records", **options)
    tokenizer = BertTokenizer(vocab, do_lower_case)
    encoded = [tokenizer.encode(sentence) for sentence in sentences]
    assert all(tokenizer.unk_id not in ids for ids in encoded)
    read = examples(tmp_path / "records")
    whole = encoded[0] + [tokenizer.sep_id] + encoded[1]
    pairs = zip(read["input_ids"], read["input_mask"], strict=True)
    rows = [row[1 : mask.sum() - 1].tolist() for row, mask in pairs]
    assert whole in rows or encoded[0] in [row[: row.index(tokenizer.sep_id)] for row in rows]


def test_the_command(tmp_path, vocab, capsys):
    flags = f"--vocab={vocab}", f"--output={tmp_path / 'records'}", "--dupe_factor=2"
    text = write_corpus(tmp_path / "a.txt")
    assert call(create_pretraining_data, f"--input={text}", *flags) == 0
    assert "examples in 1 shards" in capsys.readouterr().out
    assert call(create_pretraining_data, f"--input={tmp_path / '*.md'}", *flags) == 2
    assert "no file matches" in capsys.readouterr().err


def test_damaged_intermediate_files_are_found(tmp_path, vocab, monkeypatch):
    path = write_corpus(tmp_path / "a.txt", documents=20)
    options = {"dupe_factor": 1, "num_shards": 2, "max_seq_length": 32}
    stopped = tmp_path / "stopped"
    steps = [(rows, "make_rows"), (shards, "write_shards"), (token_store, "assemble")]
    for module, name in steps:  # the run that is killed before this step
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(module, name, mock.Mock(side_effect=KeyboardInterrupt))
            make(path, vocab, stopped / name, **options)
    found = 0
    for folder in sorted(stopped.glob("[!.]*")):
        kept = tmp_path / "kept" / folder.name
        shutil.copytree(folder, kept)
        for file in sorted(p for p in (folder / "work").rglob("[!.]*") if p.is_file()):
            if file.name == "vocab.txt" or "slices" in file.name:
                continue  # written anew at every start
            in_store = file.parent.name == "token_store"
            if in_store and folder.name == "write_shards" and file.name != "manifest.json":
                continue  # not read any more
            flip(file, file.stat().st_size // 2)
            with pytest.raises(UserError, match=re.escape(file.stem)):
                make(path, vocab, folder, **options)
            shutil.rmtree(folder)
            shutil.copytree(kept, folder)
            found += 1
    assert found == 14


@pytest.mark.parametrize(
    ("module", "step", "name"),
    [(shards, "write_shards", name) for name in ("vocab.txt", "slices-train", "slices-train.json")]
    + [(token_store, "assemble", name) for name in ("chunk-slices", "chunk-slices.json")],
)
def test_files_that_are_damaged_within_a_run_are_found(
    tmp_path, vocab, monkeypatch, module, step, name
):
    take = getattr(module, step)

    def damages(task):
        slices = task["slices"] if step == "write_shards" else task["slices"][0]
        path = Path(slices).with_name(name)
        flip(path, path.stat().st_size // 2)
        if name == "vocab.txt":
            rows._vocabulary.cache_clear()
            rows._vocabulary(str(path), task["options"]["vocab_sha256"])
        return take(task)

    monkeypatch.setattr(module, step, damages)
    with pytest.raises(UserError, match=f"{name} is damaged"):
        path = write_corpus(tmp_path / "a.txt", documents=40)
        make(path, vocab, tmp_path / "records", dupe_factor=1, num_shards=2)
