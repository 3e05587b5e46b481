"""ONNX and LiteRT files answer ids as the models do that they were made from."""

import json

import numpy as np
import pytest
import served_models

import official_bert as ob
from official_bert.export import export_ids
from official_bert.export.answers import Answers
from official_bert.export.exports import choose_head
from official_bert.export.formats import id_export
from official_bert.export.settings import ServingSettings
from official_bert.predict import Model

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghij.", "##a", "##b"]
SHAPES = {
    "bidirectional": {"hidden_act": "relu"},
    "one segment": {"type_vocab_size": 1, "layer_norm_eps": 1e-5},
    "no segments": {"type_vocab_size": 0},
    "left to right": {"attention_direction": "left_to_right", "gelu_form": "tanh"},
}


@pytest.fixture
def onnx_file():
    pytest.importorskip("onnxruntime", reason="needs the extra onnx")
    pytest.importorskip("onnx", reason="needs the extra onnx")
    from official_bert.export.formats import onnx_file

    return onnx_file


@pytest.fixture
def litert_file():
    pytest.importorskip("ai_edge_litert", reason="needs the extra litert")
    pytest.importorskip("tensorflow")
    from official_bert.export.formats import litert_file

    return litert_file


def make_encoder(**fields):
    return served_models.make_encoder(VOCAB, **{"num_hidden_layers": 2, **fields})


def loaded(model, **settings):
    usual = {"max_seq_length": 24, "labels": ["x", "y", "z"]}
    return served_models.loaded(model, VOCAB, **{**usual, **settings})


def ask(file, path, model, **settings):
    """Return (a batch, what the file of a model answers to it)."""
    model = loaded(model)
    settings = ServingSettings.from_loaded(model, max_query_length=8, **settings)
    answers = Answers(model, choose_head(model, None, "the model"), settings)
    batch = id_export.example(answers, np.random.default_rng(1))
    written = path / f"{len(list(path.iterdir()))}-{file.FILE}"  # a test asks several models
    file.write(written, answers)
    return batch, file.run(written, batch)


def close(found, expected, atol=2e-5):
    np.testing.assert_allclose(found, np.asarray(expected), atol=atol)


