"""Files that would keep a reader waiting, or give it bytes without end, are refused by name."""

import os

import numpy as np
import pytest

from data_prep.jobs import array_files, storage
from official_bert.checkpoints.files.tensor_bundle import TensorBundle
from official_bert.common import outside_files
from official_bert.common.checksums import crc32c_file, sha256_file
from official_bert.common.errors import UserError
from official_bert.common.json_files import read_json
from official_bert.tokenization import load_tokenizer
from tests import guests

READERS = {
    "vocab.txt": load_tokenizer,
    "spiece.model": load_tokenizer,
    "tokenizer.json": load_tokenizer,
    "merges.txt": lambda path: load_tokenizer(path.with_name("vocab.json")),
    "a.json": read_json,
    "a.npz": array_files.read,
    "a.txt": storage.read_bytes,
    "bert_model.ckpt.index": lambda path: TensorBundle(path.with_suffix("")),
    "assets": lambda path: outside_files.check_below(path.parent, 1000),
    "sha256": sha256_file,
    "crc32c": crc32c_file,
}
GUESTS = {"merges.txt"}  # whose readers are beyond the paper
LARGE = ("vocab.txt", "spiece.model", "merges.txt", "a.json", "assets")
KINDS = {
    "pipe": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "loop": lambda path: path.symlink_to(path.name),
    "lost": lambda path: path.symlink_to("nowhere"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", guests.names({*READERS} - GUESTS, READERS))
def test_no_regular_files(tmp_path, name, kind):
    (tmp_path / "vocab.json").write_text('{"a": 0}')
    KINDS[kind](tmp_path / name)
    with pytest.raises(UserError, match=f"{name}: (is not a file|cannot be read)"):
        READERS[name](tmp_path / name)


@pytest.mark.parametrize("name", guests.names({*LARGE} - GUESTS, LARGE))
def test_files_larger_than_any_of_their_kind(tmp_path, name):
    (tmp_path / "vocab.json").write_text('{"a": 0}')
    with open(tmp_path / name, "wb") as file:
        file.truncate(1 << 40)  # without a byte on the disk
    with pytest.raises(UserError, match=f"{name}: 1,099,511,627,776 bytes; at most"):
        READERS[name](tmp_path / name)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [("a", b"", ""), ("a", b"\x00\xff a poem", ""), ("[a]", b"", "a pattern")],
)
def test_a_damaged_saved_model(tmp_path, name, content, message):
    from official_bert.export.client import load

    (tmp_path / name).mkdir()
    (tmp_path / name / "saved_model.pb").write_bytes(content)
    with pytest.raises(UserError, match=f"cannot be read as a SavedModel .*{message}"):
        load(tmp_path / name)


def test_a_shard_that_is_a_pipe(tmp_path):
    import tensorflow as tf

    prefix = tf.train.Checkpoint(a=tf.Variable(np.ones(3))).write(str(tmp_path / "a"))
    data = tmp_path / "a.data-00000-of-00001"
    (tmp_path / "a.data-00001-of-00001").write_bytes(data.read_bytes())  # of enough bytes
    data.unlink()
    os.mkfifo(data)
    bundle = TensorBundle(prefix)
    with pytest.raises(UserError, match="cannot be read .*is not a file"):
        bundle.read(next(iter(bundle.shapes)))
