"""The rules for JAX agree with the plain formulas, forward and backward."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from keras import ops

from official_bert.backend import jax_kernels, place_hash

X = jnp.asarray(np.random.default_rng(0).normal(0, 3, (4, 5, 16)), "float32")
KEYS = place_hash.keys(jnp.array([3, 4], jnp.int32))


def value_and_gradients(function, *inputs):
    def loss(*inputs):
        return jnp.sum(jnp.sin(function(*inputs)))

    return [function(*inputs), *jax.grad(loss, argnums=tuple(range(len(inputs))))(*inputs)]


def plain_layer_norm(x, gamma, beta):
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(jnp.square(centred), axis=-1, keepdims=True)
    return centred / jnp.sqrt(variance + 1e-12) * gamma + beta


def plain_cross_entropy(logits, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], axis=-1)[..., 0]


def compare(function, plain, *inputs):
    ours = value_and_gradients(jax.jit(function), *inputs)
    for a, b in zip(ours, value_and_gradients(plain, *inputs), strict=True):
        np.testing.assert_allclose(a, b, atol=2e-5, rtol=1e-4)


def test_gelu():
    compare(jax_kernels.gelu, lambda x: ops.gelu(x, approximate=False), X)


def test_layer_norm():
    gamma, beta = (jnp.asarray(np.random.default_rng(i).normal(size=16)) for i in (1, 2))
    compare(lambda *x: jax_kernels.layer_norm(*x, 1e-12), plain_layer_norm, X, gamma, beta)


@pytest.mark.parametrize("scale", [1.0, 200.0])
def test_cross_entropy(scale):
    labels = jnp.asarray(np.random.default_rng(2).integers(0, 16, (4, 5)), "int32")
    ours = value_and_gradients(lambda x: jax_kernels.cross_entropy(x, labels), scale * X)
    plain = value_and_gradients(lambda x: plain_cross_entropy(x, labels), scale * X)
    for a, b in zip(ours, plain, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5, rtol=1e-5)


def test_dropout_has_the_factors_of_the_hash_both_ways_and_stores_none():
    def dropped(x):
        return jax_kernels.dropout(x, 0.3, KEYS)

    found, back = jax.vjp(dropped, X)
    factors = place_hash.factors(X, 0.3, KEYS)
    np.testing.assert_array_equal(found, X * factors)
    np.testing.assert_array_equal(back(jnp.ones_like(X))[0], factors)
    kept = [x.shape for x in jax.tree.leaves(back)]
    assert X.shape not in kept and kept.count(()) >= 2


@pytest.mark.parametrize("function", [jax_kernels.gelu, lambda x: jax_kernels.layer_norm(
    x, jnp.ones(16), jnp.zeros(16), 1e-12
)])  # fmt: skip
def test_half_precision_in_and_out(function):
    half = X.astype("bfloat16")
    assert function(half).dtype == half.dtype
    near = function(half).astype("float32") - function(half.astype("float32"))
    assert float(jnp.abs(near).max()) < 0.05
    assert jax.grad(lambda x: function(x).sum())(half).dtype == half.dtype
