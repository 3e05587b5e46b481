"""Folders of other formats from strangers: one line of error, no code, no memory, no other file."""

import importlib.metadata
import json
import os
import pickle
import re

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tiny import CONFIG, VOCAB, change_json

import official_bert as ob
from official_bert import UserError
from official_bert.checkpoints import google, keras_hub
from official_bert.checkpoints.finding import resolve
from official_bert.checkpoints.hugging_face import huggingface, huggingface_tensors
from official_bert.tokenization import vocabulary


@pytest.fixture(scope="module")
def encoder():
    return ob.BertEncoder(CONFIG, seed=1)


@pytest.fixture(scope="module")
def exported(encoder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported") / "hf"
    model = ob.BertClassifier(encoder, 2)
    huggingface.export_huggingface(folder, model, ob.BertTokenizer(VOCAB), {"labels": ["x", "y"]})
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name[0] != "."}


@pytest.fixture
def folder(exported, tmp_path):
    for name, content in exported.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


DEEP = "[" * 900 + "]" * 900


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"architectures": "BertModel"}, "config.json: architectures must be a list"),
        ({"architectures": [["a"]]}, r"config.json: architectures\[0\] must be a text"),
        ({"hidden_act": ["gelu"]}, "config.json: hidden_act must be a text"),
        ({"hidden_act": "silu"}, "hidden_act='silu'; it is one of gelu"),
        ({"id2label": ["a", "b"]}, "config.json: id2label must be a JSON object"),
        ({"id2label": {"0": "b", "2": "d"}}, "config.json: the fields of id2label must be 0, 1"),
        ({"id2label": {"0": None, "1": 2}}, "config.json: id2label: 0 must be a text"),
        ({"quantization_config": {"bits": 4}}, "config.json: quantization_config is set"),
        ({"num_attention_heads": None}, "num_attention_heads must be a whole number"),
        ({"problem_type": "ranking"}, "config.json: problem_type='ranking'; it is one of"),
        ({"problem_type": {"a": 1}}, "config.json: problem_type must be a text"),
        ({"position_embedding_type": 3}, "config.json: position_embedding_type must be a text"),
        ({"position_embedding_type": "relative_key"}, "relative_key"),
        ({"model_type": {"a": 1}}, "config.json: model_type must be a text"),
        ({"model_type": "big_bird"}, 'model_type is "big_bird".*read are bert'),
        ({"layer_norm_eps": 1e400}, "config.json: not valid JSON"),
        ({"hidden_size": 800_000}, "holds .* numbers, but the configuration .* describes"),
        ({"vocab_size": 10**9}, "holds .* numbers, but the configuration .* describes"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*rows of the embedding table")
def test_wrong_fields_of_a_configuration_are_named(folder, fields, message):
    change_json(folder / "config.json", **fields)
    with pytest.raises(UserError, match=message):
        huggingface.import_huggingface(folder)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model": 3}, "model must be a JSON object"),
        ({"model": {"type": "BPE"}}, "model: the field vocab is missing"),
        ({"model": {"vocab": []}}, "model: vocab must be a JSON object"),
        ({"model": {"vocab": {"a": 7}}}, "the library tokenizers cannot read it"),
        ({"added_tokens": ["a"]}, r"added_tokens\[0\] must be a JSON object"),
        ({"added_tokens": [{"id": 1}]}, r"added_tokens\[0\]: the field content is missing"),
    ],
)
def test_wrong_fields_of_a_tokenizer_are_named(folder, fields, message):
    (folder / "vocab.txt").unlink()
    change_json(folder / "tokenizer.json", **fields)
    with pytest.raises(UserError, match=f"tokenizer.json: {message}"):
        huggingface.import_huggingface(folder)


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "..", "sub/x", "link", 3, "", "x" * 300, "\0"]
)
def test_an_index_names_no_file_outside_of_its_folder(folder, tmp_path_factory, name):
    other = tmp_path_factory.mktemp("other") / "x"
    (folder / "model.safetensors").rename(other)
    (folder / "link").symlink_to(other)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"bert.x": name}}))
    expected = "must be a text" if name == 3 else f"the file {name!r}, which is outside of"
    with pytest.raises(UserError, match=f"index.json.*{re.escape(expected)}"):
        huggingface.import_huggingface(folder)


