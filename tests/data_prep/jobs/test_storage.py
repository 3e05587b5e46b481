"""Remote paths, in fsspec's memory file system and on an S3 server; files whole or not at all."""

import gzip
import sys
import uuid

import numpy as np
import pytest
from corpora import documents

from data_prep import vocab, wikipedia
from data_prep.corpus.input_files import expand_inputs
from data_prep.jobs import array_files, storage, vocabularies
from data_prep.sentences import split_files
from official_bert.common.errors import UserError
from official_bert.common.files import atomic_folder, atomic_write
from official_bert.tokenization import BertTokenizer

ARTICLE = "The town lies in the north. It has a river and a bridge.\n" * 9


def put(path, content):
    with storage.writing(path) as file:
        file.write(content)


@pytest.fixture
def bucket():
    name = f"memory://bucket-{uuid.uuid4().hex}"
    yield name
    storage.remove(name)


@pytest.fixture(scope="module")
def s3_bucket():
    """Return a bucket on an S3 server of moto in this process."""
    pytest.importorskip("s3fs", reason="needs the extra `s3`")
    server = pytest.importorskip("moto.server", reason="needs moto")
    boto3 = pytest.importorskip("boto3")
    import fsspec

    running = server.ThreadedMotoServer(port=0, verbose=False)
    running.start()
    url = "http://{}:{}".format(*running.get_host_and_port())
    keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}
    client = boto3.client("s3", endpoint_url=url, region_name="us-east-1", **keys)
    client.create_bucket(Bucket="tests")
    fsspec.config.conf["s3"] = {"endpoint_url": url, "key": "key", "secret": "secret"}
    yield "s3://tests"
    del fsspec.config.conf["s3"]
    running.stop()


@pytest.fixture(params=["memory", "s3"])
def remote(request):
    return request.getfixturevalue("bucket" if request.param == "memory" else "s3_bucket")


def test_files_folders_and_arrays(remote):
    storage.make_folder(f"{remote}/in")
    put(f"{remote}/in/a.txt", b"hello")
    put(f"{remote}/in/deep/b.txt", b"")
    assert storage.exists(f"{remote}/in/a.txt") and not storage.exists(f"{remote}/in/c.txt")
    assert storage.is_directory(f"{remote}/in") and not storage.is_directory(f"{remote}/in/a.txt")
    assert storage.size(f"{remote}/in/a.txt") == 5
    assert storage.modified(f"{remote}/in/a.txt") > 1e18
    assert storage.list_folder(f"{remote}/in") == ["a.txt", "deep"]
    assert storage.list_folder(f"{remote}/nowhere") == []
    assert storage.matches(f"{remote}/in/*.txt") == [f"{remote}/in/a.txt"]
    both = [f"{remote}/in/a.txt", f"{remote}/in/deep/b.txt"]
    assert storage.matches(f"{remote}/**/*.txt") == both
    assert storage.read_bytes(f"{remote}/in/a.txt", 1, 3) == b"ell"
    with storage.reading(f"{remote}/in/a.txt") as file:
        assert file.peek(2)[:2] == b"he" and file.read() == b"hello"
    with pytest.raises(UserError, match="c.txt: cannot be read"):
        storage.reading(f"{remote}/in/c.txt")
    array = np.arange(1000, dtype="<u4")
    checksum = array_files.write_array(f"{remote}/x.array", array)
    read = array_files.read_array(f"{remote}/x.array", "<u4", checksum)
    np.testing.assert_array_equal(read, array)
    some = array_files.read_slice(f"{remote}/x.array", "<u4", 7, 9)
    np.testing.assert_array_equal(some, array[7:9])
    with pytest.raises(UserError, match="damaged"):
        array_files.read_array(f"{remote}/x.array", "<u4", checksum + 1)
    storage.remove(f"{remote}/in")
    assert not storage.exists(f"{remote}/in/deep/b.txt")


def test_arrays_in_no_file_and_in_one_without_a_checksum(tmp_path):
    with pytest.raises(UserError, match="b.npz: cannot be read .No such file"):
        array_files.read(tmp_path / "b.npz")
    np.savez(tmp_path / "a.npz", ids=np.arange(3))
    with pytest.raises(UserError, match="a.npz is damaged"):
        array_files.read(tmp_path / "a.npz")


def test_what_fails_half_way_is_not_there(remote):
    put(f"{remote}/old.txt", b"old")
    for name in ("old.txt", "new.txt"):
        with pytest.raises(RuntimeError), storage.writing(f"{remote}/{name}") as file:
            file.write(b"half")
            raise RuntimeError
    assert storage.read_bytes(f"{remote}/old.txt") == b"old"
    assert not storage.exists(f"{remote}/new.txt")


def test_other_processes_files_are_seen_at_once(s3_bucket):
    import fsspec
    import s3fs

    assert storage.list_folder(f"{s3_bucket}/later") == []
    other = s3fs.S3FileSystem(skip_instance_cache=True, **fsspec.config.conf["s3"])
    other.pipe_file("tests/later/done.summary", b"{}")
    assert storage.list_folder(f"{s3_bucket}/later") == ["done.summary"]


def test_every_command_writes_where_it_is_told(remote, tmp_path, monkeypatch):
    """Issue: `sentences --output=gs://...` succeeded into a local folder named gs:."""
    monkeypatch.chdir(tmp_path)
    put(f"{remote}/raw/a.txt.gz", gzip.compress(f"Title\n{ARTICLE}\nOther\n{ARTICLE}".encode()))
    counts = split_files(f"{remote}/raw/*.gz", f"{remote}/out", layout="articles")
    assert counts["a.txt.gz"]["documents"] == 2
    assert counts == split_files(f"{remote}/raw/*.gz", f"{remote}/out", layout="articles")
    paths = expand_inputs(f"{remote}/out/*.gz")
    assert next(documents(paths))[0] == "The town lies in the north."
    pieces = vocab.learn_vocab(paths, 40, character_coverage=1.0)
    vocabularies.write_tokenizer(f"{remote}/vocab.txt", BertTokenizer(pieces))
    assert vocabularies.load_tokenizer(f"{remote}/vocab.txt").vocab == pieces
    page = f"<page><title>T</title><id>1</id><revision><text>{ARTICLE}</text></revision></page>"
    put(f"{remote}/dump.xml", f"<mediawiki>{page}</mediawiki>".encode())
    report = wikipedia.extract(f"{remote}/dump.xml", f"{remote}/wiki")
    assert report["articles"] == 1
    assert wikipedia.extract(f"{remote}/dump.xml", f"{remote}/wiki") == report
    written = ["articles-00000.jsonl.gz", "report.json", "wiki-00000.txt.gz"]
    assert storage.list_folder(f"{remote}/wiki") == written
    assert not list(tmp_path.iterdir())


def test_what_cannot_reach_a_path_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="ram:// is not a kind of path that is known here"):
        storage.exists("ram://bucket/a")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(UserError, match=r"pip install 'official-bert\[gcs\]'"):
        split_files("gs://bucket/*", "gs://other/out", layout="lines")
    path = "gs://bucket/out"
    for write in (atomic_write, atomic_folder):
        with pytest.raises(UserError, match=f"{path} is a remote path"), write(path):
            pass
    assert not list(tmp_path.iterdir())
