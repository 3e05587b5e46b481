"""Hand-packed records: the bytes of protocol buffers and of TensorFlow's own writer."""

import io
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_prep.pretraining.reading.record_files import parse_example, read_records
from data_prep.pretraining.tf_example import framed_records

tf = pytest.importorskip("tensorflow")


def message(features, row):
    built = tf.train.Example()
    for name, values in features.items():
        kind = "float_list" if values.dtype.kind == "f" else "int64_list"
        getattr(built.features.feature[name], kind).value.extend(values[row].tolist())
    return built.SerializeToString(deterministic=True)


@settings(max_examples=60)
@given(
    st.integers(0, 5),
    st.lists(
        st.tuples(st.integers(1, 300), st.sampled_from([1, 127, 128, 16383, 16384, 2**21 - 1])),
        min_size=1,
        max_size=5,
    ),
    st.integers(0, 2**32),
)
def test_the_bytes_are_those_of_protocol_buffers(rows, shapes, seed):
    generator = np.random.default_rng(seed)
    features = {
        f"feature_{9 - index}": generator.integers(0, high + 1, (rows, length))
        for index, (length, high) in enumerate(shapes)
    }
    if seed % 2:  # a row may end with integers or with floats
        features["weights"] = generator.random((rows, 3)).astype(np.float32)
    framed = io.BytesIO(framed_records(features))
    for row in range(rows):
        (length,) = struct.unpack("<Q", framed.read(12)[:8])
        packed = framed.read(length + 4)[:-4]
        assert packed == message(features, row)
        parsed = parse_example(packed)
        for name, values in features.items():
            np.testing.assert_array_equal(parsed[name], values[row])
    assert not framed.read()


def test_the_file_is_that_of_tensorflows_writer(tmp_path):
    generator = np.random.default_rng(0)
    features = {"ids": generator.integers(0, 30000, (50, 40)), "one": np.ones((50, 1), np.uint8)}
    with tf.io.TFRecordWriter(str(tmp_path / "theirs")) as writer:
        for row in range(50):
            writer.write(message(features, row))
    framed = framed_records(features)
    assert framed == (tmp_path / "theirs").read_bytes()
    (tmp_path / "ours").write_bytes(framed)
    assert list(read_records(str(tmp_path / "ours"))) == [message(features, r) for r in range(50)]


@pytest.mark.parametrize("value", [-1, 2**21])
def test_values_that_do_not_fit_are_refused(value):
    with pytest.raises(ValueError, match="can be packed"):
        framed_records({"ids": np.array([[value]])})