def test_a_shard_may_not_be_a_pipe(folder):
    (folder / "model.safetensors").unlink()
    os.mkfifo(folder / "a")
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"x": "a"}}))
    with pytest.raises(UserError, match="a: is not a file"):
        huggingface.import_huggingface(folder)
    index.rename(folder / "pytorch_model.bin.index.json").write_text('{"weight_map": {}}')
    with pytest.raises(UserError, match="a pickle, which PyTorch|is missing"):
        huggingface.import_huggingface(folder)


@pytest.mark.parametrize("content", ["[]", "{}", '{"weight_map": []}', DEEP])
def test_a_malformed_index_is_named(folder, content):
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(content)
    with pytest.raises(UserError, match="index.json"):
        huggingface.import_huggingface(folder)


def test_links_of_a_hugging_face_cache_are_followed(folder, encoder):
    blobs, snapshot = folder / "cache" / "blobs", folder / "cache" / "snapshots" / "1"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for name in ("config.json", "vocab.txt", "model.safetensors"):
        (folder / name).rename(blobs / name)
        (snapshot / name).symlink_to(f"../../blobs/{name}")
    tensors = load_file(blobs / "model.safetensors")
    (snapshot / "model.safetensors").rename(snapshot / "part")
    index = {"weight_map": dict.fromkeys(tensors, "part")}
    (snapshot / "model.safetensors.index.json").write_text(json.dumps(index))
    assert huggingface.import_huggingface(snapshot).settings["labels"] == ["x", "y"]


def test_tensors_of_eight_bits_and_nan_are_refused(folder):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    tensors["classifier.bias"][1] = np.nan
    save_file(tensors, path)
    with pytest.raises(UserError, match="tensor classifier.bias holds numbers that are infinite"):
        huggingface.import_huggingface(folder)
    tensors["classifier.bias"] = np.zeros(2, np.float32)
    name = "bert.encoder.layer.0.output.dense.weight"
    for kind in (np.int8, np.uint8, np.int32, np.bool_):
        save_file({**tensors, name: tensors[name].astype(kind)}, path)
        with pytest.raises(UserError, match=f"tensor {name} is {np.dtype(kind).name}: a weight"):
            huggingface.import_huggingface(folder)
    save_file({**tensors, name: tensors[name].astype(np.float64)}, path)  # of as many bytes
    path.write_bytes(path.read_bytes().replace(b'"dtype":"F64"', b'"dtype":"C64"', 1))
    # Before safetensors 0.7 the library does not know that type.
    with pytest.raises(UserError, match=f"tensor {name} is complex64: a weight|cannot be read"):
        huggingface.import_huggingface(folder)
    save_file({**tensors, name: tensors[name].astype(np.uint8)}, path)
    path.write_bytes(path.read_bytes().replace(b'"dtype":"U8"', b'"dtype":"F8_E4M3"', 1))
    content = bytearray(path.read_bytes())
    content[:8] = (int.from_bytes(content[:8], "little") + 5).to_bytes(8, "little")
    path.write_bytes(content)
    with pytest.raises(UserError, match="model.safetensors: "):
        huggingface.import_huggingface(folder)


