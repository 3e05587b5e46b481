"""The token store: complete, the same however it is built, resumable, and checked when read."""

import itertools
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from corpora import VOCAB, documents, write_corpus

from data_prep.corpus import text_files
from data_prep.create_pretraining_data import create
from data_prep.jobs.workers import LocalWorkers
from data_prep.pretraining import store_tasks, token_store
from data_prep.pretraining.record_options import RecordOptions
from official_bert.common.errors import UserError
from official_bert.tokenization import BertTokenizer


@pytest.fixture
def build(tmp_path, vocab):
    """Return build(inputs, name, held_out, **options): the store of a name, of small blocks."""

    def built(inputs, name="store", held_out=0.0, **options):
        chosen = token_store.store_options(inputs, vocab, RecordOptions(held_out=held_out))
        chosen["block_tokens"] = 3000
        workers = LocalWorkers(1, progress=False)
        return token_store.build(chosen, inputs, vocab, str(tmp_path / name), workers, **options)

    return built


@pytest.fixture
def paths(tmp_path):
    """Return files of a corpus."""
    return [write_corpus(tmp_path / f"{seed}.txt", seed=seed) for seed in range(3)]


def contents(store, split="train"):
    """Return the documents of a split, block by block, as tuples of sentences as tuples of ids."""
    blocks = []
    for index in range(len(store.blocks(split))):
        block = store.read(split, index)
        cuts = itertools.pairwise(block.sentence_offsets)
        sentences = [tuple(block.tokens[a:b].tolist()) for a, b in cuts]
        cuts = itertools.pairwise(block.document_offsets)
        blocks.append([tuple(sentences[a:b]) for a, b in cuts])
    return blocks


def test_it_holds_every_sentence_once(build, paths):
    blocks = contents(build(paths))
    tokenizer = BertTokenizer(VOCAB)
    expected = [tuple(tuple(tokenizer.encode(s)) for s in doc) for doc in documents(paths)]
    assert sorted(sum(blocks, [])) == sorted(expected)
    assert len(blocks) > 5 and min(map(len, blocks)) >= 2


def test_blocks_do_not_depend_on_files_their_order_or_the_chunks(build, paths, write, monkeypatch):
    first = contents(build(paths, "one", held_out=0.1))
    monkeypatch.setattr(store_tasks, "_CHUNK_TOKENS", 5000)
    monkeypatch.setattr(token_store, "_TASK_BYTES", 20_000)
    monkeypatch.setattr(text_files, "_BLOCK_BYTES", 3000)
    assert contents(build(paths[::-1], "two", held_out=0.1)) == first
    joined = write("all.txt", "\n\n".join(Path(path).read_text() for path in paths))
    monkeypatch.setattr(token_store, "_TASK_BYTES", 10_000)  # the file is cut into stretches
    assert contents(build([joined], "three", held_out=0.1)) == first


def test_held_out_documents_are_apart_and_copies_stay_together(build, tmp_path, write):
    text = Path(write_corpus(tmp_path / "a.txt", documents=200)).read_text()
    store = build([write("twice.txt", text + "\n" + text)], held_out=0.1)
    train, held_out = (set(sum(contents(store, split), [])) for split in ("train", "heldout"))
    assert not train & held_out
    assert 15 <= len(held_out) <= 25 and len(train) + len(held_out) == 200


@pytest.mark.parametrize(
    "copies, before, expected",
    [(1, 4, 5), (6, 4, 4), (5, 1, 6), (6, 3, 3), (60, 0, None), (60, 1, None), (60, 4, 4)],
)
def test_copies_of_a_document_never_leave_a_side_empty(copies, before, expected):
    """Issue: they moved to the other side, and the held-out split was empty without a word.

    Args:
      before: documents of lower keys than the copies' one.
    """
    keys = np.array([*range(before), *[50] * copies, *range(100, 150 - before - copies)], np.uint64)
    keys = np.concatenate([keys, np.arange(1000, 1000 + max(0, 50 - len(keys)), dtype=np.uint64)])
    fraction = 5 / len(keys)
    if expected is None:
        with pytest.raises(UserError, match=f"{copies} of them are copies of one"):
            token_store._held_out_documents(fraction, keys)
    else:
        assert token_store._held_out_documents(fraction, keys) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("worda wordb.\nwordc.\n\n" * 50, "50 of them are copies of one, which stay on one side"),
        ("worda.\n\nwordb.\n\nwordc.\n", "each side needs two documents or more; add doc"),
        ("\n\n \n", "no text in the input"),
    ],
)
def test_a_corpus_that_cannot_be_divided_is_refused(build, write, text, message):
    with pytest.raises(UserError, match=message):
        build([write("a.txt", text)], held_out=0.1)


