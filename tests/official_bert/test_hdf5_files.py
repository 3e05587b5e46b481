"""HDF5 files: model folders of earlier versions load, and hostile files harm nobody."""

import json

import h5py
import keras
import numpy as np
import pytest
from tiny import CONFIG, VOCAB

import official_bert as ob
from official_bert import UserError
from official_bert.common import hdf5_files


@pytest.fixture(scope="module")
def model():
    return ob.BertClassifier(ob.BertEncoder(CONFIG), 3)


@pytest.fixture
def folder(tmp_path, model):
    """A model folder as earlier versions wrote it, without checksums."""
    ob.save(tmp_path / "m", model, ob.BertTokenizer(VOCAB), {"labels": ["x", "y", "z"]})
    (tmp_path / "m" / "weights.safetensors").unlink()
    model.save_weights(tmp_path / "m" / "model.weights.h5")
    settings = json.loads((tmp_path / "m" / "model.json").read_text())
    del settings["checksums"]
    (tmp_path / "m" / "model.json").write_text(json.dumps(settings))
    return tmp_path / "m"


pytestmark = pytest.mark.filterwarnings("ignore:.* has no checksums")


def test_a_folder_of_an_earlier_version(folder, model):
    loaded = ob.load(folder)
    for old, new in zip(model.weights, loaded.model.weights, strict=True):
        old, new = keras.ops.convert_to_numpy(old), keras.ops.convert_to_numpy(new)
        assert old.tobytes() == new.tobytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_hidden_layers": 2}, "less of shape"),
        ({"intermediate_size": 16}, "1 arrays (more|less) of shape"),
    ],
)
def test_a_folder_whose_configuration_is_another(folder, change, message):
    path = folder / "bert_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(UserError, match=f"model.weights.h5: does not fit .*{message}"):
        ob.load(folder)


def test_bfloat16_of_keras(tmp_path):
    layer = keras.layers.Dense(3, dtype="bfloat16")
    model = keras.Sequential([layer])
    model.build((1, 2))
    model.save_weights(tmp_path / "a.weights.h5")
    (kernel,) = (a for a in hdf5_files.read(tmp_path / "a.weights.h5").values() if a.ndim == 2)
    expected = keras.ops.convert_to_numpy(keras.ops.cast(layer.kernel, "float32"))
    np.testing.assert_array_equal(kernel, expected)


class TestHostileFiles:
    def change(self, folder, make):
        """Replaces the head's bias in the weights file."""
        with h5py.File(folder / "model.weights.h5", "r+") as file:
            group = file["head/vars"]
            del group["1"]
            make(group)

    def test_external_arrays_are_not_read(self, folder, tmp_path):
        secret = tmp_path / "secret"
        secret.write_bytes(bytes(12))

        def make(group):
            group.create_dataset("1", (3,), "f4", external=[(str(secret), 0, 12)])

        self.change(folder, make)
        with pytest.raises(UserError, match="vars/1 lies in another file"):
            ob.load(folder)

    def test_virtual_arrays_are_not_read(self, folder, tmp_path):
        with h5py.File(tmp_path / "other.h5", "w") as file:
            file["x"] = np.zeros(3, "f4")

        def make(group):
            layout = h5py.VirtualLayout((3,), "f4")
            layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "x", (3,))
            group.create_virtual_dataset("1", layout)

        self.change(folder, make)
        with pytest.raises(UserError, match="vars/1 lies in another file"):
            ob.load(folder)

    @pytest.mark.parametrize(
        "link", [h5py.SoftLink("/head/vars/0"), h5py.ExternalLink("other.h5", "/x")]
    )
    def test_links_are_not_followed(self, folder, link):
        self.change(folder, lambda group: group.__setitem__("1", link))
        with pytest.raises(UserError, match=r"1 arrays less of shape \(3,\)"):
            ob.load(folder)

    def test_an_array_of_more_than_the_file_is_refused(self, folder):
        shape = (10**9, 10**6)
        self.change(folder, lambda g: g.create_dataset("1", shape, "f4", chunks=(1, 10**5)))
        with pytest.raises(UserError, match="vars/1 is no array of numbers, or larger than"):
            ob.load(folder)

    def test_a_group_within_itself_ends(self, folder):
        with h5py.File(folder / "model.weights.h5", "r+") as file:
            file["head/again"] = file["head"]
        ob.load(folder)

    def test_no_changed_byte_keeps_it_busy(self, folder):
        path = folder / "model.weights.h5"
        whole, rng, refused = path.read_bytes(), np.random.default_rng(1), 0
        for place in rng.integers(0, 2000, 12).tolist():
            path.write_bytes(whole[:place] + b"\xff" + whole[place + 1 :])
            try:
                hdf5_files.read(path)
            except UserError as error:
                assert "model.weights.h5" in str(error)
                refused += 1
        assert refused
