"""Imports and exports without the other libraries: real files, reports, named errors."""

import dataclasses
import json

import numpy as np
import pytest
import tiny
from safetensors.numpy import load_file, save_file
from tiny import VOCAB, assert_equal_weights
from tokenization_texts import REAL

import official_bert as ob
from official_bert import UserError
from official_bert.backend.variables import named_variables
from official_bert.checkpoints import google, model_settings
from official_bert.checkpoints.files import safetensors_files
from official_bert.checkpoints.finding.resolve import EXPORTERS, format_of
from official_bert.checkpoints.hugging_face import huggingface
from official_bert.checkpoints.names import variable_names
from official_bert.common.files import atomic_folder
from official_bert.objectives.sentence_pair import NextSentence, add_head
from official_bert.tokenization.vocabulary import is_cased

CONFIG = dataclasses.replace(tiny.CONFIG, num_hidden_layers=2)


@pytest.fixture(scope="module")
def pretrainer():
    return ob.BertPretrainer(CONFIG, seed=1)


@pytest.fixture
def hf_folder(tmp_path, pretrainer):
    folder = tmp_path / "hf"
    huggingface.export_huggingface(folder, pretrainer, ob.BertTokenizer(VOCAB))
    return folder


@pytest.fixture
def google_folder(tmp_path, pretrainer):
    google.export_google(tmp_path / "google", pretrainer, ob.BertTokenizer(VOCAB))
    return tmp_path / "google"


def test_the_table_names_every_variable_once(pretrainer):
    rows = variable_names(CONFIG.num_hidden_layers, "pretraining")
    assert [row.ours for row in rows] == list(dict.fromkeys(row.ours for row in rows))
    assert {row.ours for row in rows} == set(named_variables(pretrainer))
    for name in ("google", "huggingface"):
        assert len({getattr(row, name) for row in rows}) == len(rows)


def test_reads_the_trained_bert_tiny(data_dir):
    loaded = ob.load(data_dir / "checkpoints" / "bleurt_test_bert_tiny")
    assert (loaded.head, loaded.settings["problem"]) == ("classification", "regression")
    assert loaded.report.left_out == [("global_step", "the step counter")]
    assert loaded.report.initial == [] and len(loaded.report.loaded) == 41
    assert loaded.tokenizer.do_lower_case is True
    # The file's number of numbers but for the step counter.
    assert loaded.model.count_params() == 4_386_050 - 1


def test_reads_all_pretraining_heads_and_leaves_out_the_optimiser(data_dir):
    loaded = ob.load(data_dir / "checkpoints" / "keras_bert_test")
    assert loaded.head == "pretraining"
    assert loaded.settings["objectives"] == ["masked_lm", "next_sentence"]
    assert loaded.report.initial == []
    reasons = [reason for _, reason in loaded.report.left_out]
    assert reasons.count("optimiser slots") == 92 and len(reasons) == 93
    assert "optimiser slots" in str(loaded.report)


def test_cased_vocabularies_are_recognised(data_dir):
    found = {
        path.name: not is_cased(path.read_text("utf-8").split("\n"))
        for path in (data_dir / "vocab").glob("*.txt")
    }
    assert found == dict(REAL)


def test_the_encoder_alone_and_heads_of_ones_own(google_folder, tmp_path, pretrainer):
    loaded = google.import_google(google_folder, head="none")
    assert loaded.model is loaded.encoder
    assert {reason for _, reason in loaded.report.left_out} == {"no part of this model"}
    google.export_google(tmp_path / "encoder", pretrainer.encoder, None)
    loaded = google.import_google(tmp_path / "encoder", head="pretraining")
    assert "masked_lm/transform/kernel" in loaded.report.initial
    assert "initial values kept" in str(loaded.report)
    model = ob.BertPretrainer(pretrainer.encoder, ["masked_lm", _Other()])
    notes = google.export_google(tmp_path / "other", model, None)
    assert notes == ["left out, the original has no place for it: other"]
    words = ob.BertPretrainer(pretrainer.encoder, ["masked_lm"])
    notes = huggingface.export_huggingface(tmp_path / "words", words, ob.BertTokenizer(VOCAB))
    assert len(notes) == 1 and "bert.pooler" in notes[0] and "seq_relationship" not in notes[0]


