"""Vectors of texts as a folder of sentence-transformers says, by hand and by that library."""

import json
import random
import warnings

import numpy as np
import pytest
import tensorflow as tf
import tiny
from safetensors.numpy import save_file
from tiny import SPECIAL

import official_bert as ob
from official_bert import UserError
from official_bert.checkpoints.hugging_face import huggingface
from official_bert.checkpoints.sentence_vectors import POOLINGS, SentenceVectors
from official_bert.export import exports

WORDS = ["the", "river", "runs", "to", "a", "boat", "query", ":", ",", "##s", "The"]
TEXTS = ["the river runs to a boat", "boat", "a, the: river rivers " * 9, "The boat"]
LENGTH = 16


@pytest.fixture(scope="module", autouse=True)
def operation_by_operation():
    """To trace what is compiled would take three times as long as these tests."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture(scope="module")
def encoder():
    return tiny.encoder([*SPECIAL, *WORDS])


@pytest.fixture
def written(encoder, tmp_path):
    """Return written(pooling, modules after it, ...) -> a folder."""

    def write(pooling, steps=(), lower=False, prompts=None, default=None, inner="", **sentence):
        tokenizer = ob.BertTokenizer([*SPECIAL, *WORDS], do_lower_case=False)
        folder = tmp_path / f"st{len(list(tmp_path.iterdir()))}"
        huggingface.export_huggingface(folder / inner, encoder, tokenizer)
        found = [("Transformer", inner), ("Pooling", "1_Pooling"), *steps]
        modules = [
            {"idx": i, "name": str(i), "path": path,
             "type": name if "." in name else f"sentence_transformers.models.{name}"}
            for i, (name, path) in enumerate(found)
        ]  # fmt: skip
        (folder / "1_Pooling").mkdir(exist_ok=True)
        for name, fields in {
            "modules.json": modules,
            "1_Pooling/config.json": {"word_embedding_dimension": 8, **pooling},
            f"{inner}/sentence_bert_config.json".strip("/"): {
                "max_seq_length": LENGTH, "do_lower_case": lower, **sentence,
            },
            "config_sentence_transformers.json": {
                "prompts": prompts or {}, "default_prompt_name": default,
            },
        }.items():  # fmt: skip
            (folder / name).write_text(json.dumps(fields))
        return folder

    return write


def dense(folder, path, outputs, activation="torch.nn.modules.activation.Tanh", inputs=8, **fields):
    (folder / path).mkdir()
    numbers = np.random.default_rng(outputs)
    tensors = {
        "linear.weight": numbers.normal(size=(outputs, inputs)).astype("float32"),
        "linear.bias": numbers.normal(size=outputs).astype("float32"),
    }
    config = {"in_features": inputs, "out_features": outputs, "bias": True}
    config |= {"activation_function": activation, **fields}
    if not config["bias"]:
        del tensors["linear.bias"]
    save_file(tensors, folder / path / "model.safetensors")
    (folder / path / "config.json").write_text(json.dumps(config))
    return tensors


def states(loaded, text):
    batch = loaded.tokenizer(text, max_length=LENGTH, truncation="head")
    return loaded.encoder(batch)["sequence_output"].numpy()[0]


@pytest.mark.parametrize("pooling", POOLINGS)
def test_each_pooling_is_its_formula(pooling, written):
    loaded = ob.load(written({"pooling_mode": pooling}))
    for text, found in zip(TEXTS, loaded.embed(TEXTS), strict=True):
        x = states(loaded, text)
        place = np.arange(1, len(x) + 1)[:, None]
        expected = {
            "cls": x[0],
            "max": x.max(0),
            "mean": x.mean(0),
            "mean_sqrt_len_tokens": x.sum(0) / np.sqrt(len(x)),
            "weightedmean": (x * place).sum(0) / place.sum(),
            "lasttoken": x[-1],
        }[pooling]
        np.testing.assert_allclose(found, expected, atol=1e-5)
    other = loaded.embed(TEXTS, "mean" if pooling != "mean" else "max")
    assert not np.allclose(other, loaded.embed(TEXTS), atol=1e-3)
    assert f"as modules.json says, {pooling}; up to 16 tokens" in str(loaded.report)


def test_flags_of_older_folders_dense_layers_and_length_1(written):
    flags = {"pooling_mode_max_tokens": True, "pooling_mode_cls_token": True}
    folder = written(flags, [("Dense", "2_Dense"), ("Normalize", "3_Normalize")], inner="0_BERT")
    layer = dense(folder, "2_Dense", 3, inputs=16)
    loaded = ob.load(folder)
    x = states(loaded, TEXTS[0])
    joined = np.concatenate([x[0], x.max(0)])
    expected = np.tanh(layer["linear.weight"] @ joined + layer["linear.bias"])
    unit = expected / np.linalg.norm(expected)
    np.testing.assert_allclose(loaded.embed(TEXTS[0]), unit, atol=1e-5)
    np.testing.assert_allclose(loaded.embed(TEXTS[0], normalize=False), expected, atol=1e-5)
    np.testing.assert_allclose(loaded.embed(TEXTS[0], "cls"), x[0], atol=1e-5)
    assert "cls and max, a dense layer to 3 (tanh), normalize" in str(loaded.report)


def test_prompts_and_lower_case(written):
    prompts = {"query": "query: ", "none": ""}
    loaded = ob.load(
        written({"include_prompt": False}, prompts=prompts, default="query", lower=True)
    )
    x = states(loaded, "query: the boat")
    np.testing.assert_allclose(loaded.embed("The boat"), x[3:].mean(0), atol=1e-5)
    for prompt in ("none", ""):
        found = loaded.embed("The boat", prompt=prompt)
        np.testing.assert_allclose(found, states(loaded, "the boat").mean(0), atol=1e-5)
    included = ob.load(written({}, prompts=prompts))
    np.testing.assert_allclose(included.embed("the boat", prompt="query"), x.mean(0), atol=1e-5)


def test_a_model_folder_keeps_what_it_can(written, tmp_path):
    loaded = ob.load(written({"pooling_mode": "max"}, [("Normalize", "2")], lower=True))
    ob.save(tmp_path / "m", loaded.model, loaded.tokenizer, loaded.settings)
    again = ob.load(tmp_path / "m")
    assert again.vectors == loaded.vectors and again.settings["max_seq_length"] == LENGTH
    np.testing.assert_array_equal(again.embed(TEXTS), loaded.embed(TEXTS))
    folder = written({"pooling_mode": "mean"}, [("Dense", "2_Dense")])
    dense(folder, "2_Dense", 4)
    with_dense = ob.load(folder)
    ob.save(tmp_path / "d", with_dense.model, with_dense.tokenizer, with_dense.settings)
    without = ob.load(tmp_path / "d")
    with pytest.raises(UserError, match=r"a dense layer to 4 \(tanh\) is not kept in a model fold"):
        without.embed(TEXTS)
    assert without.embed(TEXTS, "mean").shape == (4, 8)


@pytest.mark.parametrize(
    "poolings", [["cls"], ["max", "mean"], pytest.param(["mean", "cls"], marks=pytest.mark.slow)]
)
def test_an_export_to_hugging_face_keeps_how_vectors_are_made(written, tmp_path, poolings):
    steps = [("Normalize", "2")] if poolings == ["cls"] else []
    made = written(
        {"pooling_mode": poolings, "include_prompt": False}, steps, lower=True,
        prompts={"q": "query: "}, default="q",
    )  # fmt: skip
    loaded = ob.load(made)
    out = tmp_path / "out"
    parts = loaded.model, loaded.tokenizer, loaded.settings
    assert not huggingface.export_huggingface(out, *parts)
    again = ob.load(out)
    assert again.vectors == loaded.vectors and again.settings["max_seq_length"] == LENGTH
    np.testing.assert_array_equal(again.embed(TEXTS), loaded.embed(TEXTS))
    folder = written({}, [("Dense", "2_Dense")])
    dense(folder, "2_Dense", 4)
    with_dense = ob.load(folder)
    parts = with_dense.model, with_dense.tokenizer, with_dense.settings
    (note,) = huggingface.export_huggingface(tmp_path / "without", *parts)
    assert "left out: how vectors of texts are made, modules.json (a dense layer to 4" in note
    assert not (tmp_path / "without" / "modules.json").exists()


@pytest.mark.parametrize(
    ("pooling", "steps", "message"),
    [
        ({"pooling_mode": "attention"}, [], r'config.json: pooling_mode \["attention"\]; known'),
        ({"pooling_mode_attention_tokens": True}, [], "pooling_mode_attention_tokens is set"),
        ({"word_embedding_dimension": 7}, [], "for vectors of 7, here they have 8"),
        ({}, [("LayerNorm", "2")], "the module LayerNorm is not computed here"),
        ({}, [("my_code.Router", "2")], "the module my_code.Router is not computed here"),
        ({}, [("Dense", "../2")], "outside of"),
        ({}, [("Dense", "narrow")], r"\(3, 7\).* expected .*\(3, 8\)"),
        ({}, [("Dense", "eight bits")], "linear.weight is int8: a weight must be"),
        ({}, [("Dense", "2_Dense")], "activation_function torch.nn.Softmax; known are"),
    ],
)
def test_what_is_not_computed_is_refused_where_it_is_asked_for(written, pooling, steps, message):
    folder = written(pooling, steps)
    if steps == [("Dense", "2_Dense")]:
        dense(folder, "2_Dense", 3, "torch.nn.Softmax")
    for path in [path for _, path in steps if path in ("narrow", "eight bits")]:
        tensors = dense(folder, path, 3, inputs=7 if path == "narrow" else 8)
        if path == "eight bits":
            bits = {name: array.astype("int8") for name, array in tensors.items()}
            save_file(bits, folder / path / "model.safetensors")
    loaded = ob.load(folder)  # the encoder is sound
    assert "embed needs a pooling: " in str(loaded.report)
    with pytest.raises(UserError, match=message):
        loaded.embed(TEXTS)
    assert loaded.embed(TEXTS, "mean").shape == (4, 8)


def test_exports_make_the_same_vectors_or_say_that_they_cannot(written, tmp_path):
    from tiny_served import Unsaved

    loaded = ob.load(written({"pooling_mode": "cls"}, [("Normalize", "2")]))
    ids = Unsaved(loaded)(text=["the boat"])["embedding"]
    np.testing.assert_allclose(ids[0], loaded.embed("the boat"), atol=1e-5)
    for pooling, steps, lower in (
        ({"pooling_mode": "max"}, [], False),
        ({"pooling_mode": ["cls", "mean"]}, [], False),
        ({}, [], True),
    ):
        loaded = ob.load(written(pooling, steps, lower))
        with pytest.raises(UserError, match=r"embed\(\) makes the others"):
            Unsaved(loaded)
        assert exports.choose_head(loaded, "features", "it") == "features"


def test_damaged_descriptions_are_named():
    fields = SentenceVectors().settings()
    for wrong, message in (
        ({"poolings": "mean"}, "poolings must be a list"),
        ({"poolings": ["median"]}, "poolings: each is one of"),
        ({"prompt": "x"}, 'the default "x" is none of its prompts'),
        ({"prompts": {"x": 5}}, "prompts: x must be a text"),
        ({"lower_case": 1}, "lower_case must be true or false"),
    ):
        with pytest.raises(UserError, match=f"here: {message}"):
            SentenceVectors.from_settings(fields | wrong, "here")


@pytest.mark.parity
def test_random_folders_agree_with_the_library(written):
    library = pytest.importorskip("sentence_transformers")
    draw = random.Random(0)
    for number in range(12):
        modes = draw.sample(POOLINGS, draw.choice([1, 1, 2, 3]))
        steps = draw.sample(
            [("Dense", f"{number}_Dense"), ("Normalize", "2_Normalize")], number % 3
        )
        prompts = {"q": "query: ", "long": "a, the query: "}
        folder = written(
            {"pooling_mode": modes, "include_prompt": number % 2 == 0},
            steps,
            lower=draw.random() < 0.5,
            prompts=prompts,
            default=draw.choice([None, "q", "long"]),
            max_seq_length=draw.choice([LENGTH, 9, None]),
        )
        if any(name == "Dense" for name, _ in steps):
            activation = draw.choice(["activation.Tanh", "activation.GELU", "linear.Identity"])
            full, bias = f"torch.nn.modules.{activation}", draw.random() < 0.5
            dense(folder, f"{number}_Dense", 5, full, 8 * len(modes), bias=bias)
        (folder / "2_Normalize").mkdir(exist_ok=True)
        theirs = library.SentenceTransformer(str(folder), device="cpu")
        ours = ob.load(folder)
        with warnings.catch_warnings(action="ignore"):  # texts are cut
            for prompt in (None, "q"):
                expected = theirs.encode(TEXTS, prompt_name=prompt)
                np.testing.assert_allclose(ours.embed(TEXTS, prompt=prompt), expected, atol=1e-5)
