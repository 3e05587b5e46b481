"""Reading records for training: order, exact resuming, input pipelines, dynamic masks, errors."""

import dataclasses
import hashlib
import shutil

import numpy as np
import pytest
from corpora import VOCAB, write_corpus, write_vocabulary
from made_records import OPTIONS, check_masks, check_rows, make

from data_prep import records
from data_prep.jobs import storage
from data_prep.pretraining.reading import record_sets
from data_prep.pretraining.reading.record_files import read_records
from data_prep.pretraining.record_options import RecordOptions
from data_prep.records import Position, numpy_batches, open_records, pretraining_dataset
from data_prep.show_records import show, statistics, statistics_text
from official_bert.common.errors import UserError

tf = pytest.importorskip("tensorflow")

# The output of the first version's tf.data pipeline.
DIGESTS = {"static": "7e146baba3a4ea7b", "dynamic": "f35c1660cb49cc9f", "words": "e3de7c91b400dcda"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Folders of small records, by kind."""
    folder = tmp_path_factory.mktemp("records")
    vocab = write_vocabulary(folder / "vocab.txt")
    path = write_corpus(folder / "a.txt", documents=80)
    kinds = {
        "static": {},
        "gzip": {"compression": "GZIP"},
        "dynamic": {"dynamic_masking": True},
        "words": {"dynamic_masking": True, "do_whole_word_mask": True},
    }
    for kind, options in kinds.items():
        make(path, vocab, folder / kind, num_shards=4, **options)
    return {kind: str(folder / kind) for kind in kinds}


@pytest.fixture(autouse=True)
def small_windows(monkeypatch):
    monkeypatch.setattr(record_sets, "WINDOW", 128)


def batches(source, batch_size=32, **options):
    dataset = pretraining_dataset(source, batch_size, **options)
    return [{name: value.numpy() for name, value in batch.items()} for batch in dataset]


def assert_equal(one, other):
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert sorted(a) == sorted(b)
        for name in a:
            np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def rows(read):
    """Sorted rows, to compare sets of examples in any order."""
    return sorted(row.tobytes() for batch in read for row in batch["input_ids"])


def test_shapes_and_types_are_static(made):
    spec = pretraining_dataset(made["static"], 32).element_spec
    assert spec["input_ids"] == tf.TensorSpec([32, 64], tf.int32)
    assert spec["segment_ids"] == spec["input_mask"] == spec["input_ids"]
    assert spec["masked_lm_positions"] == tf.TensorSpec([32, 10], tf.int32)
    assert spec["masked_lm_ids"] == spec["masked_lm_positions"]
    assert spec["masked_lm_weights"] == tf.TensorSpec([32, 10], tf.float32)
    assert spec["next_sentence_labels"] == tf.TensorSpec([32, 1], tf.int32)
    assert pretraining_dataset(made["dynamic"], 32).element_spec == spec


def test_it_reads_what_tensorflow_reads(made):
    kinds = {"int64": tf.int64, "float32": tf.float32}
    features = {name: tf.io.VarLenFeature(kinds[kind]) for name, kind in records.SCHEMA.items()}
    files = open_records(made["static"]).files
    raw = [record.numpy() for record in tf.data.TFRecordDataset(files)]
    parsed = tf.io.parse_example(raw, features)
    read = batches(made["static"], shuffle=False, drop_remainder=False)
    for name in features:
        ours = np.concatenate([batch[name] for batch in read])
        np.testing.assert_array_equal(ours, tf.sparse.to_dense(parsed[name]).numpy())


def test_every_epoch_reads_everything_once_in_another_order(made):
    opened = open_records(made["static"])
    size = opened.examples
    assert size % 32
    first = batches(opened, epochs=1, seed=1, drop_remainder=False)
    both = batches(opened, epochs=2, seed=1, drop_remainder=False)
    assert sum(len(batch["input_ids"]) for batch in first) == size
    ids = np.concatenate([batch["input_ids"] for batch in both])
    one, two = ids[:size], ids[size:]
    assert sorted(map(bytes, one)) == sorted(map(bytes, two)) == rows(first)
    assert (one != two).any(axis=1).mean() > 0.95
    assert (batches(opened, seed=2)[0]["input_ids"] != first[0]["input_ids"]).any()
    # The shards change places, and the records within them too.
    assert len({tuple(opened.shard_order(1, epoch)) for epoch in range(8)}) > 3


@pytest.mark.parametrize("kind", ["static", "dynamic", "words"])
def test_batches_are_those_of_the_first_version(made, kind):
    """Digests of what tf.data's parser, shuffle and masks gave for the same records."""
    digest = hashlib.sha256()
    for batch in numpy_batches(open_records(made[kind]), 32, seed=3):
        for name in sorted(batch):
            digest.update(np.ascontiguousarray(batch[name]).tobytes())
    assert digest.hexdigest()[:16] == DIGESTS[kind]


def test_records_that_are_written_in_another_order_are_read_too(made, tmp_path):
    opened = open_records(made["static"])
    rows = [tf.train.Example.FromString(r) for r in read_records(opened.files[0])][:50]
    with tf.io.TFRecordWriter(str(tmp_path / "a.tfrecord")) as writer:
        for row in rows:
            features = dict(reversed(sorted(row.features.feature.items())))
            parts = [tf.train.Features(feature={name: f}) for name, f in features.items()]
            # One message a field: what protocol buffers call concatenation.
            writer.write(b"".join(tf.train.Example(features=p).SerializeToString() for p in parts))
    both = open_records(str(tmp_path / "a.tfrecord")), opened
    found, expected = (next(numpy_batches(source, 50, shuffle=False)) for source in both)
    assert_equal([found], [expected])


@pytest.mark.parametrize("kind", ["static", "gzip", "dynamic", "words"])
def test_reading_goes_on_anywhere(made, kind):
    opened = open_records(made[kind])
    whole = batches(opened, seed=3, epochs=3)
    steps = (opened.examples // 32 + 1, 1, opened.examples // 32, len(whole) - 1)
    for step in steps if kind == "static" else steps[:1]:
        place = opened.position(step * 32, seed=3)
        assert opened.examples_before(place, seed=3) == step * 32
        rest = pretraining_dataset(opened, 32, seed=3, epochs=3, start=place).take(4)
        rest = [{name: value.numpy() for name, value in batch.items()} for batch in rest]
        assert_equal(rest, whole[step : step + 4])
    if kind == "static":
        assert_equal(batches(opened, seed=3, epochs=3, start=32 * (len(whole) - 2)), whole[-2:])


@pytest.mark.parametrize("kind", ["static", "gzip", "dynamic", "words"])
def test_numpy_reads_the_same_batches(made, kind):
    opened = open_records(made[kind])
    ways = [
        {"seed": 2**40 + 5, "epochs": 3, "start": opened.examples + 333, "drop_remainder": False},
        {"shuffle": False, "start": 150},
    ]
    for options in ways if kind == "static" else ways[:1]:
        expected = batches(opened, **options)
        found = list(numpy_batches(opened, 32, **options))
        assert_equal(found, expected)
        for name, values in expected[0].items():
            assert found[0][name].dtype == values.dtype
    with pytest.raises(UserError, match="behind the last of 2 epochs"):
        next(numpy_batches(opened, 32, epochs=2, start=Position(2, 0, 0)))


def test_positions(made):
    opened = open_records(made["static"])
    assert opened.position(0, seed=5) == Position(0, 0, 0)
    first = opened.counts[opened.shard_order(5, 0)[0]]
    assert opened.position(first - 1, seed=5) == Position(0, 0, first - 1)
    assert opened.position(first, seed=5) == Position(0, 1, 0)
    assert opened.position(2 * opened.examples, seed=5) == Position(2, 0, 0)
    with pytest.raises(UserError, match="behind the last of 2 epochs"):
        pretraining_dataset(opened, 32, epochs=2, start=Position(2, 0, 0))


@pytest.mark.parametrize("kind", ["static", "dynamic"])
def test_input_pipelines_share_every_batch(made, kind):
    whole = batches(made[kind], 48, seed=1)
    for pipeline in (0, 2):
        part = batches(made[kind], 48, seed=1, num_input_pipelines=3, input_pipeline_id=pipeline)
        mine = slice(16 * pipeline, 16 * pipeline + 16)
        assert_equal(part, [{name: v[mine] for name, v in batch.items()} for batch in whole])
    with pytest.raises(UserError, match="48 cannot be divided among 5"):
        pretraining_dataset(made[kind], 48, num_input_pipelines=5)


def test_it_works_under_a_strategy(made):
    def of_one(context):
        names = ("num_input_pipelines", "input_pipeline_id")
        options = {name: getattr(context, name) for name in names}
        return pretraining_dataset(made["static"], 32, **options)

    distributed = tf.distribute.get_strategy().distribute_datasets_from_function(of_one)
    expected = batches(made["static"])[0]["input_ids"]
    np.testing.assert_array_equal(next(iter(distributed))["input_ids"], expected)


@pytest.mark.parametrize("kind", ["dynamic", "words"])
def test_dynamic_masks_obey_the_rules(made, kind):
    read = batches(made[kind], seed=1, epochs=6)
    read = {name: np.concatenate([batch[name] for batch in read]) for name in read[0]}
    chosen = dataclasses.asdict(RecordOptions(**OPTIONS, do_whole_word_mask=kind == "words"))
    lengths, ids = check_rows(read, chosen)
    check_masks(read, ids, lengths, chosen)
    # All places of a row are masked alike.
    used, long = read["masked_lm_weights"] == 1, lengths == 64
    places = read["masked_lm_positions"][used][long[np.nonzero(used)[0]]]
    share = np.bincount(places, minlength=64) / long.sum()
    assert share.max() < 3 * share[share > 0].mean()


def test_dynamic_masks_change_with_the_epoch_and_the_seed_only(made):
    opened = open_records(made["dynamic"])
    one = batches(opened, seed=1, shuffle=False, epochs=2, drop_remainder=False, batch_size=29)
    places = np.concatenate([batch["masked_lm_positions"] for batch in one])
    size = opened.examples
    assert (places[:size] != places[size:]).any(axis=1).mean() > 0.9
    other = batches(opened, seed=2, shuffle=False)
    assert (other[0]["masked_lm_positions"] != places[:32]).any(axis=1).mean() > 0.9


def test_records_without_a_manifest(made, tmp_path):
    for name in ("static", "gzip"):
        opened = open_records(made[name])
        folder = tmp_path / name
        folder.mkdir()
        for file in opened.files:
            shutil.copy(file, folder)
        foreign = open_records(str(folder / "examples-*"))
        assert foreign.counts == opened.counts and not foreign.manifest
        assert (foreign.max_seq_length, foreign.max_predictions_per_seq) == (64, 10)
        assert_equal(batches(str(folder), seed=4), batches(opened, seed=4))
    with pytest.raises(UserError, match="no feature 'masked_lm_positions'"):
        file = open_records(made["dynamic"]).files[0]
        shutil.copy(file, tmp_path / "x.tfrecord")
        open_records(str(tmp_path / "x.tfrecord"))


def test_some_of_the_shards(made):
    opened = open_records(open_records(made["static"]).files[:2])
    assert opened.examples == sum(open_records(made["static"]).counts[:2])
    assert opened.manifest["max_seq_length"] == 64


def test_nothing_matches(tmp_path):
    with pytest.raises(UserError, match="no record file matches '.*nothing-"):
        open_records(str(tmp_path / "nothing-*"))
    with pytest.raises(UserError, match="holds no records"):
        open_records(str(tmp_path))


def test_a_file_of_something_else_is_named(write):
    with pytest.raises(UserError, match=r"a.tfrecord is not a TFRecord file"):
        open_records(write("a.tfrecord", b"this is not a TFRecord file at all"))
    with pytest.raises(UserError, match="hold no examples"):
        open_records(write("b.tfrecord", b""))


@pytest.mark.parametrize(
    "name,value", [("max_seq_length", 128), ("max_predictions_per_seq", 20), ("vocab_size", 7)]
)
def test_records_of_other_options_than_the_configuration(made, name, value):
    with pytest.raises(UserError, match=f"the records have {name} .*the configuration {value}"):
        pretraining_dataset(made["static"], 32, **{name: value})
    right = {"max_seq_length": 64, "max_predictions_per_seq": 10, "vocab_size": len(VOCAB)}
    pretraining_dataset(made["static"], 32, **right)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"options": None}, "manifest.json: options must be a JSON object, not null"),
        ({"options": {}}, "options: the field masked_lm_prob is missing"),
        ({"options": {"masked_lm_prob": "x"}}, "masked_lm_prob must be a whole number or a number"),
        ({"vocab_sha256": 3}, "manifest.json: vocab_sha256 must be a text"),
        ({"vocab_sha256": "0" * 64}, "vocab.txt is damaged"),
    ],
)
def test_dynamic_masks_need_a_manifest_that_is_whole(made, change, message):
    opened = open_records(made["dynamic"])
    opened.manifest |= change
    with pytest.raises(UserError, match=message):
        pretraining_dataset(opened, 32)


