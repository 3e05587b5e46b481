"""Adapters of others, and damaged ones: read right or refused by the field or tensor."""

import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import official_bert as ob
from experiments.beyond.lora import adapter
from experiments.beyond.lora.low_rank import adapt, merged
from official_bert.backend.variables import named_arrays, named_variables
from official_bert.checkpoints import model_folder
from official_bert.checkpoints.transfer import ImportReport
from official_bert.common.errors import UserError

SIZES = {
    "vocab_size": 30, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
    "intermediate_size": 12, "max_position_embeddings": 16,
}  # fmt: skip
QUERY = "bert.encoder.layer.0.attention.self.query."
WEIGHTS = "adapter_model.safetensors"


def write(folder, **fields):
    """Write a base and the adapter of a classifier of rank 2; return its arrays."""
    encoder = ob.BertEncoder(ob.BertConfig.from_dict({**SIZES, **fields}), seed=0)
    model_folder.save(folder / "base", encoder, None)
    model = ob.BertClassifier(encoder, 3, seed=1)
    adapt(encoder, 2, seed=2)
    for variable in encoder.weights:
        if variable.path.endswith("lora_kernel_b"):
            variable.assign(np.random.default_rng(0).normal(size=variable.shape))
    plain = merged(model)
    model_folder.save(folder / "tuned", plain, None, {"num_labels": 3})
    places = {name: str(folder / name) for name in ("base", "tuned", "adapter")}
    adapter.run(base=places["base"], model=places["tuned"], output=places["adapter"])
    return named_arrays(plain)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    return folder, write(folder), model_folder.load(folder / "base")


@pytest.fixture
def of_peft(made, tmp_path):
    """Return a copy of the adapter as peft writes it, without our `model.json`."""
    folder = shutil.copytree(made[0] / "adapter", tmp_path / "adapter")
    (folder / "model.json").unlink()
    return folder


def change(folder, **fields):
    path = folder / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def rewrite(folder, changed):
    tensors = {name.removeprefix("base_model.model."): x
               for name, x in load_file(folder / WEIGHTS).items()}  # fmt: skip
    changed(tensors)
    save_file({f"base_model.model.{name}": x for name, x in tensors.items()}, folder / WEIGHTS)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"r": 0}, "r=0, lora_alpha=2: out of range"),
        ({"lora_alpha": 10**400}, "out of range"),
        ({"r": 4}, r"shapes \[\(2, 8\), \(8, 2\)\], expected \[\(4, 8\), \(8, 4\)\]"),
        ({"peft_type": "LOKR"}, 'peft_type="LOKR": no more than LoRA'),
        ({"bias": "all"}, 'bias="all": no more than LoRA'),
        ({"init_lora_weights": "pissa"}, 'init_lora_weights="pissa": no more than LoRA'),
        ({"alora_invocation_tokens": [1]}, "alora_invocation_tokens"),
        ({"task_type": ["SEQ_CLS"]}, r"task_type=\['SEQ_CLS'\]; it is one of SEQ_CLS"),
    ],
)
def test_configurations_that_are_refused(made, of_peft, fields, message):
    change(of_peft, **fields)
    with pytest.raises(UserError, match=message):
        adapter.read(of_peft, made[2])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (lambda x: x.update({f"{QUERY}lora_A.weight": np.ones(16, "f4")}), r"shapes \[\(16,\)"),
        (lambda x: x.pop(f"{QUERY}lora_B.weight"), r"\(2, 8\), \(\)\], expected"),
        (lambda x: x[f"{QUERY}lora_A.weight"].fill(np.nan), "infinite or NaN"),
        (lambda x: x.update({"classifier.weight": np.ones((), "f4")}), r"has shape \[\]"),
        (lambda x: x.update({f"{QUERY}lora_B.bias": np.ones(8, "f4")}), "lora_B.bias: not known"),
    ],
)
def test_tensors_that_are_refused(made, of_peft, changed, message):
    rewrite(of_peft, changed)
    with pytest.raises(UserError, match=message):
        adapter.read(of_peft, made[2])


