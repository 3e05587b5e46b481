"""Models by their names on a hub, which this machine serves."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import small_hub
import tiny
from safetensors.numpy import save_file
from tiny import VOCAB, assert_equal_weights

import official_bert as ob
from experiments.training.folder.inputs import checkpoint_digest
from official_bert import UserError
from official_bert.checkpoints import keras_hub
from official_bert.checkpoints.finding import hub, resolve
from official_bert.checkpoints.finding.resolve import EXPORTERS

ROOT = Path(__file__).parents[2]
NAME = "some-one/bert.tiny"
UNREAD = ["tf_model.h5", "flax_model.msgpack", "README.md", "onnx/model.onnx", "coreml/config.json"]


@pytest.fixture(scope="module")
def encoder():
    return ob.BertEncoder(tiny.CONFIG, seed=3)


@pytest.fixture
def served(tmp_path, monkeypatch):
    """Return a hub with nothing in it, asked by this process, whose cache is empty."""
    with small_hub.served(tmp_path, monkeypatch) as server:
        yield server


@pytest.fixture
def folder(tmp_path, encoder):
    """Return a folder of transformers with what else lies in one on the hub."""
    path = tmp_path / "hf"
    EXPORTERS["huggingface"](path, encoder, ob.BertTokenizer(VOCAB))
    for name in UNREAD:
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_bytes(b"{}")
    return path


def again(server):
    """Forget what a new process would not know."""
    hub.download.cache_clear()
    server.asked.clear()


@pytest.mark.parametrize("name", [NAME, f"hf://{NAME}", f"{NAME}@main", "bert-tiny"])
def test_a_name_is_downloaded_once_and_only_what_is_read(served, folder, encoder, name):
    served.add(hub.parts_of(name)[0], folder)
    loaded = ob.load(name)
    assert_equal_weights(loaded.encoder, encoder)
    assert loaded.tokenizer.vocab == VOCAB
    there = {path.name for path in folder.iterdir() if path.is_file() and path.name[0] != "."}
    assert {*served.downloads()} == there - {*UNREAD}
    again(served)
    assert resolve.peek(name)[0] == encoder.config
    assert not served.downloads() and served.asked  # the hub was asked whether there is news


def test_revisions(served, folder, tmp_path):
    served.add(NAME, folder)
    other = ob.BertEncoder(tiny.CONFIG, seed=4)
    EXPORTERS["huggingface"](tmp_path / "v2", other, ob.BertTokenizer(VOCAB))
    served.add(NAME, tmp_path / "v2", "v2")
    commit = small_hub.commit_of(NAME, "v2")
    for options in ({"revision": "v2"}, {"revision": commit}):
        assert_equal_weights(ob.load(NAME, **options).encoder, other)
    assert_equal_weights(ob.load(f"{NAME}@v2").encoder, other)
    again(served)
    resolve.find(NAME, commit)
    assert not served.asked  # a commit never changes
    assert checkpoint_digest(f"{NAME}@v2") == commit != checkpoint_digest(NAME)
    with pytest.raises(UserError, match=f"{NAME}: no revision v3 at {served.address}"):
        ob.load(NAME, revision="v3")
    with pytest.raises(UserError, match="names another revision"):
        ob.load(f"{NAME}@v2", revision="v3")
    with pytest.raises(UserError, match="lies here"):
        ob.load(folder, revision="v2")


def test_what_was_downloaded_is_read_without_a_network(served, folder, encoder, monkeypatch):
    from huggingface_hub import constants

    served.add(NAME, folder)
    found = resolve.find(NAME)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")  # nothing answers there
    hub.download.cache_clear()
    with pytest.warns(
        UserWarning, match=r"127.0.0.1:9 cannot be asked \(.*; the copy in .* is read"
    ):
        assert resolve.find(NAME) == found
    with pytest.raises(UserError, match="no-one/x: no such folder.*downloaded before.*be asked"):
        ob.load("no-one/x")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    hub.download.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_equal_weights(ob.load(NAME).encoder, encoder)


def test_a_download_that_broke_off_is_no_model(served, folder, monkeypatch):
    from huggingface_hub import constants

    served.add(NAME, folder)
    weights = served.models[NAME]["main"].pop("model.safetensors")
    info = served.models[NAME]["main"]
    served.models[NAME]["main"] = Broken(info)
    with pytest.raises(UserError, match=r"model\.safetensors was not downloaded"):
        ob.load(NAME)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match="no model downloaded before"):
        ob.load(NAME)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    served.models[NAME]["main"] = {**info, "model.safetensors": weights}
    again(served)
    ob.load(NAME)
    assert served.downloads() == ["model.safetensors"]


class Broken(dict):
    """Files of which the hub tells one more than it gives."""

    def __iter__(self):
        return iter([*super().__iter__(), "model.safetensors"])


def test_shards_and_pickles(served, folder):
    served.add(NAME, folder)
    files = served.models[NAME]["main"]
    weights = files.pop("model.safetensors")
    files |= {"pytorch_model.bin": b"x"}
    with pytest.raises(UserError, match=r"as a pickle alone \(pytorch_model.bin\).*pickle=True"):
        ob.load(NAME)
    assert not served.downloads()
    again(served)
    assert (resolve.find(NAME, pickle=True) / "pytorch_model.bin").is_file()

    from safetensors.numpy import load

    names = {tensor: "model-00001-of-00001.safetensors" for tensor in load(weights)}
    files |= {"model.safetensors.index.json": json.dumps({"weight_map": names}).encode()}
    served.models["a/shards"] = {"main": {**files, "model-00001-of-00001.safetensors": weights}}
    again(served)
    assert_equal_weights(ob.load("a/shards").encoder, ob.load(folder).encoder)
    assert "pytorch_model.bin" not in served.downloads()
    served.models["a/nothing"] = {"main": {"README.md": b"", "config.json": b"{}"}}
    with pytest.raises(
        UserError, match='a/nothing: no model that is read here.*"README.md'.replace('"', "")
    ):
        ob.load("a/nothing")


@pytest.mark.parametrize("kind", ["google", "keras_hub", "model_folder"])
def test_every_format_may_lie_on_the_hub(served, encoder, tmp_path, kind):
    if kind == "keras_hub":
        pytest.importorskip("keras_hub")
    save = EXPORTERS.get(kind, ob.save)
    save(tmp_path / "here", encoder, ob.BertTokenizer(VOCAB))
    served.add(NAME, tmp_path / "here")
    here, loaded = ob.load(tmp_path / "here"), ob.load(NAME)
    assert_equal_weights(loaded.encoder, here.encoder)
    assert (loaded.config, loaded.tokenizer.vocab) == (here.config, VOCAB)
    assert resolve.format_of(NAME) == kind


def test_the_modules_of_sentence_transformers_come_too(served, folder, tmp_path):
    from huggingface_hub import try_to_load_from_cache

    modules = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Dense", "2_Dense")]
    described = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (kind, path) in enumerate(modules)
    ]
    (folder / "modules.json").write_text(json.dumps(described))
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": tiny.CONFIG.hidden_size, "pooling_mode_cls_token": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    (folder / "2_Dense").mkdir()
    dense = {"activation_function": "torch.nn.modules.linear.Identity", "bias": False}
    (folder / "2_Dense" / "config.json").write_text(json.dumps(dense))
    kernel = np.ones((3, tiny.CONFIG.hidden_size), "float32")
    save_file({"linear.weight": kernel}, folder / "2_Dense" / "model.safetensors")
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 7}')
    served.add(NAME, folder)
    loaded = ob.load(NAME)
    assert loaded.vectors.poolings == ("cls",) and loaded.embed("a").shape == (3,)
    np.testing.assert_array_equal(loaded.embed("a"), ob.load(folder).embed("a"))
    assert loaded.settings["max_seq_length"] == 7
    # A download that broke off behind the encoder's weights, or before them, is no model.
    commit = small_hub.commit_of(NAME, "main")
    for lost in ("2_Dense/model.safetensors", "model.safetensors"):
        link = try_to_load_from_cache(NAME, lost, revision=commit)
        for path in (os.path.realpath(link), link):
            os.unlink(path)
        again(served)
        ob.load(f"{NAME}@{commit}")
        assert lost in served.downloads()
        again(served)
        ob.load(f"{NAME}@{commit}")
        assert not served.asked


def test_folders_and_own_models_come_before_the_hub(served, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ob.save(tmp_path / "a" / "b", ob.BertEncoder(tiny.CONFIG), None)
    assert resolve.find("a/b") == Path("a/b")
    assert resolve.find("tiny-wikipedia").is_dir()
    for path in ("./a/c", "../c", "/c/d", "a/b/c", "c@d@e", "a b"):
        with pytest.raises(UserError, match="no such folder or checkpoint"):
            resolve.find(path)
    if keras_hub.preset_names():
        assert resolve.find("bert_tiny_en_uncased") == "bert_tiny_en_uncased"
    assert not served.asked


@pytest.mark.parametrize("name", ["tiny_wikipedia", "tiny wikipedia", "Tiny-Wikipedia"])
def test_a_name_of_the_package_that_is_nearly_right(served, name):
    with pytest.raises(
        UserError, match=rf'^{name}: no such .* \(did you mean "tiny-wikipedia"\?\)'
    ):
        ob.load(name)


def test_names_of_presets_are_those_of_keras_hub():
    library = pytest.importorskip("keras_hub")
    kinds = [getattr(library.models, name) for name in keras_hub.members.backbones()]
    others = {name for kind in kinds for sub in kind.__subclasses__() for name in sub.presets}
    names = {name for kind in kinds for name in kind.presets} - others
    assert keras_hub.preset_names() == sorted(names)


def test_wrong_names_are_said_in_one_line_before_keras_starts(served, tmp_path):
    code = (
        "import sys, official_bert\n"
        f"sys.argv = ['finetune', '--config=text_classification', '--config.model=no-one/bert',\n"
        f"  '--config.data_dir={tmp_path}', '--workdir={tmp_path}/run']\n"
        "from experiments import finetune\n"
        "finetune._define_flags()\n"
        "try: finetune.commands.run(finetune.main)\n"
        "finally: print(*sys.modules)\n"
    )
    (tmp_path / "train.tsv").write_text("text\tlabel\na b\tx\nc d\ty\n" * 9)
    environment = {**os.environ, "HF_ENDPOINT": served.address, "PYTHONPATH": str(ROOT)}
    environment |= {"HF_HUB_CACHE": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "0"}
    ended = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, cwd=tmp_path
    )
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1, ended.stderr
    line = ended.stderr.strip()
    assert line.startswith("error: --config.model=no-one/bert: no such folder, no model of this")
    assert line.endswith(f"no model of {served.address} (or a private one: `hf auth login`)")
    assert {"tensorflow", "keras", "keras_hub"}.isdisjoint(ended.stdout.split())
    assert "official_bert.checkpoints.finding.hub" in ended.stdout
    assert sum("/api/models/" in request for request in served.asked) == 1


def test_names_that_nobody_can_have():
    with pytest.raises(UserError, match="no name that a model of"):
        ob.load(f"a..b@{'0' * 40}")
    with pytest.raises(UserError, match="aaa: cannot be read"):
        ob.load("a" * 300)
    with pytest.raises(UserError, match="is KerasHub.s, and a revision is for the hub"):
        resolve.find("bert_tiny_en_uncased", "main")