def softmax(logits):
    shares = np.exp(logits - np.max(logits, axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)


def masked_words_of(model, batch):
    """Return probabilities [B, P, V] by the model as it is trained."""
    positions = batch["masked_lm_positions"]
    nothing = {"masked_lm_ids": positions * 0, "masked_lm_weights": positions * 0.0}
    return softmax(np.asarray(model(batch | nothing)["masked_lm_logits"])[..., : len(VOCAB)])


@pytest.mark.parametrize("shape", SHAPES)
def test_onnx_of_every_shape(onnx_file, tmp_path, shape):
    model = ob.BertClassifier(make_encoder(**SHAPES[shape]), 3, seed=1)
    batch, answer = ask(onnx_file, tmp_path, model)
    close(answer["logits"], model(batch)["logits"])
    close(answer["probabilities"], softmax(model(batch)["logits"]))


def test_onnx_of_every_head(onnx_file, tmp_path):
    encoder = make_encoder()
    model = ob.BertClassifier(encoder, 3, problem="multi_label", bilstm=True, seed=1)
    batch, answer = ask(onnx_file, tmp_path, model)
    logits = np.asarray(model(batch)["logits"])
    close(answer["probabilities"], 1 / (1 + np.exp(-logits)))

    model = ob.BertClassifier(encoder, 1, problem="regression", seed=1)
    batch, answer = ask(onnx_file, tmp_path, model)
    close(answer["values"], model(batch)["logits"][:, 0])

    real = batch["input_mask"]
    model = ob.BertSpan(encoder, seed=1, bilstm=True)
    batch, answer = ask(onnx_file, tmp_path, model)
    for name, expected in model(batch).items():
        close(answer[name], expected * real)

    model = ob.BertTagger(encoder, 3, seed=1)
    batch, answer = ask(onnx_file, tmp_path, model)
    close(answer["logits"], model(batch)["logits"] * real[..., None])

    model = ob.BertMultipleChoice(encoder, seed=1)
    batch, answer = ask(onnx_file, tmp_path, model)
    assert batch["input_ids"].ndim == 3
    close(answer["probabilities"], softmax(model(batch)["logits"]))


def test_onnx_of_masked_words_offers_no_row_beyond_the_vocabulary(onnx_file, tmp_path):
    model = ob.BertPretrainer(make_encoder(vocab_size=len(VOCAB) + 5), ["masked_lm"])
    model.masked_lm.bias.assign(np.r_[np.zeros(len(VOCAB)), np.full(5, 9.0)])
    batch, answer = ask(onnx_file, tmp_path, model, top_k=4)
    expected = masked_words_of(model, batch)
    assert answer["token_ids"].shape == (4, 2, 4) and answer["token_ids"].dtype == np.int32
    close(answer["probabilities"], -np.sort(-expected)[..., :4])
    chosen = np.take_along_axis(expected, answer["token_ids"].astype(np.int64), axis=-1)
    close(chosen, answer["probabilities"])


def test_onnx_of_vectors(onnx_file, tmp_path):
    encoder = make_encoder(num_hidden_layers=4)
    options = {"layers": "concat_last_four", "normalize": True}
    batch, answer = ask(onnx_file, tmp_path, encoder, **options)
    states = [np.asarray(state) for state in encoder(batch)["hidden_states"]]
    real = batch["input_mask"][..., None]
    mean = (np.concatenate(states[1:], axis=-1) * real).sum(1) / real.sum(1)
    close(answer["embedding"], mean / np.linalg.norm(mean, axis=1, keepdims=True))

    batch, answer = ask(onnx_file, tmp_path, encoder, pooling="cls", layers="mean_all")
    close(answer["embedding"], (sum(states[1:]) / 4)[:, 0])

    path = export_ids(loaded(encoder), tmp_path / "out", head="features").path
    answer = onnx_file.run(path, batch)
    close(answer["features"], states[-1] * real)
    close(answer["pooled_output"], encoder(batch)["pooled_output"])


def test_int8_is_smaller_and_near(onnx_file, tmp_path):
    encoder = make_encoder(hidden_size=128, initializer_range=0.1)
    model = loaded(ob.BertPretrainer(encoder, ["masked_lm"]))
    exact = export_ids(model, tmp_path / "exact")
    rough = export_ids(model, tmp_path / "rough", precision="int8")
    assert rough.path.stat().st_size < 0.5 * exact.path.stat().st_size
    (far, most), (further, _) = (made.differences["probabilities"] for made in (exact, rough))
    assert far < 1e-5 * most < further < 0.1 * most


def test_onnx_runtime_joins_the_operators_of_a_rounded_product(onnx_file, tmp_path):
    import onnx
    import onnxruntime

    from official_bert.export.formats.onnx_graph import DenseNodes, Graph

    graph, rng = Graph(int8=True), np.random.default_rng(0)
    kernel, table = rng.normal(size=(8, 4)), rng.normal(size=(6, 4))
    x = DenseNodes(graph, kernel, np.ones(4))(graph.op("Cast", "x", to=onnx.TensorProto.FLOAT))
    graph.name(DenseNodes(graph, table, np.ones(6), transposed=True)(x), "y")
    model = graph.model({"x": ["rows", 8]}, {"y": (onnx.TensorProto.FLOAT, ["rows", 6])})
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "run.onnx")
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    run = [node.op_type for node in onnx.load(tmp_path / "run.onnx").graph.node]
    assert run == ["Cast", "DynamicQuantizeMatMul", "DynamicQuantizeMatMul"]
    given = rng.integers(-9, 9, (3, 8), np.int32)
    expected = (given @ kernel + 1) @ table.T + 1
    (found,) = session.run(None, {"x": given})
    close(found, expected, atol=0.03 * np.abs(expected).max())


INT8 = {"precision": "int8"}


def one_layer(**fields):
    return make_encoder(num_hidden_layers=1, **fields)


