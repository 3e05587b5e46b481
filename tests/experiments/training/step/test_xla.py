"""TensorFlow's steps as an accelerator would get them: shapes that XLA accepts, kernels on GPUs.

XLA is handed every step and writes its program; to compile it would take half a minute each
(`test_trainer` does so for one). All of it is in a process with two logical devices, and in one of
a worker of several machines.
"""

import functools
import importlib
import json
import os
import re
from pathlib import Path

import forked
import pytest
from tiny_steps import CUDNN, NAMES, REPLICAS, STEPS, table

pytestmark = pytest.mark.timeout(1800)  # generous, for busy machines
DOCS = (Path(__file__).parents[4] / "docs" / "programs.md").read_text()


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Return name -> {what: value}, of `_look` and `_look_as_a_worker`."""
    known, folder = {}, tmp_path_factory.mktemp("xla")
    with forked.cluster(1) as (worker,):
        for look, environment in ((_look, {}), (_look_as_a_worker, worker)):
            path = folder / f"{look.__name__}.json"
            assert forked.exit_code(forked.start(look, path, environment), 1800) == 0
            known |= json.loads(path.read_text())
    return known


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_steps_evaluation_and_prediction_under_xla(found, name):
    """Fixed shapes, nothing from the host, one program for a batch and the next."""
    programs = found[name]["programs"]
    assert set(programs) == {"train", "evaluate", "predict"}
    for program in programs.values():
        assert program == {"traces": 1, "strings": [], "not for accelerators": []}


def test_the_table_of_programs():
    assert set(table().splitlines()) <= set(DOCS.splitlines())


@pytest.mark.slow
def test_every_operation_has_a_kernel_on_gpus_or_is_on_the_host_on_purpose(found):
    """Both lists are told; other versions of TensorFlow may need fewer operations."""
    on_host, on_gpus = map(_told, ("On the host", "Kernels on GPUs"))
    without = {op for one in found.values() for op in one["no GPU kernel"]}
    used = {op for one in found.values() for op in one["operations"]}
    assert without <= on_host and used - without <= on_gpus
    assert all("CudnnRNNV3" in found[f"{name}, cuDNN"]["operations"] for name in CUDNN)
    assert "While" in found["loop"]["operations"]


def _told(heading):
    """Return the names in a section of the page."""
    section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", DOCS, re.M | re.S)[1]
    return set(re.findall(r"`(\w+)`", section))


@pytest.mark.slow
def test_replicas_trace_a_step_once(found):
    """Fixed shapes and no strings there either, as a TPU would have it."""
    replicas = (f"{name}, mirrored" for name in REPLICAS)
    for name in [*replicas, "BERT, multi_worker"]:
        assert (found[name]["traces"], found[name]["strings"]) == (1, []), name
    assert "CollectiveReduceV2" in found["BERT, mirrored"]["operations"]


def test_what_a_gpu_cannot_do_is_seen():
    import tensorflow as tf

    @functools.partial(tf.function, autograph=False)
    def step(x):
        return tf.unique(tf.split(x, 2)[0]), tf.strings.as_string(x)

    program = step.get_concrete_function(tf.TensorSpec([4], tf.bool))
    assert _without_kernels(program) == ["AsString", "Split"]
    assert _strings(program) == ["AsString", "Identity"]


def _look(path, _):
    import tensorflow as tf

    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )
    rnn = importlib.import_module("keras.src.backend.tensorflow.rnn")

    from experiments.training.step import strategies
    from official_bert.backend import tensorflow_lstm

    tensorflow_lstm.on_processors = lambda: False
    one, mirrored = (strategies.get_strategy(name) for name in ("one_device", "mirrored"))
    found = {name: _under_xla(name, one) for name in STEPS}
    for name in REPLICAS:
        found[f"{name}, mirrored"] = _step(name, mirrored)
    trainer, batches = _trainer("BERT", one)
    dataset = tf.data.Dataset.from_tensors(batches[0][0]).repeat()
    loop = trainer._take_steps.get_concrete_function(iter(dataset), 2, tf.constant(1), ())
    found["loop"] = _kernels([loop])
    rnn._is_gpu_available = lambda: True
    for name in CUDNN:
        found[f"{name}, cuDNN"] = _step(name, one)
    path.write_text(json.dumps(found))


def _look_as_a_worker(path, environment):
    os.environ.update(environment)
    from experiments.training.step import strategies

    workers = strategies.get_strategy("multi_worker")
    path.write_text(json.dumps({"BERT, multi_worker": _step("BERT", workers)}))


def _step(name, strategy):
    """Return what was found of the step as it is compiled without XLA."""
    import tensorflow as tf

    trainer, batches = _trainer(name, strategy)
    return _traced(tf.function(trainer._step_on_batch, autograph=False), batches)[0]


def _trainer(name, strategy, **options):
    """Return (Trainer, the arguments of two steps with batches of different numbers)."""
    import tensorflow as tf

    from experiments.training.step import strategies
    from experiments.training.step.trainer import Trainer
    from experiments.training.step.trainer_state import StepOptions

    build, batch, *more = STEPS[name]
    options = StepOptions(fixed_shapes=True, train_metrics=True, **options, **dict(*more))
    trainer = Trainer(build, strategy, options, "mixed_bfloat16", seed=1)
    batches = [
        (strategies.distribute_batch({n: k * x for n, x in batch.items()}, strategy),
         tf.constant(k))
        for k in (1, 2)
    ]  # fmt: skip
    return trainer, batches


def _under_xla(name, strategy):
    import tensorflow as tf

    trainer, batches = _trainer(name, strategy, jit_compile=True)
    step = trainer._step.on_replica
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
            "traces": known["traces"], "strings": known["strings"],
            "not for accelerators": re.findall(
                r"f64\[|\[<=|= \S+ (?:custom-call|infeed|outfeed|send|recv)\(.*", text
            ),
        }  # fmt: skip
        all_traced.append(traced)
    return {"programs": programs, **_kernels(all_traced)}


def _traced(function, batches):
    """Return (what was found, the program), of a tf.function that two batches are traced with."""
    program = [function.get_concrete_function(*batch) for batch in batches][0]
    traces = function.experimental_get_tracing_count()
    return {"traces": traces, "strings": _strings(program), **_kernels([program])}, program


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
    """Return operations on strings, or on rows of different lengths."""
    import tensorflow as tf

    def of_strings(node):
        kinds = {node.attr[name].type for name in ("T", "dtype", "out_type", "Tout")}
        return tf.string.as_datatype_enum in kinds or "String" in node.op or "Ragged" in node.op

    return sorted({node.op for node in _nodes(program) if of_strings(node)})


@functools.cache
def _registered(op):
    """Return the kernels that a GPU may use; the registry of the package for GPUs knows them on any
    machine."""
    from tensorflow.python.framework import kernels

    every = kernels.get_registered_kernels_for_op(op).kernel
    return [kernel for kernel in every if kernel.device_type in ("GPU", "DEFAULT")]


def _without_kernels(program):
    """Return operations that no kernel for GPUs computes with their types; the rest of the graph
    waits while the host does."""

    def fits(kernel, node):
        return all(
            node.attr[one.name].type in one.allowed_values.list.type
            for one in kernel.constraint if one.allowed_values.list.type
        )  # fmt: skip

    return sorted({n.op for n in _nodes(program) if not any(fits(k, n) for k in _registered(n.op))})
