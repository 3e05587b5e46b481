"""The token store: complete, the same however it is built, resumable, and checked when read."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from corpora import VOCAB, documents, write_corpus, write_vocabulary

from data_prep.corpus import text_files
from data_prep.create_pretraining_data import create
from data_prep.jobs.workers import LocalWorkers
from data_prep.pretraining import store_tasks, token_store
from data_prep.pretraining.record_options import RecordOptions
from official_bert.common.errors import UserError
from official_bert.tokenization import BertTokenizer


def build(folder, inputs, vocab, held_out=0.0, block_tokens=3000, **options):
    chosen = token_store.store_options(inputs, vocab, RecordOptions(held_out=held_out))
    chosen["block_tokens"] = block_tokens
    workers = LocalWorkers(1, progress=False)
    return token_store.build(chosen, inputs, vocab, str(folder), workers, **options)


def contents(store, split="train"):
    """Return the documents of a split, block by block, as tuples of sentences as tuples of ids."""
    blocks = []
    for index in range(len(store.blocks(split))):
        block = store.read(split, index)
        s, d = block.sentence_offsets, block.document_offsets
        blocks.append(
            [
                tuple(tuple(block.tokens[s[i] : s[i + 1]].tolist()) for i in range(a, b))
                for a, b in zip(d[:-1], d[1:], strict=True)
            ]
        )
    return blocks


@pytest.fixture
def vocab(tmp_path):
    return write_vocabulary(tmp_path / "vocab.txt")


def test_it_holds_every_sentence_once(tmp_path, vocab):
    paths = [write_corpus(tmp_path / f"{seed}.txt", seed=seed) for seed in range(3)]
    blocks = contents(build(tmp_path / "store", paths, vocab))
    tokenizer = BertTokenizer(VOCAB)
    expected = [tuple(tuple(tokenizer.encode(s)) for s in doc) for doc in documents(paths)]
    assert sorted(sum(blocks, [])) == sorted(expected)
    assert len(blocks) > 5
    assert min(map(len, blocks)) >= 2


def test_blocks_do_not_depend_on_files_their_order_or_the_chunks(tmp_path, vocab, monkeypatch):
    paths = [write_corpus(tmp_path / f"{seed}.txt", seed=seed) for seed in range(3)]
    first = contents(build(tmp_path / "one", paths, vocab, held_out=0.1))
    monkeypatch.setattr(store_tasks, "_CHUNK_TOKENS", 5000)
    monkeypatch.setattr(token_store, "_TASK_BYTES", 20_000)
    monkeypatch.setattr(text_files, "_BLOCK_BYTES", 3000)
    assert contents(build(tmp_path / "two", paths[::-1], vocab, held_out=0.1)) == first
    (tmp_path / "all.txt").write_text("\n\n".join(Path(p).read_text() for p in paths))
    monkeypatch.setattr(token_store, "_TASK_BYTES", 10_000)  # the file is cut into stretches
    joined = build(tmp_path / "three", [str(tmp_path / "all.txt")], vocab, held_out=0.1)
    assert contents(joined) == first


def test_held_out_documents_are_apart_and_copies_stay_together(tmp_path, vocab):
    text = Path(write_corpus(tmp_path / "a.txt", documents=200)).read_text()
    (tmp_path / "twice.txt").write_text(text + "\n" + text)
    store = build(tmp_path / "store", [str(tmp_path / "twice.txt")], vocab, held_out=0.1)
    train = set(sum(contents(store), []))
    held_out = set(sum(contents(store, "heldout"), []))
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


def test_a_corpus_of_copies_is_refused(tmp_path, vocab):
    (tmp_path / "a.txt").write_text("worda wordb.\nwordc.\n\n" * 50)
    with pytest.raises(UserError, match="50 of them are copies of one, which stay on one side"):
        build(tmp_path / "store", [str(tmp_path / "a.txt")], vocab, held_out=0.1)


def test_cuts_keep_copies_together():
    keys = np.array([1, 2, 3, 3, 3, 3, 3, 8, 9, 10])
    assert token_store._cuts(np.full(10, 100), 200, 0, keys) == [0, 2, 7, 10]


def test_unknown_tokens_are_counted(tmp_path, vocab):
    (tmp_path / "a.txt").write_text("worda wordb.\nqqq worda.\n\nwordc ÿ.\n")
    store = build(tmp_path / "store", [str(tmp_path / "a.txt")], vocab)
    assert (store.unknown, store.tokens) == (1, sum(b["tokens"] for b in store.blocks("train")))


def test_empty_sentences_and_documents_are_left_out(tmp_path, vocab):
    # Control characters tokenise to nothing.
    (tmp_path / "a.txt").write_text("worda\n\x01\nwordb\n\n\x01\n\nwordc\n")
    store = build(tmp_path / "store", [str(tmp_path / "a.txt")], vocab)
    assert sorted(len(document) for document in sum(contents(store), [])) == [1, 2]


def test_wide_vocabularies_use_four_bytes_a_token():
    assert token_store.token_dtype(65536).itemsize == 2
    assert token_store.token_dtype(65537).itemsize == 4


def test_a_finished_store_is_opened_not_built_again(tmp_path, vocab):
    paths = [write_corpus(tmp_path / "a.txt")]
    build(tmp_path / "store", paths, vocab)
    before = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "store").iterdir()}
    build(tmp_path / "store", paths, vocab)
    assert {p.name: p.stat().st_mtime_ns for p in (tmp_path / "store").iterdir()} == before
    assert not [name for name in before if "chunk" in name or "summary" in name]


def test_an_interrupted_build_goes_on(tmp_path, vocab, monkeypatch):
    paths = [write_corpus(tmp_path / f"{seed}.txt", seed=seed) for seed in range(3)]
    # One task a file.
    monkeypatch.setattr(token_store, "_TASK_BYTES", min(map(os.path.getsize, paths)))
    whole = contents(build(tmp_path / "whole", paths, vocab))
    tokenise, done = token_store.tokenise, []

    def dies(task):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append([path for path, *_ in task["stretches"]])
        return tokenise(task)

    monkeypatch.setattr(token_store, "tokenise", dies)
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / "store", paths, vocab)
    del done[:1]  # room for the one task that is left, not for the two that were done
    assert contents(build(tmp_path / "store", paths, vocab)) == whole
    assert done == [[paths[1]], [paths[2]]]


def test_an_input_that_changes_while_it_is_read_is_refused(tmp_path, vocab, monkeypatch):
    path, tokenise = write_corpus(tmp_path / "a.txt"), store_tasks.tokenise
    whole = Path(path).read_bytes()

    def changes(task):
        Path(path).write_text("Another text.\n\nOf two documents.\n")
        return tokenise(task)

    with monkeypatch.context() as patch:
        patch.setattr(token_store, "tokenise", changes)
        with pytest.raises(UserError, match="a.txt changed while it was read"):
            build(tmp_path / "store", [path], vocab)
    Path(path).write_bytes(whole)  # what was read of the other one is not taken for this one
    expected = contents(build(tmp_path / "other", [path], vocab))
    assert contents(build(tmp_path / "store", [path], vocab)) == expected


def test_other_options_are_an_error_that_lists_them(tmp_path, vocab):
    paths = [write_corpus(tmp_path / "a.txt")]
    build(tmp_path / "store", paths, vocab)
    with pytest.raises(UserError, match=r"held_out: was 0.0, now 0.2.*--overwrite"):
        build(tmp_path / "store", paths, vocab, held_out=0.2)
    write_corpus(tmp_path / "a.txt", seed=9)
    with pytest.raises(UserError, match=r"inputs.0.sha256: was"):
        build(tmp_path / "store", paths, vocab)
    build(tmp_path / "store", paths, vocab, overwrite=True)


def test_input_without_text_is_an_error(tmp_path, vocab):
    (tmp_path / "a.txt").write_text("\n\n \n")
    with pytest.raises(UserError, match="no text in the input"):
        build(tmp_path / "store", [str(tmp_path / "a.txt")], vocab)


def test_too_few_documents_to_hold_out(tmp_path, vocab):
    path = write_corpus(tmp_path / "a.txt", documents=3)
    with pytest.raises(UserError, match="needs two documents or more; add documents, or"):
        build(tmp_path / "store", [path], vocab, held_out=0.1)


def test_a_folder_of_something_else_is_left_alone(tmp_path, vocab):
    os.makedirs(tmp_path / "store")
    (tmp_path / "store" / "thesis.txt").write_text("mine")
    paths = [write_corpus(tmp_path / "a.txt")]
    with pytest.raises(UserError, match="thesis.txt is in the way: .* has no options.json"):
        build(tmp_path / "store", paths, vocab)
    assert (tmp_path / "store" / "thesis.txt").read_text() == "mine"
    build(tmp_path / "store", paths, vocab, overwrite=True)
    assert (tmp_path / "store.~1~" / "thesis.txt").read_text() == "mine"


def test_cuts_balance_tokens_and_leave_two_documents():
    cuts = token_store._cuts(np.full(100, 50), 1000, 7)
    assert (cuts[0], cuts[-1], len(cuts)) == (7, 107, 6)
    assert set(np.diff(cuts)) <= {19, 20, 21}
    assert token_store._cuts(np.array([5000, 5000, 1]), 1000, 0) == [0, 3]


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

    create(
        paths, vocab, str(tmp_path / "records"), workers=Measuring(1, progress=False),
        max_seq_length=32, dupe_factor=1, num_shards=2,
    )  # fmt: skip
    assert len(sizes) == 5 and "joining" in sizes
    folder = len(str(tmp_path))
    assert all(size < 1000 + 6 * folder for size in sizes.values()), sizes
