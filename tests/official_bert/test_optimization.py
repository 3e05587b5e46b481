"""BertAdamW and its schedule against the formula of the paper in numpy."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from official_bert import BertAdamW, BertClassifier, BertEncoder, BertLamb, WarmupLinearDecay

SHAPES = {"kernel": (7, 5), "bias": (5,), "gamma": (5,), "beta": (5,), "word_embeddings": (11, 3)}


def schedule(step, peak, warmup, total):
    return peak * step / warmup if step < warmup else peak * (1 - min(step, total) / total)


def reference(weights, gradients_of_steps, peak, warmup, total, clip):
    """Return the update rule in float64, written from the formula."""
    weights = {name: value.astype("float64") for name, value in weights.items()}
    m = {name: np.zeros_like(value) for name, value in weights.items()}
    v = {name: np.zeros_like(value) for name, value in weights.items()}
    for step, gradients in enumerate(gradients_of_steps):
        norm = np.sqrt(sum((g.astype("float64") ** 2).sum() for g in gradients.values()))
        for name, gradient in gradients.items():
            g = gradient.astype("float64") * (min(1, clip / norm) if clip else 1)
            m[name] = 0.9 * m[name] + 0.1 * g
            v[name] = 0.999 * v[name] + 0.001 * g**2
            decay = 0.01 * weights[name] if name in ("kernel", "word_embeddings") else 0
            update = m[name] / (np.sqrt(v[name]) + 1e-6) + decay
            weights[name] = weights[name] - schedule(step, peak, warmup, total) * update
    return weights


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
    weights, gradients = random_steps(20)
    variables = {name: keras.Variable(value, name=name) for name, value in weights.items()}
    optimizer = BertAdamW(WarmupLinearDecay(1e-2, 5, 25), clip_norm=clip)
    for step in gradients:
        values = [tf.constant(step[name]) for name in variables]
        getattr(optimizer, method)(values, list(variables.values()))
    expected = reference(weights, gradients, 1e-2, 5, 25, clip)
    for name, variable in variables.items():
        np.testing.assert_allclose(variable.numpy(), expected[name], atol=1e-6)
    assert int(optimizer.iterations) == 20


def test_with_bias_correction_it_is_adamw(monkeypatch):
    weights, gradients = random_steps(6)
    for backend in ("tensorflow", "jax"):  # the fused kernel, and the formula as it is written
        variables = {name: keras.Variable(value, name=name) for name, value in weights.items()}
        optimizer = BertAdamW(1e-2, beta_2=0.98, clip_norm=None, bias_correction=True)
        monkeypatch.setattr(keras.backend, "backend", lambda: "tensorflow")
        optimizer.build(list(variables.values()))
        monkeypatch.setattr(keras.backend, "backend", lambda backend=backend: backend)
        w = {name: value.astype("float64") for name, value in weights.items()}
        m, v = ({name: np.zeros_like(value) for name, value in w.items()} for _ in range(2))
        for step, part in enumerate(gradients, 1):
            values = [tf.constant(part[name]) for name in variables]
            optimizer.apply_reduced(values, list(variables.values()))
            for name, g in part.items():
                m[name] = 0.9 * m[name] + 0.1 * g.astype("float64")
                v[name] = 0.98 * v[name] + 0.02 * g.astype("float64") ** 2
                root = np.sqrt(v[name] / (1 - 0.98**step))
                update = m[name] / (1 - 0.9**step) / (root + 1e-6)
                if name in ("kernel", "word_embeddings"):
                    update = update + 0.01 * w[name]
                w[name] = w[name] - 1e-2 * update
        for name, variable in variables.items():
            np.testing.assert_allclose(variable.numpy(), w[name], atol=2e-6)


def test_lamb_equals_the_formula_of_its_paper():
    weights, gradients = random_steps(6)
    variables = {name: keras.Variable(value, name=name) for name, value in weights.items()}
    optimizer = BertLamb(1e-2, clip_norm=None)
    w = {name: value.astype("float64") for name, value in weights.items()}
    m, v = ({name: np.zeros_like(value) for name, value in w.items()} for _ in range(2))
    for step, part in enumerate(gradients, 1):
        optimizer.apply_reduced([tf.constant(part[n]) for n in variables], list(variables.values()))
        for name, gradient in part.items():
            g = gradient.astype("float64")
            m[name] = 0.9 * m[name] + 0.1 * g
            v[name] = 0.999 * v[name] + 0.001 * g**2
            update = m[name] / (1 - 0.9**step)
            update = update / (np.sqrt(v[name] / (1 - 0.999**step)) + 1e-6)
            ratio = 1.0
            if name in ("kernel", "word_embeddings"):
                update = update + 0.01 * w[name]
                ratio = np.linalg.norm(w[name]) / np.linalg.norm(update)
            w[name] = w[name] - 1e-2 * ratio * update
    for name, variable in variables.items():
        np.testing.assert_allclose(variable.numpy(), w[name], atol=2e-6)


def test_plain_formula_and_fused_kernel_agree(monkeypatch):
    weights, gradients = random_steps(5)
    results = []
    for backend in ("tensorflow", "other"):
        variables = [keras.Variable(value, name=name) for name, value in weights.items()]
        optimizer = BertAdamW(1e-2)
        for step in gradients:
            # The update asks for the backend's name to choose the kernel.
            monkeypatch.setattr(
                "official_bert.optimization.keras.backend.backend", lambda name=backend: name
            )
            optimizer.apply_reduced([tf.constant(step[v.name]) for v in variables], variables)
            monkeypatch.undo()
        results.append([variable.numpy() for variable in variables])
    for fused, plain in zip(*results, strict=True):
        np.testing.assert_allclose(fused, plain, atol=3e-7, rtol=1e-6)


@pytest.mark.parametrize("method", ["apply", "apply_reduced"])
def test_sparse_gradients_equal_dense_ones(method):
    """Row 1 is there twice: its sum is what is clipped, in `fit` and in the experiments."""
    table = np.random.default_rng(0).normal(size=(6, 4)).astype("float32")
    rows = np.random.default_rng(1).normal(size=(3, 4)).astype("float32")
    sparse = tf.IndexedSlices(tf.constant(rows), tf.constant([1, 4, 1]), tf.constant([6, 4]))
    results = []
    for gradient in (sparse, tf.convert_to_tensor(sparse)):
        variables = [
            keras.Variable(value, name=name)
            for name, value in (("word_embeddings", table), ("kernel", table))
        ]
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
