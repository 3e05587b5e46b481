"""Damaged and hostile model folders: every change is found, nothing else is read, nothing grows."""

import json
import tracemalloc

import h5py
import numpy as np
import pytest
from tiny import CONFIG, VOCAB

import official_bert as ob
from official_bert import UserError


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The contents of a model folder's files, by name."""
    folder = tmp_path_factory.mktemp("model") / "m"
    model = ob.BertClassifier(ob.BertEncoder(CONFIG), 3)
    ob.save(folder, model, ob.BertTokenizer(VOCAB), {"labels": ["x", "y", "z"]})
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def folder(saved, tmp_path):
    for name, content in saved.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def change_json(path, drop=(), **fields):
    contents = json.loads(path.read_text())
    contents |= fields
    path.write_text(json.dumps({k: v for k, v in contents.items() if k not in drop}))


def test_a_flipped_bit_anywhere_is_found(folder, saved):
    rng = np.random.default_rng(0)
    for name, content in saved.items():
        for place in rng.integers(0, 8 * len(content), 12).tolist():
            damaged = bytearray(content)
            damaged[place // 8] ^= 1 << place % 8
            (folder / name).write_bytes(damaged)
            with pytest.raises(UserError, match=name):
                ob.load(folder)
        (folder / name).write_bytes(content)
    ob.load(folder)


def test_a_folder_without_checksums_loads_with_a_warning(folder):
    change_json(folder / "model.json", drop=["checksums"])
    with pytest.warns(UserWarning, match="model.json has no checksums"):
        ob.load(folder)


def test_a_file_that_is_gone_is_missed(folder):
    (folder / "vocab.txt").unlink()
    change_json(folder / "model.json", do_lower_case=None)
    with pytest.raises(UserError, match="model.json"):
        ob.load(folder)


@pytest.mark.filterwarnings("ignore:.* has no checksums", "ignore:.*rows of the embedding table")
class TestWithoutChecksums:
    @pytest.fixture(autouse=True)
    def old_folder(self, folder):
        change_json(folder / "model.json", drop=["checksums"])

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_weights_must_be_finite(self, folder, value):
        with h5py.File(folder / "model.weights.h5", "r+") as file:
            file["head/vars/1"][0] = value
        with pytest.raises(UserError, match=r"head/bias holds numbers that are infinite or NaN"):
            ob.load(folder)

    @pytest.mark.parametrize("text", ["NaN", "Infinity", "1e999", "-1e999"])
    def test_the_configuration_must_be_finite(self, folder, text):
        path = folder / "bert_config.json"
        path.write_text(path.read_text().replace("1e-12", text))
        with pytest.raises(UserError, match="bert_config.json: .*(number)"):
            ob.load(folder)

    @pytest.mark.parametrize(
        "change",
        [
            {"hidden_size": 200_000, "num_attention_heads": 1},
            {"num_hidden_layers": 2_000_000},
            {"vocab_size": 2_000_000_000},
            {"hidden_size": 10**400},
        ],
    )
    def test_a_model_larger_than_its_weights_is_not_built(self, folder, change):
        change_json(folder / "bert_config.json", **change)
        tracemalloc.start()
        with pytest.raises(UserError, match=r"describes a model of|must be below 2\*\*31"):
            ob.load(folder)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
        tracemalloc.stop()

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

    @pytest.mark.parametrize("link", [h5py.SoftLink("/x"), h5py.ExternalLink("other.h5", "/x")])
    def test_links_are_not_followed(self, folder, link):
        self.change(folder, lambda group: group.__setitem__("1", link))
        with pytest.raises(UserError, match="vars/1 is a link"):
            ob.load(folder)

    def test_an_array_of_more_than_is_stored_is_refused(self, folder):
        self.change(
            folder,
            lambda group: group.create_dataset("1", (10**9, 10**6), "f4", chunks=(1, 10**5)),
        )
        with pytest.raises(UserError, match="vars/1 should have .* and has 0"):
            ob.load(folder)

    def test_a_group_within_itself_ends(self, folder):
        with h5py.File(folder / "model.weights.h5", "r+") as file:
            file["head/again"] = file["head"]
        with pytest.raises(UserError, match="in the file twice"):
            ob.load(folder)
