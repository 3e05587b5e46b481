"""README's and docs/library.md's code, and the table of docs/library.md, on this process' backend.

`make test`, `make test-jax` and `make test-torch` run this file on one backend each.
"""

import hashlib
import re
from pathlib import Path

import keras
import numpy as np
import pytest
import served_models
from keras import ops

import official_bert as ob
from official_bert.checkpoints.hugging_face.huggingface import export_huggingface
from official_bert.common.errors import UserError
from official_bert.predict import Model
from official_bert.randomness import dropout, fold_in, make_seed
from tests import guests

ROOT = Path(__file__).parents[2]
BACKEND = keras.backend.backend()
TEXTS = ["The answer is here, good!", "bad"]


def _python(page):
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)


def test_code_of_the_readme_gives_what_it_says():
    names, said = {}, []
    for line in _python("README.md")[0].splitlines():
        code, _, comment = line.partition("  # ")
        if re.match("['0-9]", comment):
            said.append(comment)
            assert repr(eval(code, names)) == comment
        else:
            exec(code, names)
    assert len(said) == 2


def test_code_of_the_library_page_runs(tmp_path, monkeypatch):
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz.!?"]
    vocab += [f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
    tokenizer = ob.BertTokenizer(vocab)
    encoder = ob.BertEncoder(
        ob.BertConfig(len(vocab), 8, 2, 2, 16, max_position_embeddings=64), seed=0
    )
    pretrained = ob.BertPretrainer(encoder)
    export_huggingface(tmp_path / "google-bert/bert-base-uncased", pretrained, tokenizer)
    spam = ob.BertClassifier(encoder, 2)
    ob.save(tmp_path / "runs/spam/model", spam, tokenizer, {"labels": ["ham", "spam"]})
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for number, block in enumerate(_python("docs/library.md")):
        if "import tensorflow" in block and BACKEND != "tensorflow":
            continue  # TensorFlow may be missing
        exec(compile(block, f"library.md block {number}", "exec"), names)


# --- The jobs of the table. Each raises where the backend cannot do it. ---


def _model(model, **settings):
    return Model.from_loaded(served_models.loaded(model, **settings))


def embed(folder):
    vectors = _model(served_models.make_encoder()).embed(TEXTS)
    assert vectors.shape == (2, 16) and np.isfinite(vectors).all()


def fill_mask(folder):
    model = _model(ob.BertPretrainer(served_models.make_encoder(), seed=1))
    assert len(model.fill_mask("good [MASK] here.")["masks"]) == 1


def generate(folder):
    encoder = served_models.make_encoder(attention_direction="left_to_right")
    model = _model(ob.BertPretrainer(encoder, objectives=("next_token",), seed=1))
    assert isinstance(model.generate("the answer", length=8), str)


def predict(folder):
    encoder, labels = served_models.make_encoder(), list(served_models.LABELS)
    one = _model(ob.BertClassifier(encoder, 3, seed=1), labels=labels)
    assert one.predict(TEXTS)[0]["label"] in labels
    several = _model(ob.BertClassifier(encoder, 3, "multi_label", seed=1), labels=labels)
    assert set(several.predict(TEXTS)[0]["labels"]) <= set(labels)
    value = _model(ob.BertClassifier(encoder, 1, "regression", seed=1))
    assert np.isfinite(value.predict(TEXTS)[0]["value"])
    tagger = _model(ob.BertTagger(encoder, 2, seed=1), labels=["O", "B-PER"])
    assert tagger.predict(TEXTS)
    span = _model(ob.BertSpan(encoder, seed=1), max_seq_length=32, max_query_length=8)
    assert "answer" in span.predict(["who is here"], ["The answer is here."])[0]
    choice = _model(ob.BertMultipleChoice(encoder, seed=1), max_seq_length=32)
    assert choice.predict(["who is"], [["good", "bad"]])[0]["choice"] in (0, 1)


def fit(folder):
    """Every head and the pre-trainer, two steps each."""
    tokenizer = ob.BertTokenizer(served_models.VOCAB)
    encoder = served_models.make_encoder()
    rows = tokenizer(["good", "bad"] * 4)
    length = rows["input_ids"].shape[1]
    tags = np.tile(np.array([[-1] + [1] * (length - 2) + [-1]]), (8, 1))
    choices = {name: np.stack([value, value], axis=1) for name, value in rows.items()}
    places = np.ones((8, 1), "int32")
    masked = rows | {
        "masked_lm_positions": places,
        "masked_lm_ids": places * 7,
        "masked_lm_weights": places.astype("float32"),
        "next_sentence_labels": places * 0,
    }
    for model, x, y in (
        (ob.BertClassifier(encoder, 2, seed=1), rows, np.arange(8) % 2),
        (ob.BertTagger(encoder, 2, seed=1), rows, tags),
        (ob.BertSpan(encoder, seed=1), rows, (np.ones(8, int), np.ones(8, int))),
        (ob.BertMultipleChoice(encoder, seed=1), choices, np.arange(8) % 2),
        (ob.BertPretrainer(encoder, seed=1), masked, None),
    ):
        model.compile(ob.BertAdamW(1e-3))
        before = ops.convert_to_numpy(encoder.trainable_variables[0]).copy()
        loss = model.fit(x, y, batch_size=4, verbose=0).history["loss"]
        assert np.isfinite(loss).all()
        assert (ops.convert_to_numpy(encoder.trainable_variables[0]) != before).any()


def keras_files(folder):
    model = ob.BertClassifier(served_models.make_encoder(), 3, seed=1)
    rows = ob.BertTokenizer(served_models.VOCAB)(TEXTS)
    expected = ops.convert_to_numpy(model(rows)["logits"])
    model.save(folder / "model.keras")
    found = keras.saving.load_model(folder / "model.keras")(rows)["logits"]
    np.testing.assert_allclose(ops.convert_to_numpy(found), expected, atol=1e-6)


def model_folders(folder):
    model = ob.BertClassifier(served_models.make_encoder(), 3, seed=1)
    settings = {"labels": list(served_models.LABELS)}
    ob.save(folder / "model", model, ob.BertTokenizer(served_models.VOCAB), settings)
    assert ob.load(folder / "model").predict("good")["label"] in served_models.LABELS


def saved_model(folder):
    from official_bert.export import export

    model_folders(folder)
    export(folder / "model", folder / "served")


def onnx(folder):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    _export_ids(folder, "onnx")


def litert(folder):
    if BACKEND == "tensorflow":
        pytest.importorskip("ai_edge_litert")
    _export_ids(folder, "litert")


def _export_ids(folder, format):
    from official_bert.export import export_ids

    model_folders(folder)
    export_ids(folder / "model", folder / format, format=format)


def experiments(folder):
    """Import what `experiments.pretrain`, `finetune` and `ablate` import for training."""
    import experiments.training.step.backend  # noqa: F401


JOBS = {
    "`load`, `save`, model folders": model_folders,
    "`embed`": embed,
    "`fill_mask`": fill_mask,
    "`predict` of every head": predict,
    "`generate`": generate,
    "`compile` and `fit` of every head and of pre-training": fit,
    "`.keras` files": keras_files,
    "`experiments.pretrain`, `finetune`, `ablate`": experiments,
    "export as a SavedModel": saved_model,
    "export as ONNX": onnx,
    "export as LiteRT": litert,
}
COLUMNS = ("tensorflow", "jax", "torch")


def _claims():
    page = (ROOT / "docs/library.md").read_text("utf-8")
    rows = re.findall(r"^\| (.+?) \| (yes|no) \| (yes|no) \| (yes|no) \|$", page, re.M)
    return {job: dict(zip(COLUMNS, answers, strict=True))[BACKEND] for job, *answers in rows}


def test_the_table_of_backends_names_every_job():
    assert list(_claims()) == list(JOBS)


@pytest.mark.filterwarnings("error")  # Keras warns of a softmax over an axis of size 1
def test_symbolic_outputs_have_the_shapes_of_real_ones():
    """PyTorch's placeholder for an unknown length may be longer than the model has positions."""
    encoder = served_models.make_encoder()
    found = encoder(keras.Input((None,), dtype="int32"))
    alone = encoder(keras.Input(batch_shape=(1, None), dtype="int32"))["sequence_output"]
    assert alone.shape == (1, None, 16)
    real = encoder(np.ones((2, 5), "int32"))
    for name in ("sequence_output", "pooled_output"):
        assert found[name].shape[-1] == real[name].shape[-1] == 16
        assert len(found[name].shape) == len(real[name].shape)
        assert found[name].dtype == keras.backend.standardize_dtype(real[name].dtype)
    assert len(found["hidden_states"]) == len(real["hidden_states"])


def test_the_same_numbers_are_dropped_on_every_backend():
    """The digest is of the numbers that `test_place_hash` computes by hand."""
    found = hashlib.sha256()
    for shape in ((5,), (3, 5, 20), (2, 64), (7, 128), (3, 2, 192), (11, 300)):
        for run, step in ((5, 7), (2**30 - 1, 2**31 - 1)):
            dropped = dropout(ops.ones(shape), 0.1, fold_in(make_seed(run, step), 3))
            found.update(np.float32(ops.convert_to_numpy(dropped)).tobytes())
    assert found.hexdigest()[:16] == "bddb5cb814239d3b"


# On TensorFlow files of their own try these.
ALSO = ["`compile` and `fit` of every head and of pre-training"] * (BACKEND == "tensorflow")
EACH = [job for job in JOBS if job not in ALSO]


@pytest.mark.parametrize(
    "job",
    [
        *guests.names({*JOBS} - {"`generate`"}, EACH),
        *(pytest.param(job, marks=pytest.mark.slow) for job in ALSO),
    ],
)
def test_what_runs_on_this_backend(job, tmp_path):
    if _claims()[job] == "yes":
        JOBS[job](tmp_path)
    else:
        with pytest.raises(UserError, match="KERAS_BACKEND|need tensorflow"):
            JOBS[job](tmp_path)