# Conversions take seconds: each shows several things at once.
@pytest.mark.parametrize(
    ("model", "options"),
    [
        (lambda: ob.BertMultipleChoice(one_layer(**SHAPES["one segment"]), seed=1), {}),
        pytest.param(lambda: ob.BertSpan(make_encoder(), seed=1), INT8, marks=pytest.mark.slow),
        pytest.param(
            lambda: ob.BertPretrainer(one_layer(), ["masked_lm"]), {"top_k": 3},
            marks=pytest.mark.slow,
        ),
    ],
)  # fmt: skip
def test_litert(litert_file, tmp_path, model, options):
    model = model()
    batch, answer = ask(litert_file, tmp_path, model, **options)
    if isinstance(model, ob.BertPretrainer):
        expected = {"probabilities": -np.sort(-masked_words_of(model, batch))[..., :3]}
    else:
        expected = {name: np.asarray(x) for name, x in model(batch).items()}
    for name, wanted in expected.items():
        if isinstance(model, ob.BertSpan):
            wanted = wanted * batch["input_mask"]
        close(answer[name], wanted, atol=0.1 * np.abs(wanted).max() if options == INT8 else 2e-5)


def test_the_folder_has_what_a_client_needs(onnx_file, tmp_path):
    model = loaded(ob.BertClassifier(make_encoder(), 3, seed=1))
    made = export_ids(model, tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir() if path.name[0] != "."}
    assert names == {"model.onnx", "tokenizer.json", "vocab.txt", "labels.txt", "serving.json"}
    described = json.loads((tmp_path / "out" / "serving.json").read_text())
    assert described["inputs"] == ["input_ids", "input_mask", "segment_ids"]
    assert described["outputs"] == ["logits", "probabilities"] == list(made.differences)
    with pytest.raises(ob.UserError, match="exists already"):
        export_ids(model, tmp_path / "out")

    tokenizers = pytest.importorskip("tokenizers")
    reader = tokenizers.Tokenizer.from_file(str(tmp_path / "out" / "tokenizer.json"))
    rows = reader.encode_batch(["a b", "c d e f."])
    batch = {
        "input_ids": [row.ids for row in rows],
        "input_mask": [row.attention_mask for row in rows],
        "segment_ids": [row.type_ids for row in rows],
    }
    batch = {name: np.array(value, np.int32) for name, value in batch.items()}
    answer = onnx_file.run(made.path, batch)["probabilities"]
    answers = Model.from_loaded(model).predict(["a b", "c d e f."])
    shares = [list(answer["probabilities"].values()) for answer in answers]
    close(answer, shares)


def test_a_file_that_answers_wrongly_is_not_left_there(onnx_file, tmp_path, monkeypatch):
    run = onnx_file.run
    monkeypatch.setattr(
        onnx_file, "run", lambda *asked: {name: x + 0.1 for name, x in run(*asked).items()}
    )
    with pytest.raises(ob.UserError, match="logits differs from the model folder's by up to 0.1"):
        export_ids(loaded(ob.BertClassifier(make_encoder(), 3, seed=1)), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": "bfloat16"}, "onnx: precision='bfloat16'; it is one of float32, int8"),
        ({"format": "tflite"}, "format='tflite'; it is one of onnx, litert"),
        ({"head": "span"}, "classification, embedding, features"),
        ({"labels": ["x"]}, "1 labels for a model of 3"),
        ({"format": "litert"}, "BiLSTM, which LiteRT does not run"),
        ({"format": "onnx"}, "mean pooling, which is not written as ONNX"),
    ],
)
def test_what_cannot_be_exported_is_refused(tmp_path, monkeypatch, options, message):
    monkeypatch.setattr(id_export.importlib.util, "find_spec", lambda name: True)
    model = loaded(ob.BertClassifier(make_encoder(), 3, bilstm=True, mean_pooling=True))
    with pytest.raises(ob.UserError, match=message):
        export_ids(model, tmp_path / "out", **options)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(id_export.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ob.UserError, match="pip install onnx onnxruntime$"):
        id_export.check_packages("onnx")
    with pytest.raises(ob.UserError, match="pip install tensorflow ai-edge-litert$"):
        id_export.check_packages("litert")
