"""Damaged and hostile model folders: every change is found, nothing else is read, nothing grows."""

import tracemalloc

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tiny import CONFIG, VOCAB, change_json

import official_bert as ob
from official_bert import UserError


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The contents of a model folder's files, by name."""
    folder = tmp_path_factory.mktemp("model") / "m"
    model = ob.BertClassifier(ob.BertEncoder(CONFIG), 3)
    ob.save(folder, model, ob.BertTokenizer(VOCAB), {"labels": ["x", "y", "z"]})
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name[0] != "."}


@pytest.fixture
def folder(saved, tmp_path):
    for name, content in saved.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


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
        tensors = load_file(folder / "weights.safetensors")
        tensors["head/bias"][0] = value
        save_file(tensors, folder / "weights.safetensors")
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
