"""TensorFlow's steps as an accelerator would get them: shapes that XLA accepts, kernels on GPUs.

XLA is handed every step and writes its program; to compile it would take half a minute each
(`test_trainer` does so for two). All of it is in a process of its own, where LSTMs are those of
accelerators.
"""

import functools
import json
import re
from pathlib import Path

import forked
import pytest
from tiny_steps import STEPS

pytestmark = pytest.mark.timeout(1800)  # generous, for busy machines
DOCS = Path(__file__).parents[3] / "docs" / "distribution.md"


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """name -> {what: value}, of `_look`."""
    path = tmp_path_factory.mktemp("xla") / "found.json"
    assert forked.exit_code(forked.start(_look, path), 1800) == 0
    return json.loads(path.read_text())


@pytest.mark.parametrize("name", STEPS)
def test_steps_evaluation_and_prediction_under_xla(found, name):
    """Fixed shapes, nothing from the host, one program for a batch and the next."""
    programs = found[name]["programs"]
    assert set(programs) == {"train", "evaluate", "predict"}
    for program in programs.values():
        assert program == {"traces": 1, "strings": [], "not for accelerators": []}


def test_every_operation_has_a_kernel_on_gpus_or_is_on_the_host_on_purpose(found):
    without = {op for name in found for op in found[name]["no GPU kernel"]}
    told = re.search(r"without a GPU kernel: ([^.]*)\.", DOCS.read_text().replace("\n", " "))[1]
    assert without == set(re.findall(r"`(\w+)`", told))
    assert "While" in found["loop"]["operations"]


def test_what_a_gpu_cannot_do_is_seen():
    import tensorflow as tf

    @functools.partial(tf.function, autograph=False)
    def step(x):
        return tf.unique(tf.split(x, 2)[0]), tf.strings.as_string(x)

    program = step.get_concrete_function(tf.TensorSpec([4], tf.bool))
    assert _without_kernels(program) == ["AsString", "Split"]
    assert _strings(program) == ["AsString", "Identity"]


def _look(path):
    import tensorflow as tf

    from experiments.training import distribution
    from official_bert.backend import tensorflow_lstm

    tensorflow_lstm.on_processors = lambda: False
    one = distribution.get_strategy("one_device")
    found = {name: _under_xla(name, one) for name in STEPS}
    trainer, batches = _trainer("BERT", one)
    dataset = tf.data.Dataset.from_tensors(batches[0][0]).repeat()
    loop = trainer._take_steps.get_concrete_function(iter(dataset), 2, tf.constant(1), ())
    found["loop"] = _kernels([loop])
    path.write_text(json.dumps(found))


def _trainer(name, strategy, **options):
    """(Trainer, the arguments of two steps with batches of different numbers)."""
    import tensorflow as tf

    from experiments.training import distribution
    from experiments.training.trainer import Trainer
    from experiments.training.trainer_state import StepOptions

    build, batch, *more = STEPS[name]
    options = StepOptions(fixed_shapes=True, train_metrics=True, **options, **dict(*more))
    trainer = Trainer(build, strategy, options, "mixed_bfloat16", seed=1)
    batches = [
        (distribution.distribute_batch({n: k * x for n, x in batch.items()}, strategy),
         tf.constant(k))
        for k in (1, 2)
    ]  # fmt: skip
    return trainer, batches


def _under_xla(name, strategy):
    import tensorflow as tf

    trainer, batches = _trainer(name, strategy, jit_compile=True)
    step = trainer._train_step._replica_step
    functions = {
        "train": lambda batch, seed: step(batch, seed, tf.constant(True)),
        "evaluate": lambda batch, _: trainer._terms(batch),
        "predict": lambda batch, _: trainer._outputs(batch),
    }
    programs, all_traced = {}, []
    for what, function in functions.items():
        function = tf.function(function, jit_compile=True, autograph=False)
        known, traced = _traced(function, batches)
        text = function.experimental_get_compiler_ir(*batches[0])(stage="hlo")
        programs[what] = {
            "traces": known["traces"], "strings": _strings(traced),
            "not for accelerators": re.findall(
                r"f64\[|\[<=|= \S+ (?:custom-call|infeed|outfeed|send|recv)\(.*", text
            ),
        }  # fmt: skip
        all_traced.append(traced)
    return {"programs": programs, **_kernels(all_traced)}


def _traced(function, batches):
    """(what was found, the program), of a tf.function that two batches are traced with."""
    program = [function.get_concrete_function(*batch) for batch in batches][0]
    return {"traces": function.experimental_get_tracing_count(), **_kernels([program])}, program


def _kernels(programs):
    return {
        "no GPU kernel": sorted({op for one in programs for op in _without_kernels(one)}),
        "operations": sorted({node.op for one in programs for node in _nodes(one)}),
    }


def _nodes(program):
    graph = program.graph.as_graph_def()
    yield from graph.node
    for function in graph.library.function:
        yield from function.node_def


def _strings(program):
    """Operations on strings, or on rows of different lengths."""
    import tensorflow as tf

    def of_strings(node):
        kinds = {node.attr[name].type for name in ("T", "dtype", "out_type", "Tout")}
        return tf.string.as_datatype_enum in kinds or "String" in node.op or "Ragged" in node.op

    return sorted({node.op for node in _nodes(program) if of_strings(node)})


@functools.cache
def _registered(op):
    """The kernels that a GPU may use; the registry of the package for GPUs knows them on any
    machine."""
    from tensorflow.python.framework import kernels

    every = kernels.get_registered_kernels_for_op(op).kernel
    return [kernel for kernel in every if kernel.device_type in ("GPU", "DEFAULT")]


def _without_kernels(program):
    """Operations that no kernel for GPUs computes with their types; the rest of the graph waits
    while the host does."""

    def fits(kernel, node):
        return all(
            node.attr[one.name].type in one.allowed_values.list.type
            for one in kernel.constraint if one.allowed_values.list.type
        )  # fmt: skip

    return sorted({n.op for n in _nodes(program) if not any(fits(k, n) for k in _registered(n.op))})
