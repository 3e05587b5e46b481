"""Model folders: nothing changes on the way, what is wrong is named, and nothing grows."""

import dataclasses
import json
import tracemalloc

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tiny import CONFIG, VOCAB, change_json

import official_bert as ob
from official_bert import UserError
from official_bert.checkpoints import model_folder

pytestmark = pytest.mark.filterwarnings("ignore:.* has no checksums")
MODELS = {
    "none": lambda: ob.BertEncoder(CONFIG),
    "pretraining": lambda: ob.BertPretrainer(CONFIG, ["masked_lm"]),
    "left to right": lambda: ob.BertPretrainer(
        dataclasses.replace(CONFIG, attention_direction="left_to_right"),
        [{"name": "next_token", "fraction": 0.5}],
    ),
    "classification": lambda: ob.BertClassifier(
        ob.BertEncoder(CONFIG), 3, "multi_label", mean_pooling=True
    ),
    "regression": lambda: ob.BertClassifier(ob.BertEncoder(CONFIG), 1, "regression", bilstm=True),
    "span": lambda: ob.BertSpan(ob.BertEncoder(CONFIG)),
    "multiple_choice": lambda: ob.BertMultipleChoice(ob.BertEncoder(CONFIG)),
    "tagging": lambda: ob.BertTagger(ob.BertEncoder(CONFIG), 5, bilstm=True),
}


@pytest.fixture
def tokenizer():
    return ob.BertTokenizer(VOCAB, do_lower_case=False)


@pytest.fixture
def folder(tmp_path, tokenizer):
    """Return a saved classifier of three labels."""
    model = ob.BertClassifier(ob.BertEncoder(CONFIG), 3)
    ob.save(tmp_path / "m", model, tokenizer, {"labels": ["x", "y", "z"], "max_seq_length": 8})
    return tmp_path / "m"


@pytest.fixture
def old_folder(folder):
    """Return the same of before there were checksums."""
    change_json(folder / "model.json", drop=["checksums"])
    return folder


@pytest.mark.filterwarnings("default")
def test_a_folder_without_checksums_loads_with_a_warning(old_folder):
    with pytest.warns(UserWarning, match="model.json has no checksums"):
        ob.load(old_folder)


@pytest.mark.parametrize("name", MODELS)
def test_loads_bit_for_bit_what_was_saved(name, tmp_path, tokenizer):
    model = MODELS[name]()
    ob.save(tmp_path / "m", model, tokenizer, {"task": {"name": "t"}})
    loaded = ob.load(tmp_path / "m")
    assert type(loaded.model) is type(model)
    config = getattr(model, "encoder", model).config
    assert loaded.config == config == loaded.encoder.config
    assert model_folder.describe(loaded.model) == model_folder.describe(model)
    assert loaded.settings["task"] == {"name": "t"}
    assert loaded.tokenizer.vocab == VOCAB and loaded.tokenizer.do_lower_case is False
    for old, new in zip(model.weights, loaded.model.weights, strict=True):
        old, new = keras.ops.convert_to_numpy(old), keras.ops.convert_to_numpy(new)
        assert old.tobytes() == new.tobytes()


def test_half_precision_is_half_as_large_and_loads_as_any_other(folder, tmp_path):
    whole = ob.load(folder)
    model_folder.save(tmp_path / "half", whole.model, whole.tokenizer, whole.settings, half=True)
    sizes = [(f / "weights.safetensors").stat().st_size for f in (folder, tmp_path / "half")]
    assert sizes[0] - sizes[1] > 0.95 * 2 * whole.model.count_params()  # of 4 bytes each
    halved = ob.load(tmp_path / "half")
    for variable, other in zip(whole.model.weights, halved.model.weights, strict=True):
        assert other.dtype == "float32"
        np.testing.assert_array_equal(other, variable.numpy().astype("float16"))
    whole.model.weights[0].assign(whole.model.weights[0] + 1e6)
    with pytest.raises(UserError, match="in 16 bits, holds numbers that are infinite"):
        model_folder.save(tmp_path / "large", whole.model, whole.tokenizer, half=True)
    assert not (tmp_path / "large").exists()


def test_a_compiled_model_is_saved_without_its_optimiser(tmp_path, tokenizer):
    model = ob.BertClassifier(ob.BertEncoder(CONFIG), 2)
    model.compile(optimizer=ob.BertAdamW(1e-3))
    model.optimizer.build(model.trainable_variables)
    ob.save(tmp_path / "m", model, tokenizer)
    assert model.optimizer is not None
    ob.load(tmp_path / "m")


def test_an_existing_folder_is_kept_unless_overwritten(folder, tokenizer):
    before = (folder / "model.json").read_text()
    with pytest.raises(UserError, match="exists already"):
        ob.save(folder, ob.BertEncoder(CONFIG), tokenizer)
    assert (folder / "model.json").read_text() == before
    # Checksums among the settings are those of the other folder.
    ob.save(folder, ob.BertEncoder(CONFIG), tokenizer, json.loads(before), overwrite=True)
    assert ob.load(folder).head == "none"
    assert sorted(path.name for path in folder.parent.iterdir()) == ["m", "m.~1~"]
    assert (folder.parent / "m.~1~" / "model.json").read_text() == before


