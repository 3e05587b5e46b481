"""Programs for accelerators, lowered on a machine that has none, and what stands in them.

`jax.export` writes the program of a platform without its device: what a GPU or a TPU would be given
to compile. Nothing is run here.
"""

import functools
import re
from pathlib import Path

import jax
import numpy as np
import pytest
import tiny_runs
from jax import export
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec
from tiny_steps import IDS, LENGTH, OWN, PLATFORMS, PRECISIONS, PREDICTIONS, ROWS, STEPS, records

from data_prep.pretraining.reading import philox
from data_prep.pretraining.reading.dynamic_masking import MaskingRules
from experiments.training.step import evaluation, jax_strategies
from experiments.training.step.jax_strategies import MakeBatch, stacked
from experiments.training.step.jax_trainer import JaxTrainer
from experiments.training.step.trainer_state import StepOptions
from official_bert import BertEncoder, extension
from official_bert.checkpoints.members import known, member_of
from official_bert.objectives import OBJECTIVES

pytestmark = pytest.mark.timeout(1800)
# BERT's programs in both precisions, the paper's others in half; before a release all in both.
PROGRAMS = [
    pytest.param(
        name, p, marks=[pytest.mark.slow] * (name not in (("BERT",) if p == "float32" else OWN))
    )
    for p in PRECISIONS
    for name in STEPS
]


def _trainer(name, precision, **options):
    build, batch, *more = STEPS[name]
    devices = jax_strategies.get_strategy("one_device")
    options = StepOptions(train_metrics=True, **(more[0] if more else {}), **options)
    return JaxTrainer(build, devices, options, precision, seed=1), batch


def lowered(trainer, batches, arrays=(), make=None):
    """Return the loop of steps, for all platforms: jax.export.Exported."""
    state = tuple([v.value for v in variables] for variables in trainer._step.variables)
    program = export.export(trainer._take_steps, platforms=PLATFORMS)
    return program(
        state=state, schedule=trainer._schedule.values.value, batches=batches,
        arrays=dict(arrays), count=2, measured=1, run_seed=np.int32(1), make=make, without=(),
    )  # fmt: skip


def check(program):
    """Nothing that an accelerator could not do, or would do at a crawl."""
    text = program.mlir_module()
    assert not re.search(r"tensor<[^>]*f64", text), "float64"
    assert not re.search(r"tensor<[^>]*\?", text), "a dynamic shape"
    assert "callback" not in text and "infeed" not in text, "the host is called"
    return text


def test_every_model_objective_and_successor_has_its_steps():
    models = _models().values()
    encoders = [m.encoder for m in models if hasattr(getattr(m, "encoder", None), "config")]
    bert = [e.config for e in encoders if isinstance(e, BertEncoder)]
    assert {type(e.config) for e in encoders} >= {kind for _, kind in extension.load_all("configs")}
    algorithms = ("WordPiece", "BPE", "Unigram")
    assert {member_of(c, one).name for c in bert for one in algorithms} == set(known())
    trained = {type(one) for m in models for one in getattr(m, "objectives", ())}
    assert trained >= {
        extension.find("objectives", name, OBJECTIVES)
        for name in (*OBJECTIVES, *extension.names("objectives"))
    }
    assert {type(m).__name__ for m in models} >= _models_of_the_packages()


@functools.cache
def _models():
    return {name: build(0) for name, (build, *_) in STEPS.items()}


def _models_of_the_packages():
    """Names of the classes below `ModelWithLosses` that have none below them."""
    text = "\n".join(
        path.read_text() for package in ("official_bert", "experiments")
        for path in (Path(__file__).parents[2] / package).rglob("*.py")
    )  # fmt: skip
    below = re.findall(r"^class (\w+)\((\w+)\)", text, re.M)
    found = {"ModelWithLosses"}
    while found != (more := found | {name for name, base in below if base in found}):
        found = more
    return found - {base for _, base in below}


def test_what_an_accelerator_cannot_do_is_seen():
    shape = jax.ShapeDtypeStruct((2,), np.float32)
    asking = jax.jit(lambda x: jax.pure_callback(np.sin, shape, x))
    with pytest.raises(NotImplementedError, match="callback"):  # JAX lowers none of these
        export.export(asking, platforms=PLATFORMS)(shape)
    rows = export.symbolic_shape("rows")
    unknown = export.export(jax.jit(lambda x: 2 * x), platforms=PLATFORMS)
    with pytest.raises(AssertionError, match="a dynamic shape"):
        check(unknown(jax.ShapeDtypeStruct(rows, np.float32)))


