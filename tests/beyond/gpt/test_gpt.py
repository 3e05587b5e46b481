"""OpenAI GPT: what its fields change, its auxiliary objective, its files of transformers."""

import dataclasses
import json

import numpy as np
import pytest
import served_models
from keras import ops
from tiny import VOCAB

import official_bert as ob
from experiments.beyond.gpt.model import AuxiliaryLanguageModel
from experiments.beyond.gpt.names import OPENAI_GPT
from official_bert.checkpoints import google
from official_bert.checkpoints.hugging_face import huggingface
from official_bert.common.errors import UserError
from official_bert.export.packed_encoder import PackedEncoder
from official_bert.heads import BertClassifier, BertMultipleChoice, build_head
from official_bert.losses import ModelWithLosses
from official_bert.tokenization.graph.in_graph_packing import from_padded
from tests.beyond.successor_tokenizers import word_ends


@pytest.fixture(scope="module")
def gpt(config):
    return config.replaced(**OPENAI_GPT, hidden_dropout_prob=0.0,
                               attention_probs_dropout_prob=0.0, initializer_range=0.3)  # fmt: skip


def of_vocabulary(gpt, tokenizer):
    sizes = {"vocab_size": tokenizer.vocab_size, "intermediate_size": 4 * gpt.hidden_size}
    return ob.BertEncoder(dataclasses.replace(gpt, **sizes), seed=0)


def test_fields_of_bert_are_as_before(config, gpt):
    assert not {"embedding_norm", "prediction_transform"} & set(config.to_dict())
    written = gpt.to_dict()
    assert written["embedding_norm"] is False and written["prediction_transform"] is False
    assert ob.BertConfig.from_dict(written) == gpt
    with pytest.raises(UserError, match="embedding_norm must be true or false, not 0"):
        ob.BertConfig.from_dict({"embedding_norm": 0})
    with pytest.raises(UserError, match="left_to_right"):
        ob.BertConfig.from_dict({"prediction_transform": False})


def test_embeddings_are_summed_and_the_head_is_the_table(gpt, pretraining_batch):
    model = ob.BertPretrainer(gpt, ("next_token",), seed=0)
    names = {variable.path.split("/", 1)[1] for variable in model.encoder.weights}
    assert not any("norm" in name and name.startswith("embeddings") for name in names)
    assert not model.masked_lm.weights
    batch = model.objectives[0].corrupt(model, pretraining_batch, None)
    encoded = model.encoder(batch)
    table = ops.convert_to_numpy(model.encoder.embeddings.word_embeddings)
    places = ops.convert_to_numpy(model.encoder.embeddings.position_embeddings)
    first = ops.convert_to_numpy(encoded["hidden_states"][0])
    np.testing.assert_allclose(first, table[batch["input_ids"]] + places[:16], rtol=1e-5)
    logits = model(pretraining_batch)["masked_lm_logits"]
    last = ops.convert_to_numpy(encoded["sequence_output"])
    np.testing.assert_allclose(logits, last[:, :-1] @ table.T, rtol=1e-4, atol=1e-4)
    with pytest.raises(UserError, match="leave output_bias out"):
        model.objectives[0].output_bias(model)


def test_served_encoders_compute_the_same(gpt, inputs):
    encoder = ob.BertEncoder(gpt, seed=0)
    expected = ops.convert_to_numpy(encoder(inputs)["sequence_output"])
    packed = from_padded(**inputs)
    found = PackedEncoder(encoder).encode(packed).numpy()
    np.testing.assert_allclose(found, expected[inputs["input_mask"] > 0], atol=1e-5)


def test_model_folders_keep_the_fields(gpt, inputs, tmp_path):
    model = ob.BertPretrainer(gpt, ("next_token",), seed=0)
    ob.save(tmp_path / "model", model, None)
    again = ob.load(tmp_path / "model")
    assert again.config == gpt and again.settings["objectives"] == ["next_token"]
    with pytest.raises(UserError, match="embedding_norm"):
        google.export_google(tmp_path / "google", again.model, None)


def test_the_loss_of_the_language_model_by_hand(gpt, inputs):
    student = BertClassifier(ob.BertEncoder(gpt, seed=0), 3, seed=1)
    model = AuxiliaryLanguageModel(student, weight=0.25)
    weights = np.ones(8, "float32")
    weights[3] = 0
    batch = {**inputs, "label_ids": np.arange(8, dtype="int32") % 3, "example_weights": weights}
    outputs = model(batch, training=True, seed=np.array([1, 2], "int32"))
    encoded = student.encoder(inputs)
    table = ops.convert_to_numpy(student.encoder.embeddings.word_embeddings)
    logits = ops.convert_to_numpy(encoded["sequence_output"]).astype("float64") @ table.T
    log_probabilities = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    ids, mask = inputs["input_ids"], inputs["input_mask"]
    rows = [
        -np.mean([log_probabilities[row, i, ids[row, i + 1]] for i in range(mask[row].sum() - 1)])
        for row in range(8)
    ]
    np.testing.assert_allclose(outputs["lm_losses"], rows, rtol=1e-4)
    terms = model.loss_terms(batch, outputs)
    total, weight = (float(x) for x in terms["lm_loss"])
    np.testing.assert_allclose([total / weight, weight], [np.delete(rows, 3).mean(), 7], rtol=1e-4)
    assert model.loss_weights["lm_loss"] == 0.25
    # In evaluation it is the student alone.
    alone = model(batch)
    assert set(alone) == {"logits"} and "lm_loss" not in model.loss_terms(batch, alone)
    np.testing.assert_allclose(alone["logits"], student(batch)["logits"])
    np.testing.assert_allclose(outputs["logits"], alone["logits"], rtol=1e-5)  # no dropout