def test_half_precision_and_a_single_label(made, of_peft):
    _, expected, base = made
    rewrite(of_peft, lambda x: x.update({name: array.astype("f2") for name, array in x.items()}))
    model, settings = adapter.read(of_peft, base)
    assert settings["labels"] == ["0", "1", "2"]
    for name, array in named_arrays(model).items():
        np.testing.assert_allclose(array, expected[name], atol=1e-2)
    rewrite(of_peft, lambda x: x.update({n: x[n][:1] for n in x if n.startswith("classifier")}))
    _, settings = adapter.read(of_peft, base)
    assert settings == {"head": "classification", "num_labels": 1, "problem": "regression"}


def test_a_roberta_has_the_names_of_its_own(tmp_path):
    expected = write(tmp_path, type_vocab_size=1, pad_token_id=1)
    names = load_file(tmp_path / "adapter" / WEIGHTS)
    own = "base_model.model.roberta.encoder.layer.0.attention.self.query.lora_A.weight"
    assert own in names and not any(".bert." in name for name in names)
    assert "base_model.model.classifier.out_proj.weight" in names
    config = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    assert config["modules_to_save"] == ["classifier"]
    model, _ = adapter.read(tmp_path / "adapter", model_folder.load(tmp_path / "base"))
    for name, array in named_arrays(model).items():
        np.testing.assert_allclose(array, expected[name], atol=1e-5)


def test_the_dense_layer_of_a_classifier_comes_with_the_adapter(tmp_path):
    """DistilBERT's encoder alone has no such layer; `transformers`' classifier on it has."""
    expected = write(tmp_path, type_vocab_size=0, pooler_activation="relu")
    folder = tmp_path / "adapter"
    (folder / "model.json").unlink()
    whole = model_folder.load(tmp_path / "base")
    alone = ob.BertEncoder(whole.config.replaced(pooler_activation="none"), seed=3)
    before = named_arrays(whole.encoder)
    for name, variable in named_variables(alone).items():
        variable.assign(before[name])
    model_folder.save(tmp_path / "alone", alone, None)
    base = model_folder.load(tmp_path / "alone")
    dense = {"pre_classifier.weight": expected["pooler/kernel"].T.copy()}
    dense |= {"pre_classifier.bias": expected["pooler/bias"]}
    rewrite(folder, lambda x: x.update(dense))
    model, _ = adapter.read(folder, base)
    assert model.encoder.config.pooler_activation == "relu"
    for name, array in named_arrays(model).items():
        np.testing.assert_allclose(array, expected[name], atol=1e-5)
    whole.report = ImportReport("", initial=["pooler/kernel", "pooler/bias"])
    rewrite(folder, lambda x: [x.pop(name) for name in dense])
    for other in (base, whole):
        with pytest.raises(UserError, match=r"pre_classifier\.\w+ is missing, and the checkpoint"):
            adapter.read(folder, other)
    whole.report = None
    assert named_arrays(adapter.read(folder, whole)[0]).keys() == expected.keys()


def test_bases_that_have_no_adapter(tmp_path, made):
    folder = made[0]
    with pytest.raises(UserError, match="the blocks are those of"):
        adapter.run(base=str(folder / "tuned"), model=str(folder / "tuned"), output=f"{tmp_path}/x")
    encoder = ob.BertEncoder(
        ob.BertConfig.from_dict({**SIZES, "attention_direction": "left_to_right",
                                 "norm_first": True, "type_vocab_size": 0,
                                 "pooler_activation": "none"}), seed=0,
    )  # fmt: skip
    model_folder.save(tmp_path / "gpt", encoder, None)
    with pytest.raises(UserError, match="the products of gpt2 are not BERT's"):
        adapter.read(folder / "adapter", model_folder.load(tmp_path / "gpt"))
