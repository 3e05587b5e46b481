"""The shuffle in two levels: few and large reads, little memory, and the bytes of one level."""

import hashlib

import numpy as np
import pytest
from corpora import write_corpus, write_vocabulary
from damage import flip

from data_prep.create_pretraining_data import create
from data_prep.jobs import array_files
from data_prep.pretraining import key_ranges, shards, token_store
from official_bert.common.errors import UserError

READ, SHARDS = 2000, 96


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Return make(name, workers=1): the digest of the records of many small blocks and chunks."""
    monkeypatch.setattr(token_store, "BLOCK_TOKENS", 400)
    monkeypatch.setattr(token_store, "_TASK_BYTES", 8000)
    vocab = write_vocabulary(tmp_path / "vocab.txt")
    path = write_corpus(tmp_path / "a.txt", documents=90)

    def records(name, workers=1):
        options = {"max_seq_length": 32, "dupe_factor": 2, "num_shards": SHARDS, "held_out": 0.05}
        folder = tmp_path / name
        create(path, vocab, str(folder), num_workers=workers, progress=False, **options)
        digest = hashlib.sha256()
        for file in sorted(folder.rglob("[!.]*.*")):
            digest.update(str(file.relative_to(folder)).encode() + file.read_bytes())
        return digest.hexdigest()

    return records


@pytest.fixture
def two_levels(monkeypatch):
    monkeypatch.setattr(key_ranges, "MOST_FILES", 4)
    monkeypatch.setattr(key_ranges, "READ_BYTES", READ)


@pytest.mark.slow
def test_few_reads_of_the_wanted_size(make, monkeypatch):
    read, held, read_slice, read_rows = {}, [], array_files.read_slice, shards._read_rows

    def counting(path, dtype, start, stop):
        array = read_slice(path, dtype, start, stop)
        read.setdefault(path.rpartition(".")[2], []).append(array.nbytes)
        return array

    def holding(*arguments):
        rows, order = read_rows(*arguments)
        held.append(rows.nbytes)
        return rows, order

    monkeypatch.setattr(array_files, "read_slice", counting)
    monkeypatch.setattr(shards, "_read_rows", holding)
    monkeypatch.setattr(key_ranges, "READ_BYTES", 1)
    one_level = make("one level")
    single = {kind: len(sizes) for kind, sizes in read.items()}
    blocks = single["rows"] // SHARDS
    assert blocks > 30 and single["tokens"] > 200
    read.clear()
    held.clear()

    monkeypatch.setattr(key_ranges, "READ_BYTES", READ)
    monkeypatch.setattr(key_ranges, "MOST_FILES", 4)
    assert make("two levels") == one_level
    for kind in ("rows", "tokens"):
        assert len(read[kind]) < single[kind] / 4 and np.mean(read[kind]) > 0.8 * READ
    shard = sum(read["rows"]) / 2 / SHARDS
    assert max(held) < 2 * READ * blocks**0.5 + 2 * shard


@pytest.mark.slow
def test_any_number_of_workers_gives_the_same_bytes(make, two_levels):
    assert make("one", workers=1) == make("two", workers=2)


@pytest.mark.parametrize("module", [pytest.param(token_store, marks=pytest.mark.slow), shards])
def test_killed_while_it_joins_it_goes_on(make, two_levels, monkeypatch, module):
    whole = make("whole")
    join, done = module.join, []

    def dies(task):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(task["output"])
        return join(task)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(module, "join", dies)
        make("killed")
    first = list(done)
    done.clear()

    monkeypatch.setattr(module, "join", lambda task: done.append(task["output"]) or join(task))
    assert make("killed") == whole
    assert done and not set(done) & set(first)


@pytest.mark.parametrize(
    "module,name",
    [
        pytest.param(token_store, "chunk-*.tokens", marks=pytest.mark.slow),
        (shards, "rows-train-*.rows"),
    ],
)
def test_files_go_when_they_are_joined(make, two_levels, tmp_path, monkeypatch, module, name):
    join, left = module.join, []

    def counts(task):
        left.append(len(list((tmp_path / "records").rglob(name))))
        return join(task)

    monkeypatch.setattr(module, "join", counts)
    make("records")
    groups = key_ranges.groups(max(left))
    assert len(groups) > 2
    assert left[-len(groups) :] == [max(left) - first for first, _ in groups]


@pytest.mark.parametrize(
    "module,name", [(token_store, "chunk-*.tokens"), (shards, "rows-train-*.rows")]
)
def test_damaged_files_are_found_when_they_are_joined(
    make, two_levels, tmp_path, monkeypatch, module, name
):
    join = module.join

    def damages(task):  # the first task reads the first file, and never comes to its end
        file = min((tmp_path / "records").rglob(name))
        flip(file, file.stat().st_size // 2)
        return join(task)

    monkeypatch.setattr(module, "join", damages)
    with pytest.raises(UserError, match=f"{name[:4]}.*is damaged"):
        make("records")


def test_groups_and_tasks_hold_everything_once():
    for files in (1, 64, 65, 2100):
        groups = key_ranges.groups(files)
        wanted = list(range(files)) if files > key_ranges.MOST_FILES else []
        assert [i for first, last in groups for i in range(first, last)] == wanted
        assert all(last - first <= 64 for first, last in groups) and len(groups) <= 64
    # The paper's corpus at length 128: 85 GB of rows in 46 joined files, 7,400 shards.
    tasks = key_ranges.tasks(7400, 46, 85e9 / 7400)
    assert [i for first, last in tasks for i in range(first, last)] == list(range(7400))
    sizes = [(last - first) * 85e9 / 7400 / 46 for first, last in tasks]
    assert min(sizes[:-1]) > key_ranges.READ_BYTES and max(sizes) < 1.3 * key_ranges.READ_BYTES
    assert key_ranges.tasks(3, 2, 0) == [(0, 3)]
    edges = key_ranges.edges(7)
    assert edges[0] == 0 and len(edges) == 7 and (np.diff(edges) > 0).all()
