"""Records that no model can read: found on the way, and named with file, record and field."""

import json
import os
import re
import struct

import google_crc32c
import pytest
from damage import flip

from data_prep.pretraining.reading.numpy_batches import find_fault
from data_prep.records import explained, numpy_batches, open_records, pretraining_dataset
from official_bert.common.errors import UserError

tf = pytest.importorskip("tensorflow")

LENGTH, SLOTS, VOCAB = 8, 2, 50


FEATURES = {
    "input_ids": [2, 7, 4, 9, 3, 8, 3, 0],
    "input_mask": [1] * 7 + [0],
    "segment_ids": [0] * 5 + [1, 1, 0],
    "masked_lm_positions": [2, 0],
    "masked_lm_ids": [11, 0],
    "masked_lm_weights": [1.0, 0.0],
    "next_sentence_labels": [1],
}


def example(**changes):
    made = tf.train.Example()
    for name, values in (FEATURES | changes).items():
        if values is None:
            continue
        kind = "float_list" if isinstance(values[0], float) else "int64_list"
        getattr(made.features.feature[name], kind).value.extend(values)
    return made.SerializeToString(deterministic=True)


def write(path, records):
    with tf.io.TFRecordWriter(str(path)) as file:
        for record in records:
            file.write(record)


def read(path, **options):
    """Return all batches of a file, as training reads them; without TensorFlow faults read the
    same."""
    records = open_records(str(path), **options)
    try:
        with explained():
            return list(pretraining_dataset(records, 2, drop_remainder=False))
    except UserError as error:
        with pytest.raises(UserError, match=f"^{re.escape(str(error))}$"):
            list(numpy_batches(records, 2, drop_remainder=False))
        raise


def changed(name, place, value):
    values = list(FEATURES[name])
    values[place] = value
    return {name: values}


@pytest.mark.parametrize(
    ("name", "place", "value", "allowed"),
    [
        ("input_ids", 3, -1, "0 to 49"),
        ("input_ids", 3, 50, "0 to 49"),
        ("input_ids", 3, 2**32 + 5, "0 to 49"),
        ("input_mask", 1, 2, "0 to 1"),
        ("segment_ids", 6, 2, "0 to 1"),
        ("masked_lm_positions", 1, -1, "0 to 7"),
        ("masked_lm_positions", 0, 8, "0 to 7"),
        ("masked_lm_ids", 0, -(2**62), "0 to 49"),
        ("masked_lm_weights", 0, float("nan"), "0 to 1"),
        ("masked_lm_weights", 1, -1.0, "0 to 1"),
        ("next_sentence_labels", 0, 3, "0 to 1"),
    ],
)
def test_numbers_without_a_place_are_named(tmp_path, name, place, value, allowed):
    write(tmp_path / "a.tfrecord", [example()])
    write(tmp_path / "b.tfrecord", [example(), example(**changed(name, place, value))])
    records = open_records(str(tmp_path / "*.tfrecord"), vocab_size=VOCAB)
    fault = f"{name}[{place}] is {value}, it must be {allowed}"
    assert find_fault(records) == f"{tmp_path}/b.tfrecord record 1: {fault}"


def test_ids_beyond_32_bits_are_refused_where_the_vocabulary_is_not_known(tmp_path):
    write(tmp_path / "a.tfrecord", [example(), example(**changed("input_ids", 0, 2**32 + 5))])
    with pytest.raises(UserError, match=r"record 1: input_ids\[0\] is 4294967301"):
        read(tmp_path / "a.tfrecord")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"input_ids": [1] * 7}, "input_ids has 7 values, not 8"),
        ({"masked_lm_ids": [1.0, 0.0]}, "masked_lm_ids has type float32, not int64"),
        ({"segment_ids": None}, "segment_ids is missing"),
    ],
)
def test_wrong_lengths_and_types_are_one_line(tmp_path, changes, message):
    write(tmp_path / "a.tfrecord", [example()] * 3 + [example(**changes)])
    with pytest.raises(UserError, match=f"^{tmp_path}/a.tfrecord record 3: {message}$"):
        read(tmp_path / "a.tfrecord")


def test_a_damaged_shard_is_named(tmp_path):
    for name in "ab":
        write(tmp_path / f"{name}.tfrecord", [example()] * 5)
    flip(tmp_path / "b.tfrecord", -20)
    with pytest.raises(UserError, match=r"^.*b.tfrecord: record 4 is damaged \(its checksum"):
        read(tmp_path / "*.tfrecord")


