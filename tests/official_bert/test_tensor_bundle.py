"""TensorFlow's checkpoints read without it: what TensorFlow reads, and damage is named."""

import struct
import tracemalloc

import google_crc32c
import numpy as np
import pytest
from damage import flipped

from official_bert import UserError
from official_bert.checkpoints.files.tensor_bundle import TensorBundle

tf = pytest.importorskip("tensorflow")


@pytest.fixture(scope="module")
def tensors():
    rng = np.random.default_rng(0)
    kinds = ["f4", "f8", "i4", "i8", "f2", "bool", "u1", "u8"]
    found = {
        f"bert/layer_{i}/{kind}": (9 * rng.normal(size=(i + 1, 3))).astype(kind)
        for i in range(40)  # more names than a block of the index takes
        for kind in kinds
    }
    return found | {"step": np.int64(7), "empty": np.zeros((0, 3), "f4")}


@pytest.fixture(scope="module")
def saved(tmp_path_factory, tensors):
    """Return the files of a checkpoint, by what follows its prefix."""
    prefix = tmp_path_factory.mktemp("bundle") / "x"
    values = [tf.constant(array) for array in tensors.values()]
    values += [tf.cast(tf.range(8.0), "bfloat16"), tf.constant(["a", "bc"])]
    names = [*tensors, "halves", "text"]
    tf.raw_ops.SaveV2(
        prefix=str(prefix), tensor_names=names, shape_and_slices=[""] * len(names), tensors=values
    )
    return {path.name[1:]: path.read_bytes() for path in prefix.parent.iterdir()}


@pytest.fixture
def prefix(saved, tmp_path):
    for name, content in saved.items():
        (tmp_path / f"x{name}").write_bytes(content)
    return tmp_path / "x"


def test_every_type(prefix, tensors):
    bundle = TensorBundle(prefix)
    assert bundle.shapes.keys() == tensors.keys() | {"halves"}
    for name, expected in tensors.items():
        found = bundle.read(name)
        assert found.dtype == expected.dtype and bundle.shapes[name] == expected.shape
        np.testing.assert_array_equal(found, expected)
    assert bundle.read("halves").tolist() == list(range(8))


def test_published_checkpoints_are_what_tensorflow_reads(data_dir):
    """One of them has an index that is packed by Snappy, as TensorFlow 1 wrote it."""
    indices = sorted((data_dir / "checkpoints").glob("*/*.index"))
    assert len(indices) > 1
    for index in indices:
        bundle = TensorBundle(index.with_suffix(""))
        reader = tf.train.load_checkpoint(str(index.with_suffix("")))
        assert {n: list(s) for n, s in bundle.shapes.items()} == reader.get_variable_to_shape_map()
        for name in bundle.shapes:
            np.testing.assert_array_equal(bundle.read(name), reader.get_tensor(name))


def test_every_damaged_byte_is_found(prefix, saved, tensors):
    places = np.random.default_rng(0)
    for name, content in saved.items():
        found = 0
        for place in places.integers(0, len(content), 60).tolist():
            prefix.with_name(f"x{name}").write_bytes(flipped(content, place, 2))
            try:
                bundle = TensorBundle(prefix)
                equal = all(np.array_equal(bundle.read(n), a) for n, a in tensors.items())
            except UserError as error:
                found += "x" in str(error)
            else:
                # The padding of the footer, and of tensors that are not numbers.
                assert equal and bundle.shapes.keys() == tensors.keys() | {"halves"}
        prefix.with_name(f"x{name}").write_bytes(content)
        assert found > 45


@pytest.mark.parametrize("size", [0, 10, 48, 500, -1])
def test_a_cut_index(prefix, saved, size):
    prefix.with_name("x.index").write_bytes(saved[".index"][:size])
    with pytest.raises(UserError, match=r"x: not a readable TensorFlow checkpoint \(x.index: "):
        TensorBundle(prefix)


def test_missing_files(prefix, tmp_path):
    with pytest.raises(UserError, match="absent.index: cannot be read"):
        TensorBundle(tmp_path / "absent")
    next(prefix.parent.glob("x.data-*")).unlink()
    with pytest.raises(UserError, match="its data files have 0"):
        TensorBundle(prefix)


def masked(content):
    crc = google_crc32c.value(content)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def index_of(*blocks, packed=0):
    """Return an index with these blocks of data, whatever they hold."""
    content, handles = b"", b""
    for block in blocks:
        handle = number(len(content)) + number(len(block))
        handles += number(0) + number(1) + number(len(handle)) + b"k" + handle
        content += block + bytes([packed]) + masked(block + bytes([packed]))
    handles += struct.pack("<II", 0, 1)
    footer = number(0) * 2 + number(len(content)) + number(len(handles))
    content += handles + b"\0" + masked(handles + b"\0")
    return content + footer.ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)


def number(value):
    """Encode a number as the format does, seven bits a byte."""
    rest, bits = value >> 7, value & 127
    return bytes([bits | 128]) + number(rest) if rest else bytes([bits])


END = struct.pack("<II", 0, 1)


@pytest.mark.parametrize(
    ("block", "packed", "message"),
    [
        (number(5) + number(0) + number(0) + END, 0, "longer than its block"),
        (number(0) + number(9) + number(0) + b"name" + END, 0, "longer than its block"),
        (number(0) + number(4) + number(1 << 40) + b"name" + END, 0, "longer than its block"),
        (b"\xff" * 12 + END, 0, "a number of more than 64 bits"),
        (number(1 << 40) + b"\x04ab", 1, "packed block is damaged"),
        (number(100) + b"\x04ab" + b"\xfe\xff\xff", 1, "packed block is damaged"),
        (number(0) + number(0) + number(2) + b"\x0b\x00" + END, 0, "of kind 3"),
        (number(0) + number(0) + number(2) + b"\x0a\x00" + END, 0, "field 1 is not a number"),
    ],
)
def test_hostile_blocks(tmp_path, block, packed, message):
    (tmp_path / "x.index").write_bytes(index_of(block, packed=packed))
    with pytest.raises(UserError, match=message):
        TensorBundle(tmp_path / "x")


def test_an_index_asks_for_no_more_than_it_takes(tmp_path):
    """Issue: names written as what differs from the one before became a thousand times the file."""
    name = b"n" * 4000
    same = number(len(name)) + number(0) + number(0)
    block = number(0) + number(len(name)) + number(0) + name + same * 20_000 + END
    (tmp_path / "x.index").write_bytes(index_of(block))
    tracemalloc.start()
    with pytest.raises(UserError, match="names and more, unpacked"):
        TensorBundle(tmp_path / "x")
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


def test_a_shape_is_not_believed_beyond_the_bytes_of_its_tensor(tmp_path):
    dimension = b"\x08" + number(1 << 40)
    shape = b"\x12" + number(len(dimension)) + dimension
    entry = b"\x08\x01\x12" + number(len(shape)) + shape + b"\x28\x04"  # float32, of four bytes
    block = bytes(3) + number(0) + number(1) + number(len(entry)) + b"a" + entry + END
    (tmp_path / "x.index").write_bytes(index_of(block))
    (tmp_path / "x.data-00000-of-00001").write_bytes(bytes(4))
    bundle = TensorBundle(tmp_path / "x")
    assert (bundle.shapes, bundle.numbers) == ({"a": (1 << 40,)}, 4)