def test_heads_of_google_checkpoints_and_what_these_cannot_say(tmp_path, pretrainer):
    span = ob.BertSpan(pretrainer.encoder)
    assert google.export_google(tmp_path / "span", span, ob.BertTokenizer(VOCAB)) == []
    loaded = google.import_google(tmp_path / "span")
    assert loaded.head == "span" and loaded.report.initial == []
    assert_equal_weights(loaded.model, span)
    several = ob.BertClassifier(pretrainer.encoder, 3, "multi_label")
    keeps_accents = ob.BertTokenizer(VOCAB, True, False, False)
    (note,) = google.export_google(tmp_path / "several", several, keeps_accents)
    assert note.endswith(": problem multi_label, strip_accents, tokenize_chinese_chars")


class _Other(NextSentence):
    name = "other"

    def build(self, model, initializer):
        add_head(model, initializer, self.name)


def test_a_wrong_depth_is_an_error_in_both_directions(google_folder):
    path = google_folder / "bert_config.json"
    for layers, message in ((3, "layer_2.* is missing"), (1, "layer_1.* no variable")):
        path.write_text(json.dumps({**CONFIG.to_dict(), "num_hidden_layers": layers}))
        with pytest.raises(UserError, match=message):
            google.import_google(google_folder)


def test_a_wrong_shape_names_the_tensor(google_folder):
    config = {**CONFIG.to_dict(), "intermediate_size": 16}
    (google_folder / "bert_config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match=r"intermediate/dense/kernel has shape \[8, 12\], expected"):
        google.import_google(google_folder)


def test_prefixes_and_missing_checkpoints(google_folder, tmp_path):
    assert google.find_prefix(google_folder / "bert_model.ckpt").name == "bert_model.ckpt"
    with pytest.raises(UserError, match="no such checkpoint"):
        google.import_google(google_folder / "model.ckpt-7")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="no TensorFlow checkpoint here"):
        google.import_google(tmp_path / "empty")
    with pytest.raises(UserError, match="no such checkpoint"):
        google.find_prefix(".index")


def test_huggingface_missing_and_mis_shaped_tensors_are_named(hf_folder):
    path = hf_folder / "model.safetensors"
    tensors = load_file(path)
    name = "bert.encoder.layer.1.output.dense.weight"
    save_file({**tensors, name: tensors[name].T.copy()}, path)
    with pytest.raises(UserError, match=rf"{name} has shape \[12, 8\], expected \[8, 12\]"):
        huggingface.import_huggingface(hf_folder)
    save_file({key: value for key, value in tensors.items() if key != name}, path)
    with pytest.raises(UserError, match=f"{name} is missing"):
        huggingface.import_huggingface(hf_folder)
    # Part of a head is an error too; a head that is absent as a whole is not.
    half = {key: value for key, value in tensors.items() if key != "cls.predictions.bias"}
    save_file(half, path)
    with pytest.raises(UserError, match="cls.predictions.bias is missing"):
        huggingface.import_huggingface(hf_folder)


