"""BertAdamW and its schedule against the formula of the paper in numpy."""

import functools
from unittest import mock

import keras
import numpy as np
import pytest
import tensorflow as tf

from official_bert import BertAdamW, BertClassifier, BertEncoder, BertLamb, WarmupLinearDecay

SHAPES = {"kernel": (7, 5), "bias": (5,), "gamma": (5,), "beta": (5,), "word_embeddings": (11, 3)}


def schedule(step, peak, warmup, total):
    return peak * step / warmup if step < warmup else peak * (1 - min(step, total) / total)


def reference(
    weights, gradients_of_steps, rate, clip=None, beta_2=0.999, corrected=False, lamb=False
):
    """Return the update rules in float64, written from the formulas of BERT, AdamW and LAMB."""
    weights = {name: value.astype("float64") for name, value in weights.items()}
    m, v = ({name: np.zeros_like(value) for name, value in weights.items()} for _ in range(2))
    for step, gradients in enumerate(gradients_of_steps):
        norm = np.sqrt(sum((g.astype("float64") ** 2).sum() for g in gradients.values()))
        for name, gradient in gradients.items():
            g = gradient.astype("float64") * (min(1, clip / norm) if clip else 1)
            m[name] = 0.9 * m[name] + 0.1 * g
            v[name] = beta_2 * v[name] + (1 - beta_2) * g**2
            of_m, of_v = (1 - 0.9 ** (step + 1), 1 - beta_2 ** (step + 1)) if corrected else (1, 1)
            update = m[name] / of_m / (np.sqrt(v[name] / of_v) + 1e-6)
            ratio = 1.0
            if name in ("kernel", "word_embeddings"):
                update = update + 0.01 * weights[name]
                if lamb:
                    ratio = np.linalg.norm(weights[name]) / np.linalg.norm(update)
            weights[name] = weights[name] - rate(step) * ratio * update
    return weights


def assert_steps(optimizer, steps, atol, method="apply_reduced", backend="tensorflow", **formula):
    """So many steps give the weights of `reference`; the backend's name chooses the kernel."""
    weights, gradients = random_steps(steps)
    variables = [keras.Variable(value, name=name) for name, value in weights.items()]
    optimizer.build(variables)
    with mock.patch.object(keras.backend, "backend", lambda: backend):
        for step in gradients:
            getattr(optimizer, method)([tf.constant(step[v.name]) for v in variables], variables)
    expected = reference(weights, gradients, **formula)
    for variable in variables:
        np.testing.assert_allclose(variable.numpy(), expected[variable.name], atol=atol)
    assert int(optimizer.iterations) == steps


def random_steps(steps):
    rng = np.random.default_rng(0)
    weights = {name: rng.normal(size=shape).astype("float32") for name, shape in SHAPES.items()}
    # Some steps above the clipping norm of 1 and some below.
    scales = np.where(np.arange(steps) % 3 == 0, 1e-2, 1.0)
    gradients = [
        {name: (s * rng.normal(size=shape)).astype("float32") for name, shape in SHAPES.items()}
        for s in scales
    ]
    return weights, gradients


@pytest.mark.parametrize("clip", [1.0, None])
@pytest.mark.parametrize("method", ["apply", "apply_reduced"])
def test_twenty_steps_equal_the_formula(method, clip):
    optimizer = BertAdamW(WarmupLinearDecay(1e-2, 5, 25), clip_norm=clip)
    rate = functools.partial(schedule, peak=1e-2, warmup=5, total=25)
    assert_steps(optimizer, 20, 1e-6, method, rate=rate, clip=clip)


CORRECTED = {"beta_2": 0.98, "bias_correction": True, "clip_norm": None}


@pytest.mark.parametrize("backend", ["tensorflow", "jax"])  # the fused kernel, the plain formula
@pytest.mark.parametrize(
    ("kind", "options", "formula"),
    [
        (BertAdamW, {}, {"clip": 1.0}),
        (BertAdamW, CORRECTED, {"beta_2": 0.98, "corrected": True}),  # it is AdamW
        (BertLamb, {"clip_norm": None}, {"corrected": True, "lamb": True}),
    ],
)
def test_each_rule_is_that_of_its_paper_in_both_kernels(kind, options, formula, backend):
    assert_steps(kind(1e-2, **options), 6, 5e-7, backend=backend, rate=lambda _: 1e-2, **formula)


@pytest.mark.parametrize("method", ["apply", "apply_reduced"])
def test_sparse_gradients_equal_dense_ones(method):
    """Row 1 is there twice: its sum is what is clipped, in `fit` and in the experiments."""
    table = np.random.default_rng(0).normal(size=(6, 4)).astype("float32")
    rows = np.random.default_rng(1).normal(size=(3, 4)).astype("float32")
    sparse = tf.IndexedSlices(tf.constant(rows), tf.constant([1, 4, 1]), tf.constant([6, 4]))
    results = []
    for gradient in (sparse, tf.convert_to_tensor(sparse)):
        names = ("word_embeddings", "kernel")
        variables = [keras.Variable(table, name=name) for name in names]
        optimizer = BertAdamW(1e-2, clip_norm=0.5, epsilon=0.1)
        getattr(optimizer, method)([gradient, tf.ones_like(table)], variables)
        results.append([variable.numpy() for variable in variables])
    np.testing.assert_array_equal(*results)


def test_rates_fall_from_the_head_to_the_embeddings(config):
    model = BertClassifier(BertEncoder(config), 2)
    variables = model.trainable_variables
    optimizer = BertAdamW(0.1, layer_decay=0.5, weight_decay=0.0, clip_norm=None)
    before = [variable.numpy() for variable in variables]
    optimizer.apply_reduced([tf.ones(variable.shape) for variable in variables], variables)
    moved = {
        variable.path: float(np.abs(variable.numpy() - old).max())
        for variable, old in zip(variables, before, strict=True)
    }
    full = moved["classifier/head/kernel"]
    for path, factor in (
        ("encoder/pooler/kernel", 1.0),
        ("encoder/layer_1/attention/query/kernel", 0.5),
        ("encoder/layer_0/output/bias", 0.25),
        ("encoder/embeddings/norm/gamma", 0.125),
    ):
        assert moved[path] == pytest.approx(factor * full, rel=1e-4), path


def test_weights_without_gradient_stay():
    used, unused = keras.Variable(np.ones(3, "float32")), keras.Variable(np.ones(3, "float32"))
    BertAdamW(0.1).apply_reduced([tf.ones(3), None], [used, unused])
    assert (unused.numpy() == 1).all() and (used.numpy() < 1).all()


def test_schedule():
    rate = WarmupLinearDecay(1e-4, 10_000, 1_000_000)
    for step in (0, 1, 9_999, 10_000, 500_000, 1_000_000, 1_000_001):
        expected = schedule(step, 1e-4, 10_000, 1_000_000)
        np.testing.assert_allclose(float(rate(step)), expected, rtol=1e-5, atol=1e-12)
    assert float(rate(0)) == 0
    np.testing.assert_allclose(float(rate(10_000)), 0.99e-4, rtol=1e-5)


def test_serialisation():
    optimizer = BertAdamW(WarmupLinearDecay(1e-3, 1, 10), clip_norm=0.5, beta_2=0.98)
    copy = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert copy.get_config() == optimizer.get_config()
