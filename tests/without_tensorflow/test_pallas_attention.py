"""Attention's kernels: interpreted beside plain products, and lowered for GPUs."""

import warnings
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractDevice, AbstractMesh, Mesh, NamedSharding, PartitionSpec

from official_bert.backend import fused_attention, jax_kernels, pallas_attention
from official_bert.backend.pallas_attention import WIDTHS, Blocks, attention, padded_length

pytestmark = pytest.mark.timeout(1800)
SEED = jnp.array([12345, 7, 0], jnp.int32)
# rows, length, heads, width of a head, rate, mask, tiles by pairs
CASES = [
    (2, 20, 2, 32, 0.1, "holes", True),
    (1, 64, 1, 64, 0.1, "left to right", True),
    (2, 100, 1, 32, 0.1, "holes", True),
    (1, 128, 1, 128, 0.0, "holes", True),
    (2, 130, 1, 32, 0.1, "left to right, all rows alike", True),
    (1, 256, 1, 32, 0.1, "holes", False),
]


def inputs(rows, length, heads, width, mask, dtype="float32"):
    draw = np.random.default_rng(0)
    qkv = draw.normal(size=(rows, length, 3, heads, width))
    upstream = draw.normal(size=(rows, length, heads, width))
    real = draw.random((rows, length)) < 0.7
    real[:, 0] = True
    allowed = real[:, None, :]
    if mask.startswith("left to right"):
        allowed = np.tri(length, dtype=bool) & (allowed | ("alike" in mask))
        allowed = allowed[:1] if "alike" in mask else allowed
    bias = np.where(allowed, 0.0, -1e4)
    return tuple(jnp.asarray(x, dtype) for x in (qkv, upstream, bias))


def run(function, qkv, upstream, *rest):
    found, back = jax.vjp(lambda x: function(x, *rest), qkv)
    return found, back(upstream)[0]


def near(a, b, tolerance):
    a, b = np.asarray(a, "float64"), np.asarray(b, "float64")
    assert np.linalg.norm(a - b) < tolerance * np.linalg.norm(b)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_kernels_equal_plain_products(case):
    rows, length, heads, width, rate, mask, pairs = case
    qkv, upstream, bias = inputs(rows, length, heads, width, mask)

    @jax.jit
    def kernels(qkv, upstream):
        return run(attention, qkv, upstream, bias, SEED, rate, Blocks(pairs=pairs), True)

    ours = kernels(qkv, upstream)
    plain = run(fused_attention.products, qkv, upstream, bias, SEED, rate)
    for a, b in zip(ours, plain, strict=True):
        near(a, b, 2e-6)


def test_a_length_in_whole_tiles():
    found = [padded_length(n) for n in (1, 16, 17, 64, 65, 128, 129, 512)]
    assert found == [16, 16, 32, 64, 128, 128, 256, 512]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("length", "wide"), [(20, False), (128, False), (300, True), (512, False)])