def test_a_remote_folder_holds_the_same_records(made, tmp_path, vocab):
    # fsspec's file system in memory, which TensorFlow does not know, stands for an object store.
    path = write_corpus(tmp_path / "a.txt", documents=80)
    for name, source in (("corpus/a.txt", path), ("vocab.txt", vocab)):
        with storage.writing(f"memory://bucket/{name}") as file:
            file.write(storage.read_bytes(source))
    inputs = ("memory://bucket/corpus/*.txt", "memory://bucket/vocab.txt")
    manifest = make(*inputs, "memory://bucket/records", num_shards=4)
    local = open_records(made["static"])
    assert manifest["shards"] == local.manifest["shards"]
    assert make(*inputs, "memory://bucket/records", num_shards=4) == manifest
    remote = open_records("memory://bucket/records")
    assert_equal(batches(remote, seed=1), batches(local, seed=1))
    for kind in ("gzip", "words"):
        for name in [*open_records(made[kind]).files, f"{made[kind]}/manifest.json", vocab]:
            with storage.writing(f"memory://{kind}/{name.rsplit('/', 1)[1]}") as file:
                file.write(storage.read_bytes(name))
        assert_equal(batches(f"memory://{kind}"), batches(made[kind]))
    assert "work" not in storage.list_folder("memory://bucket/records")
    assert "examples of length 64" in statistics_text(statistics("memory://bucket/records", 50))
    assert show("memory://bucket/records", examples=1) == show(made["static"], examples=1)
