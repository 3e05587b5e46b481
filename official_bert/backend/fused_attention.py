"""The choice between attention's kernels (`pallas_attention`) and plain products.

JAX takes the kernels on NVIDIA GPUs since Ampere, in bfloat16, at head widths of 32, 64 and 128.
TensorFlow, PyTorch, CPUs, TPUs and float32 take plain products without a word. A GPU that could
have had the kernels takes them with one line that says why.
"""

import contextlib
import contextvars
import functools
import os
import sys

import keras
import numpy as np
from keras import ops

from official_bert.backend import place_hash
from official_bert.common.errors import first_line

_MESH: contextvars.ContextVar = contextvars.ContextVar("mesh", default=None)
SWITCH = "OFFICIAL_BERT_ATTENTION"  # "plain" in the environment: no kernels
AMPERE = 8  # compute capability
NEAR = 2e-2  # largest relative distance from float32; bfloat16 has 8 bits


def context(layer, x, bias, seed):
    """Return attention's context before the output projection, [B, L, H]; None: use products.

    Args:
      layer: `layers.SelfAttention`.
      x: [B, L, H], what it reads.
      bias: of `layers.attention_bias`, or of its shape.
      seed: of dropout, int32 [2]; None in inference.
    """
    if keras.backend.backend() != "jax":
        return None
    rate = layer.dropout_rate if seed is not None else 0.0
    length, wide = x.shape[1], bias.shape[-2] > 1
    if bias.shape[1] != 1 or bias.shape[-1] != length or bias.shape[-2] not in (1, length):
        return None
    if not _taken(str(x.dtype), x.shape[0], length, layer.head_width, wide, rate):
        return None
    seed = ops.zeros(2, "int32") if seed is None else seed
    return ops.reshape(_divided(query_key_value(layer, x), bias[:, 0], seed, rate), ops.shape(x))


@contextlib.contextmanager
def divided(mesh, axis: str):
    """Declare, inside a block, that a batch's rows are divided along an axis of a JAX mesh.

    XLA divides a product among devices, but not a kernel. Undeclared, a batch is taken to be whole.
    """
    token = _MESH.set((mesh, axis))
    try:
        yield
    finally:
        _MESH.reset(token)


