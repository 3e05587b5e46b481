"""ULMFiT's classifier and optimiser on a BERT, and what earlier versions stored of them."""

import doctest

import keras
import numpy as np
import pytest
import tensorflow as tf
from served_models import LABELS, TEXTS, features, loaded, make_encoder, numpy_logits
from tiny_served import Unsaved

from experiments.beyond.ulmfit import optimizer as of_ulmfit
from experiments.beyond.ulmfit.classifier import ConcatPoolingClassifier
from experiments.beyond.ulmfit.optimizer import GradualUnfreezing, SlantedTriangular
from experiments.training.step.trainer_state import StepOptions
from official_bert import BertAdamW, BertClassifier, BertEncoder, UserError
from official_bert.export.formats import id_export
from official_bert.export.formats.id_export import export_ids
from official_bert.heads import build_head
from official_bert.optimization import optimizer


def test_concat_pooling_reads_the_maximum_and_the_mean_too(config, inputs):
    model = ConcatPoolingClassifier(BertEncoder(config, seed=0), 3, "multi_label", seed=1)
    encoded = {name: np.asarray(x) for name, x in model.encoder(inputs).items() if "output" in name}
    vectors = []
    for row, mask in enumerate(inputs["input_mask"] > 0):
        tokens = encoded["sequence_output"][row][mask]
        vectors.append([*encoded["pooled_output"][row], *tokens.max(axis=0), *tokens.mean(axis=0)])
    expected = np.array(vectors) @ np.asarray(model.head.kernel)
    np.testing.assert_allclose(model(inputs)["logits"], expected, rtol=1e-4, atol=1e-6)
    empty = {**inputs, "input_mask": np.zeros_like(inputs["input_mask"])}  # rows that fill a inputs
    assert np.isfinite(model(empty)["logits"]).all()


@pytest.mark.parametrize("method", ["apply", "apply_reduced"])
def test_parts_are_unfrozen_from_the_head_to_the_embeddings(config, method):
    model = BertClassifier(BertEncoder(config), 2)
    variables = model.trainable_variables
    optimizer = GradualUnfreezing(0.1, unfreeze_every=2, weight_decay=0.1, clip_norm=1.0)
    first = {}
    for step in range(8):
        before = [variable.numpy() for variable in variables]
        getattr(optimizer, method)([tf.ones(variable.shape) for variable in variables], variables)
        for variable, old in zip(variables, before, strict=True):
            if (variable.numpy() != old).any():
                first.setdefault(variable.path, step)
    assert first["classifier/head/kernel"] == first["encoder/pooler/bias"] == 0
    assert first["encoder/layer_1/output/bias"] == 2
    assert first["encoder/layer_0/attention/query/kernel"] == 4
    assert first["encoder/embeddings/norm/gamma"] == 6
    # Frozen weights do not count where gradients are clipped.
    alone = GradualUnfreezing(0.1, unfreeze_every=2, clip_norm=1.0)
    norm = alone.apply_reduced([tf.ones(variable.shape) for variable in variables], variables)
    trained = [v for v in variables if "layer_" not in v.path and "embeddings" not in v.path]
    assert float(norm) ** 2 == pytest.approx(sum(np.prod(v.shape) for v in trained), rel=1e-5)


def test_slanted_triangular():
    """The formula of section 3.2, with cut_frac 0.1 and ratio 32."""
    rate, total = SlantedTriangular(0.01, 100, 1000), 1000
    for step in (0, 1, 99, 100, 101, 500, 1000):
        p = step / 100 if step < 100 else 1 - (step - 100) / (100 * (1 / 0.1 - 1))
        np.testing.assert_allclose(float(rate(step)), 0.01 * (1 + p * 31) / 32, rtol=1e-5)
    assert float(rate(total + 5)) == pytest.approx(0.01 / 32)


def test_an_option_marks_the_optimizer():
    assert type(optimizer("adamw", unfreeze_every=3)) is GradualUnfreezing
    assert type(optimizer("adamw", clip_norm=2.0)) is BertAdamW
    assert hash(StepOptions(optimizer_options=(("unfreeze_every", 3),)))


def test_what_earlier_versions_stored_is_read(config):
    old = {**BertAdamW(0.1, clip_norm=None).get_config(), "unfreeze_every": 0}
    assert type(BertAdamW.from_config(old)) is BertAdamW
    assert BertAdamW.from_config(old).clip_norm is None
    again = BertAdamW.from_config({**old, "unfreeze_every": 5})
    assert type(again) is GradualUnfreezing and again.unfreeze_every == 5
    old = BertClassifier(BertEncoder(config), 3).get_config()
    assert type(BertClassifier.from_config({**old, "concat_pooling": False})) is BertClassifier
    assert type(BertClassifier.from_config({**old, "concat_pooling": True})) is (
        ConcatPoolingClassifier
    )


def test_keras_files_hold_both(config, inputs, tmp_path):
    model = build_head(
        BertEncoder(config, seed=0),
        {"head": "classification", "num_labels": 2, "concat_pooling": True}, seed=1,
    )  # fmt: skip
    rate = SlantedTriangular(0.1, 2, 9)
    model.compile(GradualUnfreezing(rate, unfreeze_every=4))
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again(inputs)["logits"], model(inputs)["logits"])
    assert again.optimizer.unfreeze_every == 4


def test_the_classifier_is_served(tmp_path, monkeypatch):
    model = ConcatPoolingClassifier(make_encoder(), 3, problem="multi_label")
    multi = loaded(model, labels=LABELS)
    found = Unsaved(multi)(text=TEXTS)["logits"]
    expected = numpy_logits(model, features(multi.tokenizer, [(t,) for t in TEXTS], 64))
    np.testing.assert_allclose(found, expected, atol=1e-4)
    monkeypatch.setattr(id_export.importlib.util, "find_spec", lambda name: True)
    with pytest.raises(UserError, match="concat pooling, which is not written as ONNX"):
        export_ids(multi, tmp_path / "out", format="onnx")


def test_docstrings():
    failed, tried = doctest.testmod(of_ulmfit)
    assert tried and not failed
