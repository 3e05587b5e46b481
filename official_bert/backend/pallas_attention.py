"""Attention with its dropout as kernels for NVIDIA GPUs: nothing of length x length is stored.

Flash attention (Dao et al. 2022; Dao 2023) in Pallas: a program reads a block of queries, goes over
the keys, keeps the largest score and the sum of exponentials so far, in float32. Forward and
backward draw the masks of `randomness.dropout` by the places of the weights [B, A, L, L], so plain
products (`layers.SelfAttention`) give the same context but for rounding.

Pallas has two ways to NVIDIA GPUs. These kernels go by Triton: it takes GPUs since Ampere and a
kernel is a page; JAX calls it deprecated for Mosaic GPU, which takes Hopper and newer alone and
wants some 450 lines of copies and barriers for the same. Whatever the one at hand does not take
goes by plain products (`fused_attention`).

B rows, L tokens, A heads, D the width of a head. Keys come in tiles of 64, two at a time: the two
share the words of `place_hash`.
"""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from official_bert.backend import place_hash

WIDTHS = (32, 64, 128)  # of a head; a side of a block is a power of two
LOG2E = math.log2(math.e)
TILE = 64
ONE_BLOCK = 128  # up to this length the backward pass is one kernel
NEVER = -1e30  # the bias of what pads a length to whole tiles


@dataclasses.dataclass(frozen=True)
class Blocks:
    """The division of the kernels' work: (queries, warps, stages) of each.

    `by_keys` holds a pair of tiles where `pairs` is true, else one tile, and draws twice as much.
    """

    forward: tuple = (64, 4, 2)
    one_block: tuple = (128, 8, 1)
    by_keys: tuple = (64, 8, 2)
    by_queries: tuple = (64, 4, 2)
    pairs: bool = True


# {whether one block holds a whole length: the fastest in benchmarks/results/gpu/2026-11-27}.
CHOSEN = {True: Blocks(), False: Blocks(forward=(64, 4, 3), by_keys=(32, 4, 2))}


@functools.partial(jax.custom_vjp, nondiff_argnums=(3, 4, 5))
def attention(qkv, bias, seed, rate: float, blocks: Blocks | None = None, interpret: bool = False):
    """Return the context of every token: [B, L, 3, A, D] -> [B, L, A, D].

    Args:
      qkv: bfloat16, or any float in tests: queries, keys and values.
      bias: added to the scores, [1 or B, 1 or L, L] of any float dtype; it gets no gradient.
      seed: int32 [3]: the seed of dropout, and the number of the first row in the whole batch.
      rate: of dropout; 0 for none.
      blocks: how the kernels divide their work; None: as `CHOSEN`.
      interpret: run on a CPU, for tests.
    """
    return _forward(qkv, bias, seed, rate, blocks, interpret)[0]