def test_more_rows_than_pieces_is_a_warning_fewer_an_error(old_folder):
    vocab = old_folder / "vocab.txt"
    vocab.write_text("\n".join(VOCAB[:-2]) + "\n")
    with pytest.warns(UserWarning, match="2 rows"):
        ob.load(old_folder)
    vocab.write_text("\n".join([*VOCAB, "f"]) + "\n")
    with pytest.raises(UserError, match=r"vocab.txt: 11 entries, but the model's vocab_size is 10"):
        ob.load(old_folder)


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"head": "classifier"}, "model.json: head='classifier'; it is one of none, pretraining"),
        ({"problem": "ranking"}, "model.json: problem='ranking'; it is one of"),
        ({"head": "none", "num_labels": "2"}, "model.json: num_labels must be a positive"),
        ({"num_labels": 0}, "model.json: num_labels must be a positive whole number"),
        ({"num_labels": 4}, "labels has 3 entries, num_labels is 4"),
        ({"labels": 5}, "model.json: labels must be a list, not 5"),
        ({"labels": ["a", "b", "a"]}, "model.json: labels: a is there twice"),
        ({"labels": ["1", "b", 1]}, "model.json: labels: 1 is there twice"),
        ({"labels": "abc"}, 'model.json: labels must be a list, not "abc"'),
        ({"labels": ["a", None, "b"]}, r"model.json: labels\[1\] must be a text or a whole number"),
        ({"do_lower_case": "no"}, "model.json: do_lower_case must be true or false"),
        # From the configuration.
        ({"num_hidden_layers": 2}, "weights.safetensors.* layer_1/attention/query/kernel is None"),
        ({"intermediate_size": 16}, r"safetensors.* layer_0/inter.* is .*, expected \(8, 16\)"),
        ({"hidden_size": 9}, "bert_config.json.*num_attention_heads"),
        ({"hiden_size": 8}, "bert_config.json: unknown field hiden_size"),
        ({"layer_norm_eps": float("nan")}, "bert_config.json: .*(number)"),
        ({"layer_norm_eps": float("-inf")}, "bert_config.json: .*(number)"),
        # The model is not built: its memory is looked at.
        ({"hidden_size": 200_000, "num_attention_heads": 1}, "describes a model of"),
        ({"num_hidden_layers": 20_000}, "says 20,000 layers; at most 299 are read"),
        ({"vocab_size": 2_000_000_000}, "describes a model of"),
        ({"hidden_size": 10**400}, r"must be below 2\*\*31"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*rows of the embedding table")
def test_a_wrong_field_is_named(old_folder, fields, message):
    of_model = fields.keys() <= {"head", "problem", "num_labels", "labels", "do_lower_case"}
    change_json(old_folder / ("model.json" if of_model else "bert_config.json"), **fields)
    tracemalloc.start()
    with pytest.raises(UserError, match=message):
        ob.load(old_folder)
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_must_be_finite(old_folder, value):
    tensors = load_file(old_folder / "weights.safetensors")
    tensors["head/bias"][0] = value
    save_file(tensors, old_folder / "weights.safetensors")
    with pytest.raises(UserError, match=r"head/bias holds numbers that are infinite or NaN"):
        ob.load(old_folder)


@pytest.mark.parametrize("name", ["gone.txt", "sub/vocab.txt", "x" * 300])
def test_a_file_that_has_a_checksum_must_be_there(folder, name):
    path = folder / "model.json"
    fields = json.loads(path.read_text())
    fields["checksums"][name] = "00000000"
    path.write_text(json.dumps(fields))
    with pytest.raises(UserError, match="missing, but model.json has its checksum"):
        ob.load(folder)


def test_weights_of_a_deeper_model_are_an_error(folder, tmp_path, tokenizer):
    deeper = ob.BertConfig.from_dict({**CONFIG.to_dict(), "num_hidden_layers": 2})
    ob.save(tmp_path / "d", ob.BertClassifier(ob.BertEncoder(deeper), 3), tokenizer)
    (tmp_path / "d" / "weights.safetensors").replace(folder / "weights.safetensors")
    with pytest.raises(UserError, match="safetensors: its checksum is not the one in model.json"):
        ob.load(folder)
    change_json(folder / "model.json", drop=["checksums"])
    with pytest.raises(UserError, match="layer_1/.* is .*, expected None"):
        ob.load(folder)


@pytest.mark.parametrize(
    "name", ["bert_config.json", "model.json", "vocab.txt", "weights.safetensors"]
)
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(UserError, match=name):
        ob.load(folder)
    if name == "vocab.txt":  # a model without one has no casing; checksums tell of it
        change_json(folder / "model.json", do_lower_case=None)
        with pytest.raises(UserError, match="model.json"):
            ob.load(folder)


def test_foreign_models_and_missing_folders(tmp_path):
    with pytest.raises(UserError, match="no such folder"):
        ob.load(tmp_path / "absent")
    with pytest.raises(UserError, match="Sequential"):
        ob.save(tmp_path / "m", keras.Sequential(), None)
    assert not (tmp_path / "m").exists()


def test_without_a_vocabulary(tmp_path):
    encoder = ob.BertEncoder(CONFIG)
    ob.save(tmp_path / "m", encoder, None)
    loaded = ob.load(tmp_path / "m")
    assert loaded.tokenizer is None and loaded.settings["do_lower_case"] is None
    found, expected = (x(np.ones((1, 4)))["pooled_output"] for x in (loaded.encoder, encoder))
    np.testing.assert_array_equal(*map(keras.ops.convert_to_numpy, (found, expected)))


def test_the_weights_may_be_read_by_whoever_may_read_the_rest(folder):
    assert len({path.stat().st_mode for path in folder.iterdir()}) == 1