def test_unknown_tokens_are_counted(build, write):
    store = build([write("a.txt", "worda wordb.\nqqq worda.\n\nwordc ÿ.\n")])
    assert (store.unknown, store.tokens) == (1, sum(b["tokens"] for b in store.blocks("train")))


def test_empty_sentences_and_documents_are_left_out(build, write):
    # Control characters tokenise to nothing.
    store = build([write("a.txt", "worda\n\x01\nwordb\n\n\x01\n\nwordc\n")])
    assert sorted(len(document) for document in sum(contents(store), [])) == [1, 2]


def test_wide_vocabularies_use_four_bytes_a_token():
    assert token_store.token_dtype(65536).itemsize == 2
    assert token_store.token_dtype(65537).itemsize == 4


def test_a_finished_store_is_opened_not_built_again(build, paths, tmp_path):
    build(paths)
    before = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "store").iterdir()}
    build(paths)
    assert {p.name: p.stat().st_mtime_ns for p in (tmp_path / "store").iterdir()} == before
    assert not [name for name in before if "chunk" in name or "summary" in name]


def test_an_interrupted_build_goes_on(build, paths, monkeypatch):
    # One task a file.
    monkeypatch.setattr(token_store, "_TASK_BYTES", min(map(os.path.getsize, paths)))
    whole = contents(build(paths, "whole"))
    tokenise, done = token_store.tokenise, []

    def dies(task):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append([path for path, *_ in task["stretches"]])
        return tokenise(task)

    monkeypatch.setattr(token_store, "tokenise", dies)
    with pytest.raises(KeyboardInterrupt):
        build(paths)
    del done[:1]  # room for the one task that is left, not for the two that were done
    assert contents(build(paths)) == whole and done == [[paths[1]], [paths[2]]]


def test_an_input_that_changes_while_it_is_read_is_refused(build, paths, monkeypatch):
    path, tokenise = paths[0], store_tasks.tokenise
    whole = Path(path).read_bytes()

    def changes(task):
        Path(path).write_text("Another text.\n\nOf two documents.\n")
        return tokenise(task)

    with monkeypatch.context() as patch:
        patch.setattr(token_store, "tokenise", changes)
        with pytest.raises(UserError, match="0.txt changed while it was read"):
            build([path])
    Path(path).write_bytes(whole)  # what was read of the other one is not taken for this one
    assert contents(build([path])) == contents(build([path], "other"))


def test_other_options_are_an_error_that_lists_them(build, paths, tmp_path):
    build(paths)
    with pytest.raises(UserError, match=r"held_out: was 0.0, now 0.2.*--overwrite"):
        build(paths, held_out=0.2)
    write_corpus(tmp_path / "0.txt", seed=9)
    with pytest.raises(UserError, match=r"inputs.0.sha256: was"):
        build(paths)
    build(paths, overwrite=True)


def test_cuts_balance_tokens_leave_two_documents_and_keep_copies_together():
    cuts = token_store._cuts(np.full(100, 50), 1000, 7)
    assert (cuts[0], cuts[-1], len(cuts)) == (7, 107, 6)
    assert set(np.diff(cuts)) <= {19, 20, 21}
    assert token_store._cuts(np.array([5000, 5000, 1]), 1000, 0) == [0, 3]
    keys = np.array([1, 2, 3, 3, 3, 3, 3, 8, 9, 10])
    assert token_store._cuts(np.full(10, 100), 200, 0, keys) == [0, 2, 7, 10]


@pytest.mark.slow
def test_tasks_stay_small_however_many_the_inputs(tmp_path, vocab, monkeypatch):
    """Tasks that carried the inputs, or slices of all chunks, filled memory and job graph."""
    monkeypatch.setattr(token_store, "_TASK_BYTES", 100)
    paths = [write_corpus(tmp_path / f"{s}.txt", documents=4, seed=s) for s in range(20)]
    sizes = {}

    class Measuring(LocalWorkers):
        def run(self, function, tasks, title):
            sizes[title] = max(len(pickle.dumps(task)) for task in tasks)
            return super().run(function, tasks, title)

    options = {"max_seq_length": 32, "dupe_factor": 1, "num_shards": 2}
    create(paths, vocab, str(tmp_path / "records"), workers=Measuring(1, progress=False), **options)
    assert len(sizes) == 5 and "joining" in sizes
    assert all(size < 1000 + 6 * len(str(tmp_path)) for size in sizes.values()), sizes