def padded_length(length: int) -> int:
    """Return the length in whole tiles: a power of two up to 64, then a multiple of 128."""
    if length > TILE:
        return -(-length // (2 * TILE)) * 2 * TILE
    return max(16, 1 << (length - 1).bit_length())


# --- kernels -------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Part:
    """The sizes and options that a kernel knows when it is traced."""

    rate: float
    length: int  # before it was padded
    tile: int  # keys of a tile
    tiles: int  # at a time
    queries: int  # of a block
    steps: int  # of the loop
    transposed: bool = False  # scores are [keys, queries]

    def program(self, seed_ref):
        """Return (number of the block, numbers of the row and head as one, keys of dropout)."""
        head = (pl.program_id(2) + seed_ref[2]) * pl.num_programs(1) + pl.program_id(1)
        keys = place_hash.keys((seed_ref[0], seed_ref[1])) if self.rate else None
        return pl.program_id(0), head, keys

    def kept(self, keys, head, query, key):
        """Draw masks, a bool tile each: queries from `query`, keys from `key` on; None each without
        dropout."""
        if not self.rate:
            return [None] * self.tiles
        shape = (self.tile, self.queries) if self.transposed else (self.queries, self.tile)
        row = lax.broadcasted_iota(jnp.int32, shape, int(self.transposed)) + query
        column = lax.broadcasted_iota(jnp.int32, shape, 1 - int(self.transposed))
        row = (head * self.length + row) * place_hash.words_of(self.length)
        words = place_hash.mix(row + (key // 128 * 64 + column), keys)
        both = place_hash.halves(words)
        if self.tiles == 1:
            both = [jnp.where(key // 64 % 2 == 0, *both)]
        return [draws >= place_hash.threshold(self.rate) for draws in both]

    def over(self, body, carry):
        """Run the body over all steps; a single step runs without a loop."""
        return body(0, carry) if self.steps == 1 else lax.fori_loop(0, self.steps, body, carry)

    def places(self, first):
        """Return slices of the tiles from the key `first` on."""
        return [pl.ds(first + i * self.tile, self.tile) for i in range(self.tiles)]

    def scores(self, q, k, bias):
        """Return scores times log2(e), so that a power of two is their exponential."""
        product = _dot(k, q.T) if self.transposed else _dot(q, k.T)
        return product * (q.shape[-1] ** -0.5 * LOG2E) + bias.astype(jnp.float32)


def _dot(a, b):
    return lax.dot_general(a, b, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32)


def _forward_kernel(x_ref, q_ref, bias_ref, seed_ref, o_ref, sum_ref, *, part):
    block, head, keys = part.program(seed_ref)
    q, one = q_ref[:, 0, :], place_hash.scale(part.rate)

    def body(j, carry):
        acc, top, total = carry
        first = j * part.tile * part.tiles
        kept = part.kept(keys, head, block * part.queries, first)
        for at, keep in zip(part.places(first), kept, strict=True):
            scores = part.scores(q, x_ref[at, 1, :], bias_ref[:, at])
            new = jnp.maximum(top, jnp.max(scores, axis=1))
            old, p = jnp.exp2(top - new), jnp.exp2(scores - new[:, None])
            top, total = new, total * old + jnp.sum(p, axis=1)
            p = jnp.where(keep, p, 0.0) if part.rate else p
            acc = acc * old[:, None] + _dot(p.astype(q.dtype), x_ref[at, 2, :])
        return acc, top, total

    rows = jnp.zeros((part.queries,), jnp.float32)
    carry = jnp.zeros(q.shape, jnp.float32), rows - jnp.inf, rows
    acc, top, total = part.over(body, carry)
    o_ref[...] = (acc * (one / total)[:, None]).astype(o_ref.dtype)
    sum_ref[...] = top + jnp.log2(total)


def _one_block_kernel(x_ref, bias_ref, seed_ref, o_ref, do_ref, sum_ref, dx_ref, *, part):
    _, head, keys = part.program(seed_ref)
    q, do, factor = x_ref[:, 0, :], do_ref[...], place_hash.scale(part.rate)
    log_sum = sum_ref[...][:, None]
    along = jnp.sum(o_ref[...].astype(jnp.float32) * do.astype(jnp.float32), axis=1)[:, None]
    dq = jnp.zeros(q.shape, jnp.float32)
    for at, keep in zip(part.places(0), part.kept(keys, head, 0, 0), strict=True):
        k = x_ref[at, 1, :]
        p = jnp.exp2(part.scores(q, k, bias_ref[:, at]) - log_sum)
        slope, dropped = _dot(do, x_ref[at, 2, :].T), p
        if part.rate:
            dropped = jnp.where(keep, p * factor, 0.0)
            slope = jnp.where(keep, slope * factor, 0.0)
        dx_ref[at, 2, :] = _dot(dropped.astype(do.dtype).T, do).astype(dx_ref.dtype)
        ds = (p * (slope - along) * q.shape[-1] ** -0.5).astype(q.dtype)
        dx_ref[at, 1, :] = _dot(ds.T, q).astype(dx_ref.dtype)
        dq = dq + _dot(ds, k)
    dx_ref[:, 0, :] = dq.astype(dx_ref.dtype)


def _by_keys_kernel(x_ref, k_ref, bias_ref, seed_ref, do_ref, sum_ref, along_ref, dk_ref, *, part):
    block, head, keys = part.program(seed_ref)
    places, factor = part.places(0), place_hash.scale(part.rate)
    first, wide = block * part.tile * part.tiles, bias_ref.shape[0] > 1

    def body(i, carry):
        at = pl.ds(i * part.queries, part.queries)
        q, do, log_sum, along = x_ref[at, 0, :], do_ref[at, :], sum_ref[at], along_ref[at]
        kept = part.kept(keys, head, i * part.queries, first)
        after = []
        for key, keep, (dk, dv) in zip(places, kept, carry, strict=True):
            bias = bias_ref[at if wide else slice(None), key].T
            p = jnp.exp2(part.scores(q, k_ref[key, 1, :], bias) - log_sum[None, :])
            slope = _dot(k_ref[key, 2, :], do.T)
            dropped = p
            if part.rate:
                dropped = jnp.where(keep, p, 0.0)
                slope = jnp.where(keep, slope * factor, 0.0)
            dv = dv + _dot(dropped.astype(do.dtype), do)
            ds = p * (slope - along[None, :])
            after.append((dk + _dot(ds.astype(q.dtype), q), dv))
        return tuple(after)

    zeros = jnp.zeros((part.tile, do_ref.shape[-1]), jnp.float32)
    for at, (dk, dv) in zip(places, part.over(body, ((zeros, zeros),) * part.tiles), strict=True):
        dk_ref[at, 1, :] = (dk * do_ref.shape[-1] ** -0.5).astype(dk_ref.dtype)
        dk_ref[at, 2, :] = (dv * factor).astype(dk_ref.dtype)


def _by_queries_kernel(
    x_ref, q_ref, bias_ref, seed_ref, do_ref, sum_ref, along_ref, _, dq_ref, *, part
):
    block, head, keys = part.program(seed_ref)
    q, do, log_sum, along = q_ref[:, 0, :], do_ref[...], sum_ref[...], along_ref[...]
    factor = place_hash.scale(part.rate)

    def body(j, dq):
        first = j * part.tile * part.tiles
        kept = part.kept(keys, head, block * part.queries, first)
        for at, keep in zip(part.places(first), kept, strict=True):
            p = jnp.exp2(part.scores(q, x_ref[at, 1, :], bias_ref[:, at]) - log_sum[:, None])
            slope = _dot(do, x_ref[at, 2, :].T)
            if part.rate:
                slope = jnp.where(keep, slope * factor, 0.0)
            ds = p * (slope - along[:, None])
            dq = dq + _dot(ds.astype(q.dtype), x_ref[at, 1, :])
        return dq

    dq = part.over(body, jnp.zeros(q.shape, jnp.float32))
    dq_ref[:, 0, :] = (dq * q.shape[-1] ** -0.5).astype(dq_ref.dtype)


# --- calls of kernels ----------------------------------------------------------------------------


class Calls:
    """The kernels on arrays of one shape, padded to whole tiles.

    Args:
      qkv: [B, L, 3, A, D]; bias, rate, blocks, interpret: of `attention`.
    """

    def __init__(self, qkv, bias, rate, blocks, interpret):
        self.rows, self.length, _, self.heads, self.width = qkv.shape
        self.whole = padded_length(self.length)
        self.rate, self.interpret = rate, interpret
        self.blocks = blocks or CHOSEN[self.whole <= ONE_BLOCK]
        more, bias = self.whole - self.length, bias * LOG2E
        self.qkv = jnp.pad(qkv, ((0, 0), (0, more), (0, 0), (0, 0), (0, 0))) if more else qkv
        if more:
            sides = ((0, 0), (0, more if bias.shape[1] > 1 else 0), (0, more))
            bias = jnp.pad(bias, sides, constant_values=NEVER)
        self.bias = bias
        self.tile = min(TILE, self.whole)
        self.pair = min(2, self.whole // self.tile)

    def padded(self, x):
        """Pad the tokens of [B, L, A, D] with zeros."""
        more = self.whole - self.length
        return jnp.pad(x, ((0, 0), (0, more), (0, 0), (0, 0))) if more else x

    def part(self, queries, steps, tiles=None, transposed=False):
        tiles = tiles or self.pair
        return _Part(self.rate, self.length, self.tile, tiles, queries, steps, transposed)

    # Blocks of arrays; a grid is (blocks, heads, rows), so that neighbours read the same keys.

    def of_qkv(self, size=None):
        size, at = self._block(size)
        return pl.BlockSpec((None, size, 3, None, self.width), lambda i, h, b: (b, at(i), 0, h, 0))

    def of_context(self, size=None):
        size, at = self._block(size)
        return pl.BlockSpec((None, size, None, self.width), lambda i, h, b: (b, at(i), h, 0))

    def of_rows(self, size=None):
        size, at = self._block(size)
        return pl.BlockSpec((None, None, size), lambda i, h, b: (b, h, at(i)))

    def of_bias(self, queries=None, keys=None):
        rows, wide = self.bias.shape[0] > 1, self.bias.shape[1] > 1
        queries, query = self._block(queries) if wide else (1, lambda i: 0)
        keys, key = self._block(keys)
        return pl.BlockSpec((None, queries, keys), lambda i, h, b: (b * rows, query(i), key(i)))

    def _block(self, size):
        return (self.whole, lambda i: 0) if size is None else (size, lambda i: i)

    def call(self, kernel, part, warps, stages, count, inputs, outputs, name, aliases=None):
        """Run a kernel; inputs are (array, block), outputs (shape, dtype, block)."""
        return pl.pallas_call(
            functools.partial(kernel, part=part),
            grid=(count, self.heads, self.rows),
            in_specs=[block for _, block in inputs],
            out_specs=[block for *_, block in outputs],
            out_shape=[jax.ShapeDtypeStruct(shape, dtype) for shape, dtype, _ in outputs],
            input_output_aliases=aliases or {},
            compiler_params=triton.CompilerParams(num_warps=warps, num_stages=stages),
            interpret=self.interpret,
            name=name,
        )(*(array for array, _ in inputs))


_SEED = pl.BlockSpec((3,), lambda i, h, b: (0,))


def _forward(qkv, bias, seed, rate, blocks, interpret):
    calls = Calls(qkv, bias, rate, blocks, interpret)
    queries, warps, stages = calls.blocks.forward
    queries = min(queries, calls.whole)
    part = calls.part(queries, calls.whole // (calls.tile * calls.pair))
    shape = (calls.rows, calls.whole, calls.heads, calls.width)
    context, log_sum = calls.call(
        _forward_kernel, part, warps, stages, calls.whole // queries,
        [(calls.qkv, calls.of_qkv()), (calls.qkv, calls.of_qkv(queries)),
         (calls.bias, calls.of_bias(queries)), (seed, _SEED)],
        [(shape, qkv.dtype, calls.of_context(queries)),
         ((calls.rows, calls.heads, calls.whole), jnp.float32, calls.of_rows(queries))],
        "attention_forward",
    )  # fmt: skip
    return context[:, : calls.length], (qkv, bias, seed, context, log_sum)


def _backward(rate, blocks, interpret, kept, upstream):
    qkv, bias, seed, context, log_sum = kept
    calls = Calls(qkv, bias, rate, blocks, interpret)
    do = calls.padded(upstream.astype(qkv.dtype))
    if calls.whole <= ONE_BLOCK:
        dx = one_block(calls, seed, context, do, log_sum)
    else:
        along = jnp.sum(context.astype(jnp.float32) * do.astype(jnp.float32), axis=-1)
        along = along.transpose(0, 2, 1)  # [B, A, L]
        dx = by_queries(calls, seed, do, log_sum, along, by_keys(calls, seed, do, log_sum, along))
    return dx[:, : calls.length], None, None


def one_block(calls, seed, context, do, log_sum):
    """Return the gradient of qkv where all queries and keys are in one block."""
    _, warps, stages = calls.blocks.one_block
    (dx,) = calls.call(
        _one_block_kernel, calls.part(calls.whole, 1), warps, stages, 1,
        [(calls.qkv, calls.of_qkv()), (calls.bias, calls.of_bias()), (seed, _SEED),
         (context, calls.of_context()), (do, calls.of_context()), (log_sum, calls.of_rows())],
        [(calls.qkv.shape, do.dtype, calls.of_qkv())],
        "attention_backward",
    )  # fmt: skip
    return dx


def by_keys(calls, seed, do, log_sum, along):
    """Return the gradients of keys and values, in their places of the gradient of qkv."""
    queries, warps, stages = calls.blocks.by_keys
    tiles = calls.pair if calls.blocks.pairs else 1
    size = calls.tile * tiles
    part = calls.part(queries, calls.whole // queries, tiles, transposed=True)
    (dx,) = calls.call(
        _by_keys_kernel, part, warps, stages, calls.whole // size,
        [(calls.qkv, calls.of_qkv()), (calls.qkv, calls.of_qkv(size)),
         (calls.bias, calls.of_bias(keys=size)), (seed, _SEED), (do, calls.of_context()),
         (log_sum, calls.of_rows()), (along, calls.of_rows())],
        [(calls.qkv.shape, do.dtype, calls.of_qkv(size))],
        "attention_backward_by_keys",
    )  # fmt: skip
    return dx


def by_queries(calls, seed, do, log_sum, along, dx):
    """Write the gradient of queries into what `by_keys` returned."""
    queries, warps, stages = calls.blocks.by_queries
    part = calls.part(queries, calls.whole // (calls.tile * calls.pair))
    (dx,) = calls.call(
        _by_queries_kernel, part, warps, stages, calls.whole // queries,
        [(calls.qkv, calls.of_qkv()), (calls.qkv, calls.of_qkv(queries)),
         (calls.bias, calls.of_bias(queries)), (seed, _SEED), (do, calls.of_context(queries)),
         (log_sum, calls.of_rows(queries)), (along, calls.of_rows(queries)),
         (dx, calls.of_qkv(queries))],
        [(calls.qkv.shape, do.dtype, calls.of_qkv(queries))],
        "attention_backward_by_queries", {7: 0},
    )  # fmt: skip
    return dx


attention.defvjp(_forward, _backward)
