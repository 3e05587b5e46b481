"""A model goes to a hub, which this machine serves, and comes back by its name."""

import pytest
import small_hub
import tiny
from tiny import VOCAB, assert_equal_weights

import official_bert as ob
from experiments.publish import publish
from official_bert import UserError

SETTINGS = {"labels": ["ham", "spam"], "fine_tuning": {"dev": {"accuracy": 0.75}}}
FILES = {"README.md", "config.json", "model.safetensors", "tokenizer.json", "vocab.txt"}


@pytest.fixture
def served(tmp_path, monkeypatch):
    """Return a hub with nothing in it, which this process asks, with its token."""
    with small_hub.served(tmp_path, monkeypatch) as server:
        monkeypatch.setenv("HF_TOKEN", server.token)
        yield server


@pytest.fixture
def model(tmp_path):
    """Return a model folder with what else may lie in one."""
    classifier = ob.BertClassifier(ob.BertEncoder(tiny.CONFIG, seed=3), 2, seed=1)
    ob.save(tmp_path / "model", classifier, ob.BertTokenizer(VOCAB), SETTINGS)
    (tmp_path / "model" / "private.txt").write_text("nobody else's")
    return tmp_path / "model"


def test_a_published_model_is_loaded_by_its_name(served, model, capsys):
    publish(str(model), "some-one/mine")
    assert served.private == {"some-one/mine"}
    sent = served.models["some-one/mine"]["main"]
    assert sent.keys() >= FILES and "private.txt" not in sent
    assert b"| accuracy | 0.7500 |" in sent["README.md"]
    told = capsys.readouterr().out
    assert "model.safetensors" in told and f"{served.address}/some-one/mine/commit/" in told
    assert "note: no licence is known" in told
    there = ob.load("some-one/mine")
    assert_equal_weights(there.model, ob.load(model).model)
    assert there.settings["labels"] == ["ham", "spam"]


def test_a_model_that_is_there_stays_unless_an_update_is_asked_for(served, model):
    (model / "README.md").write_text("---\nlicense: mit\n---\nMy model.")
    publish(str(model), "mine", public=True)  # under the owner of the token
    assert not served.private and list(served.models) == ["some-one/mine"]
    card = served.models["some-one/mine"]["main"]["README.md"]
    assert b'license: "mit"' in card and b"My model." in card
    with pytest.raises(UserError, match="some-one/mine exists .*--update"):
        publish(str(model), "some-one/mine")
    (model / "README.md").write_text("Another card.")
    publish(str(model), "some-one/mine", update=True)
    assert b"Another card." in served.models["some-one/mine"]["main"]["README.md"]


def test_a_dry_run_lists_the_files_and_sends_nothing(served, model, capsys, monkeypatch):
    monkeypatch.delenv("HF_TOKEN")
    publish(str(model), "some-one/mine", dry_run=True)
    told = capsys.readouterr().out
    assert all(name in told for name in FILES) and "private if it is new" in told
    assert "a token is missing" in told and not served.asked


def test_what_cannot_be_published_is_refused_by_name(served, model, monkeypatch):
    for name in ("a/b/c", "some-one/mine@v1", "hf://some-one/mine"):
        with pytest.raises(UserError, match=f"--name={name}: expected OWNER/NAME"):
            publish(str(model), name)
    monkeypatch.setenv("HF_TOKEN", "hf_another")
    with pytest.raises(UserError, match="some-one/mine at http.*nothing was sent"):
        publish(str(model), "some-one/mine")
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(UserError, match="no token of the Hugging Face hub: .*hf auth login"):
        publish(str(model), "some-one/mine")
    assert not served.models
    folder, encoder = model.parent / "bilstm", ob.BertEncoder(tiny.CONFIG, seed=1)
    ob.save(folder, ob.BertClassifier(encoder, 2, bilstm=True), ob.BertTokenizer(VOCAB))
    with pytest.raises(UserError, match="transformers|Hugging Face"):
        publish(str(folder), "some-one/mine", dry_run=True)