def _divided(qkv, bias, seed, rate):
    """Run the kernels on each device's rows, with the masks of the whole batch."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec

    from official_bert.backend.pallas_attention import attention

    mesh, axis = _MESH.get() or (None, "")
    if mesh is None or mesh.size == 1:
        return attention(qkv, bias, jnp.pad(seed, (0, 1)), rate)

    def own(qkv, bias, seed):
        first = jax.lax.axis_index(axis) * qkv.shape[0]
        return attention(qkv, bias, jnp.stack([*seed, first]), rate)

    rows, whole = PartitionSpec(axis), PartitionSpec()
    parts = (rows, rows if bias.shape[0] > 1 else whole, whole)
    return jax.shard_map(own, mesh=mesh, in_specs=parts, out_specs=rows, check_vma=False)(
        qkv, bias, seed
    )


def query_key_value(layer, x):
    """Multiply by all three kernels at once: [B, L, H] -> [B, L, 3, A, D]; x is read once."""
    three = layer.query, layer.key, layer.value
    kernel = ops.concatenate([ops.cast(one.kernel, x.dtype) for one in three], axis=1)
    bias = ops.concatenate([ops.cast(one.bias, x.dtype) for one in three])
    rows, length, width = x.shape
    found = ops.matmul(ops.reshape(x, (-1, width)), kernel) + bias
    return ops.reshape(found, (rows, length, 3, layer.heads, layer.head_width))


def products(qkv, bias, seed, rate: float):
    """Compute what the kernels do by plain products; see `pallas_attention.attention`."""
    query, key, value = (ops.transpose(qkv[:, :, i], (0, 2, 1, 3)) for i in range(3))
    scores = ops.matmul(query * query.shape[-1] ** -0.5, ops.transpose(key, (0, 1, 3, 2)))
    weights = ops.softmax(ops.cast(scores + bias[:, None], "float32"), axis=-1)
    weights = ops.cast(weights, value.dtype)
    weights = weights * place_hash.factors(weights, rate, place_hash.keys(seed))
    return ops.transpose(ops.matmul(weights, value), (0, 2, 1, 3))


def _taken(dtype, rows, length, width, wide, rate):
    from official_bert.backend.jax_kernels import on_nvidia

    if dtype != "bfloat16" or not on_nvidia():
        return False
    reason = _cannot_be_divided(rows) or refusal(length, width, wide, rate)
    if reason:
        _say_once(reason)
    return not reason


def _cannot_be_divided(rows):
    if _MESH.get() is None:
        divided_by_keras = keras.distribution.distribution() is not None
        return "they do not know how keras.distribution divides a batch" * divided_by_keras
    devices = _MESH.get()[0].size
    return f"{rows} rows are not divided by {devices} devices" * (rows % devices > 0)


@functools.cache
def _say_once(reason):
    message = f"attention goes by plain products, not by one kernel: {reason}"
    print(message, file=sys.stderr, flush=True)


def widths() -> tuple[int, ...]:
    """Return the widths of heads that the kernels may be taken for on this machine."""
    import jax

    from official_bert.backend import jax_kernels, pallas_attention

    since_ampere = (
        os.environ.get(SWITCH) != "plain"
        and jax_kernels.on_nvidia()
        and float(jax.devices()[0].compute_capability) >= AMPERE
    )
    return pallas_attention.WIDTHS if since_ampere else ()


@functools.cache
def refusal(length: int, width: int, wide: bool, rate: float) -> str:
    """Return why the kernels are not taken on this GPU; "" where they are.

    They are compiled and compared with plain products first, on one row and one head of the length
    and width asked for. So a failure of driver, JAX or GPU shows here, not in a step.

    Args:
      length, width: L and D.
      wide: the bias has a row for each query.
      rate: of dropout.
    """
    import jax

    if os.environ.get(SWITCH) == "plain":
        return f"{SWITCH}=plain"
    if float(getattr(jax.devices()[0], "compute_capability", 0)) < AMPERE:
        return f"{jax.devices()[0].device_kind} is not a GPU of NVIDIA since Ampere"
    try:
        from official_bert.backend import pallas_attention

        if width not in pallas_attention.WIDTHS:
            return f"heads are {width} wide, kernels take {pallas_attention.WIDTHS}"
        apart = distance(pallas_attention.attention, length, width, wide, rate)
    except Exception as error:  # a compiler's, of any kind
        return f"{type(error).__name__}: {first_line(error)[:300]}"
    return "" if apart < NEAR else f"it is {apart:.1e} from them, more than {NEAR}"


def distance(attention, length: int, width: int, wide: bool, rate: float) -> float:
    """Return the relative distance of attention's output and gradient from float32 products.

    Args:
      attention: function of (qkv, bias, seed, rate), as `pallas_attention.attention`.
      length, width, wide, rate: of `refusal`.
    """
    import jax
    import jax.numpy as jnp

    draw = np.random.default_rng(0)
    allowed = draw.random((1, length if wide else 1, length)) < 0.8
    allowed[..., 0] = True
    arrays = (
        draw.normal(size=(1, length, 3, 1, width)).astype(jnp.bfloat16),
        draw.normal(size=(1, length, 1, width)).astype(jnp.bfloat16),
        np.where(allowed, 0.0, -1e4).astype(jnp.bfloat16),
        np.array([1, 2, 0], np.int32),
    )

    def both(function, dtype):
        def run(qkv, upstream, bias, seed):
            found, back = jax.vjp(lambda x: function(x, bias, seed, rate), qkv.astype(dtype))
            return found, back(upstream.astype(dtype))[0]

        # Compiled ahead, since a step is being traced here.
        return jax.jit(run).lower(*arrays).compile()(*arrays)

    with jax.default_matmul_precision("highest"):
        truth = both(products, jnp.float32)
    found = both(attention, jnp.bfloat16)
    pairs = [[np.asarray(x, np.float64) for x in pair] for pair in zip(found, truth, strict=True)]
    return max(float(np.linalg.norm(a - b) / np.linalg.norm(b)) for a, b in pairs)
