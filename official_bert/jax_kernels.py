"""Kernels of the JAX backend that stand behind functions of `keras.ops` where they are faster."""

import jax

# The shortest rows whose attention cuDNN's kernel computes on a GPU.
FUSED_ATTENTION_FROM = 0
_HALF = ("bfloat16", "float16")  # what the kernel takes


def fuses_attention(dtype: str, length: int) -> bool:
    """Whether `fused_attention` is there and pays for rows of this length on this machine."""
    return dtype in _HALF and length >= FUSED_ATTENTION_FROM and jax.default_backend() == "gpu"


def fused_attention(query, key, value, bias):
    """Softmax attention without its [B, A, L, L] in memory, by cuDNN; no dropout of weights.

    Args:
      query, key, value: bfloat16 or float16 [B, L, A, D].
      bias: same dtype, broadcasts to [B, A, L, L]; it has no gradient.

    Returns: [B, L, A, D].
    """
    bias = jax.lax.stop_gradient(bias)
    return jax.nn.dot_product_attention(query, key, value, bias, implementation="cudnn")