@pytest.mark.parametrize(("name", "precision"), PROGRAMS)
def test_steps_evaluation_and_prediction(name, precision):
    trainer, batch = _trainer(name, precision)
    # Checkpoints know a variable by its path, whatever was built before in this process.
    assert set(trainer.arrays()) >= {variable.path for variable in _models()[name].weights}
    program = lowered(trainer, stacked(iter([batch] * 2), 2, 2, 1))
    text = check(program)
    assert program.platforms == PLATFORMS
    donated = len(jax.tree.leaves(trainer._step.variables))
    aliased = len(re.findall(r"tf.aliasing_output|jax.buffer_donor", text))
    assert aliased == donated > 10  # a state has the memory of the one before
    products = re.findall(r"stablehlo.dot_general.*-> tensor<[^>]*?(f32|bf16)>", text)
    halves = products.count("bf16") / len(products)
    assert halves == 0 if precision == "float32" else halves > 0.3  # heads are in float32
    for function in (functools.partial(evaluation.terms, trainer.model), trainer._in_float32):
        check(export.export(jax.jit(function), platforms=PLATFORMS)(batch))


def test_micro_batches():
    trainer, batch = _trainer("BERT", "float32", accumulation=2)
    check(lowered(trainer, stacked(iter([batch] * 2), 2, 2, 2)))


def test_masks_made_on_the_device():
    trainer, _ = _trainer("BERT", "mixed_bfloat16")
    rules = MaskingRules(
        length=LENGTH, wanted_slots=PREDICTIONS, slots=PREDICTIONS, prob=0.15, mask_below=0.8,
        same_below=0.9, vocab_size=tiny_runs.bert().vocab_size, cls=2, sep=3, mask=4,
        continues=None,
    )  # fmt: skip
    arrays = {name: np.ones((32, LENGTH), np.uint16) for name in IDS}
    arrays["next_sentence_labels"] = np.ones((32, 1), np.uint8)
    drawn = {
        "rows": np.arange(ROWS, dtype=np.int32),
        "philox": np.tile(philox.state((3, 0)), (ROWS, 1)),
    }
    check(lowered(trainer, stacked(iter([drawn] * 2), 2, 2, 1), arrays.items(), MakeBatch(rules)))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_attention_multiplies_in_half_precision_and_its_softmax_does_not(precision):
    check_attention("BERT", f"{ROWS}x2x{LENGTH}x{LENGTH}", precision)


def check_attention(name, scores, precision):
    trainer, batch = _trainer(name, precision)
    text = check(lowered(trainer, stacked(iter([batch] * 2), 2, 2, 1)))
    kind = "f32" if precision == "float32" else "bf16"
    products = " ".join(re.findall(r"stablehlo.dot_general.*", text))
    assert f"tensor<{scores}x{kind}>" in products or "rnn" in name
    assert set(re.findall(rf"stablehlo.exponential .*tensor<{scores}x(\w+)>", text)) == {"f32"}


@pytest.mark.parametrize("devices", [8, 256])
def test_a_step_over_many_devices(devices):
    """Rows are divided, weights are not: lowered for more devices than any machine has."""
    trainer, _ = _trainer("BERT", "float32")
    mesh = AbstractMesh((devices,), ("rows",))
    everywhere = NamedSharding(mesh, PartitionSpec())

    def shaped(x, sharding):
        x = np.asarray(x)
        return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding)

    state = jax.tree.map(
        lambda v: shaped(v.value, everywhere), tuple(map(list, trainer._step.variables))
    )
    batch = {
        name: jax.ShapeDtypeStruct((1, devices * ROWS, *x.shape[1:]), x.dtype,
                                   sharding=NamedSharding(mesh, PartitionSpec(None, "rows")))
        for name, x in records().items()
    }  # fmt: skip

    def step(state, schedule, batch):
        trainer._step.prepare(state, batch, ())
        return trainer._step(state, schedule, batch, np.int32(1), False, ())

    program = export.export(
        jax.jit(step, out_shardings=everywhere, donate_argnums=0), platforms=PLATFORMS
    )(state, shaped(trainer._schedule.values.value, everywhere), batch)
    assert program.nr_devices == devices
    check(program)