@pytest.mark.parity
class TestPickles:
    @pytest.fixture
    def path(self, folder):
        (folder / "model.safetensors").unlink()
        return folder / "pytorch_model.bin"

    @pytest.fixture(autouse=True)
    def torch(self):
        return pytest.importorskip("torch")

    def test_it_is_read(self, path, exported, torch):
        from safetensors.torch import load

        torch.save(load(exported["model.safetensors"]), path)
        assert huggingface.import_huggingface(path.parent).head == "classification"

    def test_numbers_that_are_no_weights_are_refused(self, path, exported, torch):
        from safetensors.torch import load

        tensors, name = load(exported["model.safetensors"]), "bert.pooler.dense.bias"
        for kind in (torch.int8, torch.complex64, torch.float8_e4m3fn):
            torch.save({**tensors, name: tensors[name].to(kind)}, path)
            with pytest.raises(UserError, match=f"tensor {name} is {str(kind)[6:]}: a weight"):
                huggingface.import_huggingface(path.parent)

    def test_shards_of_it_are_read(self, path, exported, torch):
        from safetensors.torch import load

        tensors, names = load(exported["model.safetensors"]), {}
        for part in range(2):
            file = f"pytorch_model-0000{part + 1}-of-00002.bin"
            own = dict(list(tensors.items())[part::2])
            torch.save(own, path.with_name(file))
            names |= dict.fromkeys(own, file)
        index = path.with_name("pytorch_model.bin.index.json")
        index.write_text(json.dumps({"weight_map": names}))
        loaded = huggingface.import_huggingface(path.parent)
        assert loaded.head == "classification" and loaded.report.initial == []
        path.with_name(file).unlink()
        with pytest.raises(UserError, match="pytorch_model-00002-of-00002.bin: cannot be read"):
            huggingface.import_huggingface(path.parent)

    def test_an_older_pytorch_is_refused(self, path, monkeypatch):
        path.write_bytes(b"")
        for version in ("2.9.1+cpu", "1.13.0"):
            monkeypatch.setattr(importlib.metadata, "version", lambda name, v=version: v)
            with pytest.raises(UserError, match=r"does not read safely; install torch>=2\.10"):
                huggingface.import_huggingface(path.parent)

    def test_code_in_it_does_not_run(self, path, tmp_path):
        class Payload:
            def __reduce__(self):
                return open, (str(tmp_path / "ran"), "w")

        path.write_bytes(pickle.dumps({"x": Payload()}))
        with pytest.raises(UserError, match="pytorch_model.bin: cannot be read"):
            huggingface.import_huggingface(path.parent)
        assert not (tmp_path / "ran").exists()

    def test_what_is_no_dictionary_of_tensors_is_refused(self, path, torch):
        one = torch.zeros(1)
        for content, message in (
            ([one], "holds a list"),
            ({"x": 3}, "'x' is not a tensor"),
            ({3: one}, "'3' is not a tensor"),
            ({"x": one.expand(10**6, 10**6)}, "tensor x is larger than the file"),
        ):
            torch.save(content, path)
            with pytest.raises(UserError, match=message):
                huggingface_tensors.read_pickle(str(path))


@pytest.mark.filterwarnings("ignore:.*rows of the embedding table")
def test_google_checkpoints_are_not_larger_than_their_files(tmp_path, encoder):
    folder = tmp_path / "google"
    google.export_google(folder, encoder, ob.BertTokenizer(VOCAB))
    change_json(folder / "bert_config.json", hidden_size=1_000_000)
    with pytest.raises(UserError, match="describes a model of"):
        google.import_google(folder)
    data = next(folder.glob("*.data-*"))
    data.write_bytes(data.read_bytes()[:100])
    with pytest.raises(UserError, match="its index promises .* its data files have 100"):
        google.import_google(folder)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"class_name": "Lambda"}, "not KerasHub's BertBackbone"),
        ({"module": "os"}, "not KerasHub's BertBackbone"),
        ({"config": []}, "config must be a JSON object"),
        ({"config": {"vocabulary_size": "1"}}, "vocabulary_size must be a whole number"),
    ],
)
def test_keras_hub_presets_are_checked_before_keras_hub_sees_them(tmp_path, config, message):
    fields = {"module": "keras_hub.src.models.bert.bert_backbone", "class_name": "BertBackbone"}
    (tmp_path / "config.json").write_text(json.dumps(fields | {"config": {}} | config))
    with pytest.raises(UserError, match=f"config.json: .*{message}"):
        resolve.load(tmp_path)


def test_the_tokenizer_of_a_preset_is_checked_and_never_left_out_silently(tmp_path, encoder):
    keras_hub.export_keras_hub(tmp_path / "p", encoder, ob.BertTokenizer(VOCAB))
    assert resolve.load(tmp_path / "p").tokenizer.vocab == VOCAB
    (vocabulary_file,) = (tmp_path / "p" / "assets").rglob("vocabulary.txt")
    vocabulary_file.write_bytes(b"[PAD]\n\xff\n")
    with pytest.raises(UserError, match="its tokenizer cannot be read"):
        resolve.load(tmp_path / "p")
    change_json(tmp_path / "p" / "tokenizer.json", class_name="Lambda")
    with pytest.raises(UserError, match="tokenizer.json: .*not KerasHub's BertTokenizer"):
        resolve.load(tmp_path / "p")


def test_a_vocabulary_of_millions_of_lines_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "vocab.txt"
    monkeypatch.setattr(vocabulary, "MOST_PIECES", 1000)
    path.write_text("\n".join(map(str, range(1100))))
    with pytest.raises(UserError, match=r"vocab.txt: more than 1,000 lines"):
        vocabulary.load_vocab(path)