def test_kernels_are_lowered_for_nvidia(length, wide, width):
    """Triton programs stand in what a GPU would be given: two up to length 128, else three."""
    if not hasattr(jax.sharding, "use_abstract_mesh"):
        pytest.skip("this JAX lowers kernels where a GPU is, alone")
    shapes = (
        jax.ShapeDtypeStruct((2, length, 3, 4, width), jnp.bfloat16),
        jax.ShapeDtypeStruct((2, length, 4, width), jnp.bfloat16),
        jax.ShapeDtypeStruct((2, length if wide else 1, length), jnp.bfloat16),
    )
    card = AbstractDevice(device_kind="NVIDIA H100 80GB HBM3", num_cores=132, platform="gpu")
    with (
        jax.sharding.use_abstract_mesh(AbstractMesh((), (), abstract_device=card)),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", DeprecationWarning)
        traced = jax.jit(lambda *x: run(attention, *x, SEED, 0.1)).trace(*shapes)
        text = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("xla.gpu.triton") == (2 if length <= 128 else 3)
    assert f"{length}x{length}" not in text.replace(f"{2}x{length}x{length}xbf16", "")


def test_devices_that_share_a_batch_draw_its_masks(monkeypatch):
    """Eight of them, which conftest.py makes of one processor; a kernel each, and its rows."""

    def interpreted(*arguments):
        return attention(*arguments, Blocks(), True)

    monkeypatch.setattr(pallas_attention, "attention", interpreted)
    mesh = Mesh(np.array(jax.devices()), ("rows",))
    assert mesh.size == 8
    for mask in ("holes", "left to right, all rows alike"):
        qkv, upstream, bias = inputs(8, 16, 2, 32, mask)
        whole = run(fused_attention._divided, qkv, upstream, bias, SEED[:2], 0.1)
        divided = [jax.device_put(x, NamedSharding(mesh, PartitionSpec("rows")))
                   for x in (qkv, upstream)]  # fmt: skip
        with fused_attention.divided(mesh, "rows"):
            step = jax.jit(lambda q, u: run(fused_attention._divided, q, u, bias, SEED[:2], 0.1))  # noqa: B023
            found = step(*divided)
        for a, b in zip(found, whole, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5)
        assert fused_attention._MESH.get() is None


class _Layer:
    """The fields of `SelfAttention` that the choice reads."""

    dropout_rate, head_width = 0.1, 64


def test_what_a_gpu_does_not_take_goes_by_products_and_is_said_once(monkeypatch, capsys):
    monkeypatch.setattr(jax_kernels, "on_nvidia", lambda: True)
    x, bias = jnp.zeros((2, 16, 128), jnp.bfloat16), jnp.zeros((2, 1, 1, 16), jnp.bfloat16)
    fused_attention.refusal.cache_clear()
    fused_attention._say_once.cache_clear()
    monkeypatch.setenv(fused_attention.SWITCH, "plain")
    assert fused_attention.context(_Layer, x, bias, SEED) is None
    assert fused_attention.context(_Layer, x, bias, SEED) is None
    told = capsys.readouterr().err
    assert told.count("plain products") == told.count(fused_attention.SWITCH) == 1
    fused_attention.refusal.cache_clear()
    # In half precision alone, and no bias of another shape than [B, 1, 1 or L, L].
    monkeypatch.setattr(fused_attention, "refusal", lambda *_: pytest.fail("was asked"))
    assert fused_attention.context(_Layer, x.astype("float32"), bias, SEED) is None
    assert fused_attention.context(_Layer, x, jnp.zeros((2, 2, 16, 16)), SEED) is None
    assert fused_attention.context(_Layer, x, jnp.zeros((2, 1, 1, 20)), SEED) is None
    with fused_attention.divided(Mesh(np.array(jax.devices()[:4]), ("rows",)), "rows"):
        assert fused_attention.context(_Layer, x, bias, SEED) is None
    assert "2 rows are not divided by 4 devices" in capsys.readouterr().err


def test_kernels_that_fail_or_are_wrong_are_refused(monkeypatch):
    monkeypatch.setattr(jax, "devices", lambda: [type("Card", (), {"compute_capability": "9.0"})])
    refusal = fused_attention.refusal.__wrapped__
    assert "heads are 48 wide" in refusal(16, 48, False, 0.1)
    # No GPU is here, so they cannot be compiled.
    assert "interpret" in refusal(16, 64, False, 0.1).lower()
    monkeypatch.setattr(fused_attention, "distance", lambda *_: 0.5)
    assert "5.0e-01" in refusal(16, 64, False, 0.1)
    monkeypatch.setattr(fused_attention, "distance", lambda *_: float("nan"))
    assert "nan" in refusal(16, 64, False, 0.1)
    failing = mock.Mock(side_effect=NotImplementedError)  # an error without a message
    monkeypatch.setattr(fused_attention, "distance", failing)
    assert "NotImplementedError" in refusal(16, 64, False, 0.1)
    monkeypatch.setattr(fused_attention, "distance", lambda *_: 1e-3)
    assert refusal(16, 64, False, 0.1) == ""


def test_the_distance_that_decides_is_seen_inside_a_step_that_is_traced():
    def interpreted(*arguments):
        return attention(*arguments, Blocks(), True)

    def doubled(*arguments):
        return 2 * interpreted(*arguments)

    def step(x):
        return x + fused_attention.distance(interpreted, 20, 32, True, 0.1)

    assert 0 < float(jax.jit(step)(0.0)) < fused_attention.NEAR / 4
    assert fused_attention.distance(doubled, 20, 32, True, 0.1) > 0.9