def test_huggingface_old_names_shards_and_untied_weights(hf_folder, pretrainer):
    path = hf_folder / "model.safetensors"
    tensors = load_file(path)
    old = {name.replace("Norm.weight", "Norm.gamma"): array for name, array in tensors.items()}
    old = {name.replace("Norm.bias", "Norm.beta"): array for name, array in old.items()}
    table = "bert.embeddings.word_embeddings.weight"
    old["bert.embeddings.position_ids"] = np.arange(8)[None]
    old["cls.predictions.decoder.weight"] = old[table]
    names = sorted(old)
    weight_map = {}
    for part in range(2):
        file = f"model-0000{part + 1}-of-00002.safetensors"
        save_file({name: old[name] for name in names[part::2]}, hf_folder / file)
        weight_map |= dict.fromkeys(names[part::2], file)
    path.unlink()
    index = hf_folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}))
    loaded = huggingface.import_huggingface(hf_folder)
    assert_equal_weights(loaded.model, pretrainer)
    assert dict(loaded.report.left_out) == {
        "bert.embeddings.position_ids": "a constant",
        "cls.predictions.decoder.weight": "a copy of tied weights",
    }
    save_file({**tensors, "cls.predictions.decoder.weight": tensors[table] + 1}, path)
    with pytest.raises(UserError, match="decoder.weight differs from"):
        huggingface.import_huggingface(hf_folder, head="pretraining")
    loaded = huggingface.import_huggingface(hf_folder)
    assert loaded.settings["objectives"] == ["next_sentence"]
    assert_equal_weights(loaded.encoder, pretrainer.encoder)
    assert "the masked-LM head is left out: tensor cls.predictions.decoder" in str(loaded.report)
    assert huggingface.import_huggingface(hf_folder, head="none").head == "none"


def test_labels_problem_and_gelu_form_survive(tmp_path):
    config = ob.BertConfig.from_dict({**CONFIG.to_dict(), "gelu_form": "tanh"})
    model = ob.BertClassifier(ob.BertEncoder(config), 2, "multi_label")
    huggingface.export_huggingface(tmp_path / "m", model, None, {"labels": ["no", "yes"]})
    loaded = huggingface.import_huggingface(tmp_path / "m")
    assert loaded.settings["labels"] == ["no", "yes"]
    assert loaded.settings["problem"] == "multi_label"
    assert loaded.config == config


def test_exports_refuse_what_the_other_side_would_compute_differently(tmp_path):
    config = ob.BertConfig.from_dict({**CONFIG.to_dict(), "attention_direction": "left_to_right"})
    left_to_right = ob.BertClassifier(ob.BertEncoder(config), 2)
    with_bilstm = ob.BertClassifier(ob.BertEncoder(CONFIG), 2, bilstm=True)
    for name, model in (
        ("huggingface", left_to_right),
        ("google", left_to_right),
        ("keras_hub", left_to_right),
        ("huggingface", with_bilstm),
        ("google", with_bilstm),
        ("google", ob.BertTagger(ob.BertEncoder(CONFIG), 2)),
    ):
        with pytest.raises(UserError):
            EXPORTERS[name](tmp_path / "out", model, None)
        assert not (tmp_path / "out").exists()


def test_folders_of_no_kind_are_explained(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="no model in this folder; expected"):
        ob.load(tmp_path / "empty")
    ob.save(tmp_path / "run" / "model", ob.BertEncoder(CONFIG), None)
    for read in (ob.load, model_settings.read_settings):
        with pytest.raises(UserError, match=r"this run's model is .*/run/model\)"):
            read(tmp_path / "run")


def test_keras_hub_presets_by_folder_and_name(tmp_path, pretrainer):
    pytest.importorskip("keras_hub")
    notes = EXPORTERS["keras_hub"](tmp_path / "p", pretrainer, ob.BertTokenizer(VOCAB))
    assert any("tanh" in note for note in notes) and any("head" in note for note in notes)
    loaded = ob.load(tmp_path / "p")
    assert loaded.config.gelu_form == "tanh" and loaded.tokenizer.vocab == VOCAB
    assert_equal_weights(loaded.model, pretrainer.encoder)
    assert format_of("bert_tiny_en_uncased") == "keras_hub"
    with pytest.raises(UserError, match='did you mean "bert_base_en".*no BERT preset of KerasHub'):
        ob.load("bert_teeny")


def test_the_same_model_gives_the_same_bytes(tmp_path):
    """The library writes metadata in another order each time, of two keys every second time."""
    tensors = {name: np.arange(6, dtype="f4") for name in ("b", "a", 'odd"ä\n')}
    for number in range(8):
        with atomic_folder(tmp_path / str(number)) as folder:
            safetensors_files.write(folder / "x", tensors, format="pt")
    contents = {(tmp_path / str(number) / "x").read_bytes() for number in range(8)}
    assert len(contents) == 1 and load_file(tmp_path / "0" / "x").keys() == tensors.keys()
