"""HDF5 files of others: their arrays are read, and hostile files harm nobody."""

import h5py
import keras
import numpy as np
import pytest

from official_bert import UserError
from official_bert.checkpoints.files import hdf5_files


@pytest.fixture
def path(tmp_path):
    """Weights as Keras writes them: those of a dense layer, in bfloat16."""
    model = keras.Sequential([keras.layers.Dense(3, dtype="bfloat16")])
    model.build((1, 2))
    model.save_weights(tmp_path / "a.weights.h5")
    return tmp_path / "a.weights.h5"


def change(path, make):
    """Replace the bias."""
    with h5py.File(path, "r+") as file:
        group = file["layers/dense/vars"]
        del group["1"]
        make(group)


def test_bfloat16_of_keras(path):
    arrays = hdf5_files.read(path)
    with hdf5_files.written(arrays, path) as copy:
        again = hdf5_files.read(copy)
    assert {name: array.shape for name, array in again.items()} == {
        "layers/dense/vars/0": (2, 3),
        "layers/dense/vars/1": (3,),
    }
    kernel = again["layers/dense/vars/0"]
    rounded = keras.ops.convert_to_numpy(
        keras.ops.cast(keras.ops.cast(kernel, "bfloat16"), "float32")
    )
    np.testing.assert_array_equal(kernel, rounded)
    assert kernel.std() > 0


def test_external_arrays_are_not_read(path, tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(12))
    external = [(str(secret), 0, 12)]
    change(path, lambda group: group.create_dataset("1", (3,), "f4", external=external))
    with pytest.raises(UserError, match="vars/1 lies in another file"):
        hdf5_files.read(path)


def test_virtual_arrays_are_not_read(path, tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = np.zeros(3, "f4")
    layout = h5py.VirtualLayout((3,), "f4")
    layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "x", (3,))
    change(path, lambda group: group.create_virtual_dataset("1", layout))
    with pytest.raises(UserError, match="vars/1 lies in another file"):
        hdf5_files.read(path)


@pytest.mark.parametrize(
    "link", [h5py.SoftLink("/layers/dense/vars/0"), h5py.ExternalLink("other.h5", "/x")]
)
def test_links_are_not_followed(path, link):
    change(path, lambda group: group.__setitem__("1", link))
    assert [*hdf5_files.read(path)] == ["layers/dense/vars/0"]


def test_an_array_of_more_than_the_file_is_refused(path):
    shape = (10**9, 10**6)
    change(path, lambda g: g.create_dataset("1", shape, "f4", chunks=(1, 10**5)))
    with pytest.raises(UserError, match="vars/1 is not an array of numbers, or larger than"):
        hdf5_files.read(path)


def test_a_group_within_itself_ends(path):
    with h5py.File(path, "r+") as file:
        file["layers/again"] = file["layers"]
    assert len(hdf5_files.read(path)) == 2


def test_no_changed_byte_keeps_it_busy(path):
    whole, rng, refused = path.read_bytes(), np.random.default_rng(1), 0
    for place in rng.integers(0, 2000, 12).tolist():
        path.write_bytes(whole[:place] + b"\xff" + whole[place + 1 :])
        try:
            hdf5_files.read(path)
        except UserError as error:
            assert path.name in str(error)
            refused += 1
    assert refused
