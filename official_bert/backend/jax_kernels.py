"""Rules for JAX behind functions that are written with `keras.ops` elsewhere.

Each decides what its backward pass keeps, since on a GPU a step waits for memory;
docs/distribution.md says what that saves. A test checks that each agrees with the plain formula.
"""

import functools
import math

import jax
import jax.numpy as jnp
from jax import lax

from official_bert.backend import place_hash


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def dropout(x, rate: float, keys):
    """Apply `randomness.dropout` by a seed's keys; the backward pass draws the mask anew."""
    return x * place_hash.factors(x, rate, keys)


def _dropout_backward(rate, keys, upstream):
    # The barrier hides from XLA that the forward pass has drawn the same mask.
    return dropout(upstream, rate, lax.optimization_barrier(keys)), None


dropout.defvjp(lambda x, rate, keys: (dropout(x, rate, keys), keys), _dropout_backward)


@jax.custom_vjp
def gelu(x):
    """Return x * Phi(x), the exact form, computed in float32; the backward pass keeps x alone."""
    wide = x.astype(jnp.float32)
    return (wide * _normal_cdf(wide)).astype(x.dtype)


def _normal_cdf(x):
    return 0.5 * (1 + lax.erf(x * 0.5**0.5))


def _gelu_backward(x, upstream):
    wide = x.astype(jnp.float32)
    density = jnp.exp(-0.5 * wide * wide) * (2 * math.pi) ** -0.5
    slope = _normal_cdf(wide) + wide * density
    return ((upstream.astype(jnp.float32) * slope).astype(x.dtype),)


gelu.defvjp(lambda x: (gelu(x), x), _gelu_backward)


@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def layer_norm(x, gamma, beta, epsilon: float):
    """Normalise over the last axis in float32; the backward pass keeps x, means and scales.

    Args:
      x: [..., H] of any float dtype, which is also the result's.
      gamma, beta: float32 [H].
      epsilon: added to the variance.
    """
    return _layer_norm_forward(x, gamma, beta, epsilon)[0]


def _layer_norm_forward(x, gamma, beta, epsilon):
    wide = x.astype(jnp.float32)
    mean = jnp.mean(wide, axis=-1, keepdims=True)
    if x.dtype == jnp.float32:
        variance = jnp.mean(jnp.square(wide - mean), axis=-1, keepdims=True)
    else:  # both sums in one reading; what float32 loses is far below what x was rounded by
        square = jnp.mean(wide * wide, axis=-1, keepdims=True)
        variance = jnp.maximum(square - mean * mean, 0.0)
    # The barriers make XLA store these two numbers a row; it would compute the sums again.
    mean, scale = lax.optimization_barrier((mean, lax.rsqrt(variance + epsilon)))
    y = ((wide - mean) * scale * gamma + beta).astype(x.dtype)
    return y, (x, gamma, mean, scale)


def _layer_norm_backward(epsilon, kept, upstream):
    x, gamma, mean, scale = kept
    rows = tuple(range(x.ndim - 1))

    def parts(x, upstream):
        return (x.astype(jnp.float32) - mean) * scale, upstream.astype(jnp.float32)

    normal, wide = parts(x, upstream)
    inner = wide * gamma
    along = jnp.mean(inner * normal, axis=-1, keepdims=True)
    to_x = scale * (inner - jnp.mean(inner, axis=-1, keepdims=True) - normal * along)
    # Sums over rows are kernels of their own, which read what is stored in half precision.
    normal, wide = parts(*lax.optimization_barrier((x, upstream)))
    return to_x.astype(x.dtype), jnp.sum(wide * normal, axis=rows), jnp.sum(wide, axis=rows)


layer_norm.defvjp(_layer_norm_forward, _layer_norm_backward)


@jax.custom_vjp
def cross_entropy(logits, labels):
    """Return -log softmax(logits)[label]: float32 [..., N], int32 [...] -> float32 [...].

    For GPUs, which write the gradient in half precision at once; on a CPU the plain formula takes a
    third less memory.
    """
    return _cross_entropy_forward(logits, labels)[0]


def _cross_entropy_forward(logits, labels):
    log_sum = jax.nn.logsumexp(logits, axis=-1)
    picked = jnp.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
    return log_sum - picked, (logits, labels, log_sum)


def _cross_entropy_backward(kept, upstream):
    logits, labels, log_sum = kept
    chosen = labels[..., None] == lax.broadcasted_iota(jnp.int32, logits.shape, logits.ndim - 1)
    probabilities = jnp.exp(logits - log_sum[..., None])
    return (probabilities - chosen) * upstream[..., None], None


cross_entropy.defvjp(_cross_entropy_forward, _cross_entropy_backward)


def on_nvidia() -> bool:
    """Return whether the step is compiled for GPUs of NVIDIA."""
    return jax.default_backend() == "gpu" and "cuda" in jax.devices()[0].client.platform_version


def rows_first(x):
    """Pin a tensor [B, L, H] to its natural layout where a GPU trains.

    The gradient of the position table sums over rows. XLA would store rows innermost for it, and
    with them the residual stream of all blocks; every normalisation then transposes twice.
    """
    if not on_nvidia():
        return x
    from jax.experimental.layout import Layout, with_layout_constraint

    return with_layout_constraint(x, Layout(tuple(range(x.ndim))))
