"""Records that are read stay what they are: nobody overwrites them, and what changed is refused."""

import os
import shutil

import pytest
from corpora import write_corpus
from made_records import make

from data_prep.pretraining import shards
from data_prep.records import explained, numpy_batches, open_records, pretraining_dataset
from official_bert.common.errors import UserError

pytestmark = pytest.mark.usefixtures("small_blocks")


@pytest.fixture
def folder(tmp_path, vocab):
    """Return records of two shards, a tenth held out."""
    make_in(tmp_path / "records", tmp_path, vocab)
    return tmp_path / "records"


def make_in(folder, tmp_path, vocab, **options):
    text = write_corpus(tmp_path / "a.txt")
    return make(text, vocab, folder, held_out=0.1, num_shards=2, **options)


@pytest.mark.parametrize("name", ["", "heldout", "*.tfrecord"])
def test_records_that_are_read_are_not_overwritten(folder, tmp_path, vocab, name):
    records = open_records(os.path.join(folder, name))
    with pytest.raises(UserError, match="records is in use by process"):
        make_in(folder, tmp_path, vocab, random_seed=1, overwrite=True)
    assert make_in(folder, tmp_path, vocab)["split"] == "train"  # they are there: nothing to do
    del records
    assert make_in(folder, tmp_path, vocab, random_seed=1, overwrite=True)["seed"] == 1


def test_records_that_are_being_made_are_not_read(tmp_path, vocab, monkeypatch):
    write_shards, seen = shards.write_shards, []

    def reads(task):
        for name in ("records", "records/heldout"):
            with pytest.raises(UserError, match="records is in use by process"):
                open_records(str(tmp_path / name))
        seen.append(task)
        return write_shards(task)

    monkeypatch.setattr(shards, "write_shards", reads)
    make_in(tmp_path / "records", tmp_path, vocab)
    assert seen


@pytest.mark.parametrize("has_manifest", [True, False])
def test_a_file_that_changed_is_not_read(folder, tmp_path, vocab, has_manifest):
    make_in(tmp_path / "others", tmp_path, vocab, random_seed=1)
    if not has_manifest:
        for path in (folder, tmp_path / "others"):
            (path / "manifest.json").unlink()
    records = open_records(str(folder))
    batches = numpy_batches(records, 8)
    next(batches)
    for path in folder.glob("*.tfrecord"):
        shutil.copyfile(tmp_path / "others" / path.name, path)
    with pytest.raises(UserError, match=r"tfrecord has changed since"):
        list(batches)
    dataset = pretraining_dataset(records, 8)
    with pytest.raises(UserError, match=r"tfrecord has changed since"), explained():
        list(dataset)


def test_a_fingerprint_is_of_content_not_of_the_place(folder, tmp_path, vocab):
    before = open_records(str(folder)).fingerprint
    make_in(tmp_path / "others", tmp_path, vocab, random_seed=1)
    assert open_records(str(tmp_path / "others")).fingerprint != before
    folder.rename(tmp_path / "moved")
    assert open_records(str(tmp_path / "moved")).fingerprint == before
    assert open_records(str(tmp_path / "moved" / "heldout")).fingerprint != before