def header_of_all_memory():
    size = struct.pack("<Q", 1 << 50)
    crc = google_crc32c.value(size)
    masked = (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
    return size + struct.pack("<I", masked)


@pytest.mark.parametrize("number", [0, 2])
def test_a_record_that_claims_all_memory_is_not_read_even_by_tensorflow(folder, number):
    path = folder / "a.tfrecord"
    content = path.read_bytes()
    start = number * len(content) // 3
    path.write_bytes(content[:start] + header_of_all_memory() + content[start + 12 :])
    with pytest.raises(UserError, match=f"^{path} is truncated: it ends within record {number}$"):
        read(folder)


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "a.tfrecord", [example()] * 3)
    shard = {"file": "a.tfrecord", "examples": 3, "bytes": (tmp_path / "a.tfrecord").stat().st_size}
    sizes = {"max_seq_length": LENGTH, "max_predictions_per_seq": SLOTS, "vocab_size": VOCAB}
    manifest = {**sizes, "dynamic_masking": False, "compression": "", "shards": [shard]}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    return tmp_path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shards": 3}, "manifest.json: shards must be a list, not 3"),
        ({"shards": ["a"]}, r'manifest.json: shards\[0\] must be a JSON object, not "a"'),
        ({"shards": [{"file": "a"}]}, r"manifest.json: shards\[0\]: the field examples is missing"),
        ({"max_seq_length": "8"}, 'manifest.json: max_seq_length must be a whole number, not "8"'),
        ({"max_seq_length": 0}, "manifest.json: max_seq_length must be positive"),
        ({"vocab_size": None}, "manifest.json: vocab_size must be a whole number, not null"),
        ({"dynamic_masking": 0}, "manifest.json: dynamic_masking must be true or false, not 0"),
        ({"compression": "ZIP"}, "manifest.json: compression must be '' or 'GZIP'"),
        ({"checksum": "00000000"}, "manifest.json is damaged or was changed"),
    ],
)
def test_a_wrong_field_of_a_manifest_is_named(folder, change, message):
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(UserError, match=message):
        open_records(str(folder))


@pytest.mark.parametrize("name", ["../a", "/etc/passwd", "sub/a", "..", "", "link", "a" * 300])
def test_a_manifest_names_no_file_outside_of_its_folder(folder, tmp_path_factory, name):
    (folder / "link").symlink_to(tmp_path_factory.mktemp("other") / "a.tfrecord")
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["shards"][0]["file"] = name
    path.write_text(json.dumps(manifest))
    with pytest.raises(UserError, match=re.escape(f"names the file {name!r}, which is outside")):
        open_records(str(folder))


def replaced(make):
    def replace(path):
        path.unlink()
        make(path)

    return replace


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda path: path.write_bytes(b""), "not valid JSON"),
        (lambda path: os.truncate(path, 1 << 30), "1,073,741,824 bytes; at most"),
        (replaced(lambda path: path.symlink_to(path.name)), "cannot be read .*symbolic links"),
        (replaced(lambda path: path.symlink_to("nowhere")), "cannot be read .*No such file"),
        (replaced(lambda path: path.symlink_to("/dev/zero")), "is not a file"),
        (replaced(os.mkdir), "is not a file but a folder"),
        (replaced(os.mkfifo), "is not a file"),
    ],
)
def test_a_manifest_that_cannot_be_read_is_not_passed_over(folder, change, message):
    change(folder / "manifest.json")
    for source in (folder, folder / "a.tfrecord"):
        with pytest.raises(UserError, match=f"manifest.json: {message}"):
            open_records(str(source))


def test_a_manifest_may_be_a_link(folder, tmp_path_factory):
    path, kept = folder / "manifest.json", tmp_path_factory.mktemp("other") / "kept.json"
    path.rename(kept)
    path.symlink_to(kept)
    assert open_records(str(folder)).vocab_size == VOCAB


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_manifest_that_is_kept_from_us_is_not_passed_over(folder):
    (folder / "manifest.json").chmod(0)
    with pytest.raises(UserError, match=r"manifest.json: cannot be read \(Permission denied\)"):
        open_records(str(folder))