@pytest.mark.parametrize(
    ("head", "shape"),
    [
        ({"head": "span"}, (8, 16)),
        ({"head": "tagging", "num_labels": 3}, (8, 16)),
        ({"head": "multiple_choice"}, (4, 2, 16)),
        ({"head": "classification", "num_labels": 3, "windows": "mean"}, (4, 2, 16)),
    ],
)
def test_every_head_can_have_it(gpt, inputs, head, shape):
    batch = {name: x.reshape(shape) for name, x in inputs.items()}
    model = AuxiliaryLanguageModel(build_head(ob.BertEncoder(gpt, seed=0), head, seed=1))
    outputs = model(batch, training=True)
    assert tuple(outputs["lm_losses"].shape) == shape[:1]
    assert set(outputs) == {*model.student(batch), "lm_losses"}


def test_a_model_that_sees_the_next_token_is_refused(config):
    with pytest.raises(UserError, match="lm_loss_weight.*bidirectional"):
        AuxiliaryLanguageModel(BertMultipleChoice(ob.BertEncoder(config, seed=0)))
    assert issubclass(AuxiliaryLanguageModel, ModelWithLosses)


def test_folders_of_transformers(tmp_path):
    from safetensors.numpy import save_file

    rng = np.random.default_rng(0)
    shapes = {"tokens_embed.weight": (7, 8), "positions_embed.weight": (12, 8)}
    for name, shape in {
        "attn.c_attn": (8, 24), "attn.c_proj": (8, 8), "mlp.c_fc": (8, 32), "mlp.c_proj": (32, 8)
    }.items():  # fmt: skip
        shapes |= {f"h.0.{name}.weight": shape, f"h.0.{name}.bias": shape[1:]}
    for name in ("ln_1", "ln_2"):
        shapes |= {f"h.0.{name}.weight": (8,), f"h.0.{name}.bias": (8,)}
    shapes["h.0.attn.bias"] = (1, 1, 12, 12)  # the causal mask that older files have
    tensors = {name: rng.normal(size=shape).astype("float32") for name, shape in shapes.items()}
    save_file(tensors, tmp_path / "model.safetensors")
    config = {
        "model_type": "openai-gpt", "architectures": ["OpenAIGPTModel"], "vocab_size": 7,
        "n_positions": 12, "n_embd": 8, "n_layer": 1, "n_head": 2, "afn": "gelu",
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    loaded = huggingface.import_huggingface(tmp_path)
    assert loaded.config.vocab_size == 10 and loaded.config.attention_direction == "left_to_right"
    assert loaded.report.left_out == [("h.0.attn.bias", "no part of this model")]
    table = ops.convert_to_numpy(loaded.encoder.embeddings.word_embeddings)
    np.testing.assert_array_equal(table[:7], tensors["tokens_embed.weight"])
    assert 0 < np.abs(table[7:]).max() < 0.1
    kernel = ops.convert_to_numpy(loaded.encoder.blocks[0].attention.key.kernel)
    np.testing.assert_array_equal(kernel, tensors["h.0.attn.c_attn.weight"][:, 8:16])
    again = huggingface.import_huggingface(tmp_path)
    np.testing.assert_array_equal(again.encoder.embeddings.word_embeddings, table)

    (tmp_path / "config.json").write_text(json.dumps({**config, "afn": "silu"}))
    with pytest.raises(UserError, match="afn 'silu'"):
        huggingface.import_huggingface(tmp_path)


@pytest.mark.parametrize("pieces", ["byte pairs", "WordPiece"])
def test_exports_keep_the_tokeniser_and_the_rows_of_its_tokens(gpt, pieces, tmp_path):
    of_gpt = word_ends(["low", "lower"], "st")
    tokenizer = of_gpt if pieces == "byte pairs" else ob.BertTokenizer(VOCAB)
    encoder = of_vocabulary(gpt, tokenizer)
    assert huggingface.export_huggingface(tmp_path / "gpt", encoder, tokenizer) == []
    for without in ((), ("tokenizer.json",)):  # as older versions of transformers write folders
        for name in without:
            (tmp_path / "gpt" / name).unlink()
        loaded = huggingface.import_huggingface(tmp_path / "gpt")
        assert loaded.tokenizer.vocab == tokenizer.vocab
        text = " ".join(tokenizer.readable[5:])  # theirs finds special tokens in texts
        assert loaded.tokenizer.encode(text) == tokenizer.encode(text)
        assert loaded.config == encoder.config.padded_by(tokenizer)
        for found, expected in zip(loaded.encoder.weights, encoder.weights, strict=True):
            np.testing.assert_array_equal(found, expected)
    assert (tmp_path / "gpt" / "merges.txt").exists() == (tokenizer is of_gpt)


@pytest.mark.parametrize("pairs", [None, ["low", "", "lo wer"]])
def test_texts_are_served_as_training_reads_them(gpt, pairs):
    pytest.importorskip("tensorflow")
    from tiny_served import Unsaved

    tokenizer = word_ends(["low", "lower"], "st")
    texts = ["Lower, lowest", "", "low low low low low low low"]
    model = BertClassifier(of_vocabulary(gpt, tokenizer), 2, seed=1)
    settings = {"labels": ["no", "yes"], "input_fields": ["a", "b"][: 1 + bool(pairs)]}
    loaded = served_models.loaded(model, tokenizer, **settings)
    given = {"a": texts, "b": pairs} if pairs else {"a": texts}
    found = Unsaved(loaded, max_seq_length=8)(**given)["logits"]
    batch = tokenizer(texts, pairs, max_length=8, truncation="head")
    np.testing.assert_allclose(found, model(batch)["logits"], atol=1e-5)
