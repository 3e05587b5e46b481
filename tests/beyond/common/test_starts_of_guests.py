"""Names, files and types choose a start beyond the paper."""

import json

import pytest

import official_bert
from experiments.beyond.elmo.shape import ElmoConfig
from experiments.training.answers.predictor import read_task
from experiments.training.settings.config import FinetuneConfig, PretrainConfig
from experiments.training.settings.options import replaced
from experiments.training.start import initialization
from official_bert.common.errors import UserError


@pytest.mark.parametrize(
    "config, kind",
    [
        (PretrainConfig(bert=ElmoConfig()), "Elmo"),
        (FinetuneConfig(model="cbow"), "WordVectors"),
        (replaced(FinetuneConfig(model="bilstm_attention"), elmo="folder"), "WordVectors"),
        (FinetuneConfig(model="tfidf"), "Tfidf"),
        (FinetuneConfig(model="gbert-neither"), "GBert"),
        (FinetuneConfig(model="videobert-random-rows"), "VideoBert"),
    ],
)
def test_names_and_types(config, kind):
    assert type(initialization.of(config)).__name__ == kind


def test_folders(tmp_path, monkeypatch):
    def kind(model):
        return type(initialization.of(FinetuneConfig(model=model))).__name__

    monkeypatch.chdir(tmp_path)
    for folder in ("[model]", "tfidf"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "options.json").touch()
    assert kind("[model]") == "BertSource" and kind("tfidf") == "Tfidf"
    (tmp_path / "[model]" / "lm_weights.hdf5").touch()
    assert kind("[model]") == "Elmo"
    (tmp_path / "lm_weights.hdf5").touch()
    assert kind("") == "BertSource" and kind("tfidf") == "Tfidf"  # names, not folders
    (tmp_path / "[model]" / "other_options.json").touch()
    config = FinetuneConfig(model="[model]", features="elmo")
    with pytest.raises(UserError, match=r"--config.model=\[model\]: no ELMo, which is one"):
        initialization.of(config).check_finetuning(config, None)


@pytest.mark.parametrize(
    "name, works",
    [
        ("gbert", "predict_test=true"),
        ("videobert", "no model"),
        ("cbow", "save_model=false"),
        ("video-counts", 'segments.jsonl with "split": "dev"'),
        ("lesk", "the words of dev alone"),
    ],
)
def test_runs_that_leave_no_model_say_what_they_left(tmp_path, name, works):
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.json").write_text(json.dumps({"model": name}))
    (run / "results.json").write_text("{}")
    for folder in (run, run / "model"):
        with pytest.raises(UserError, match=rf"run is a run of {name}: .*{works}"):
            official_bert.load(folder)
        with pytest.raises(UserError, match=rf"run is a run of {name}: .*{works}"):
            read_task(folder)


def test_an_elmo_says_what_reads_it(tmp_path):
    (tmp_path / "elmo_weights.hdf5").touch()
    with pytest.raises(UserError, match="read in training alone: .*--config.features=elmo"):
        official_bert.load(tmp_path)
